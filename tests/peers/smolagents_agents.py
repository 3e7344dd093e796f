"""Agents of smolagents, wrapped. The model answers without a network, in the thread that the agent runs in."""

from typing import Any

from smolagents import ChatMessage, CodeAgent, Model, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction
from smolagents.monitoring import TokenUsage
from wrapping import connect, heard, reply

from dragoman import Agent


class Offline(Model):
    """Answers what was said, fills in a city, fails, or waits until the test says `go`; as code, writes what was
    said.
    """

    def __init__(self, does: str = "reply") -> None:
        super().__init__(model_id="offline-1")
        self._does = does

    def generate(self, messages: list[ChatMessage], *_: Any, **__: Any) -> ChatMessage:
        said = [each.removeprefix("New task:\n") for each in _texts(messages) if each.startswith("New task:\n")]
        answer: Any = reply(said)
        match self._does:
            case "code":
                return _message(f"Thought: easy\n<code>\n{said[-1]}\n</code>")
            case "fail":
                raise ValueError("the password is 1234")
            case "wait":
                print("waiting", flush=True)
                heard("go")
            case "fill":
                answer = {"name": "Oslo", "people": 709000}
            case _:
                pass
        called = ChatMessageToolCallFunction(name="final_answer", arguments={"answer": answer})
        return _message(None, [ChatMessageToolCall(id="1", type="function", function=called)])


def _message(content: str | None, calls: list[ChatMessageToolCall] | None = None) -> ChatMessage:
    return ChatMessage(role="assistant", content=content, tool_calls=calls, token_usage=TokenUsage(7, 5))


def _texts(messages: list[ChatMessage]) -> list[str]:
    return [part["text"] for each in messages for part in each.content or () if part["type"] == "text"]


def agent(does: str = "reply") -> ToolCallingAgent:
    return ToolCallingAgent(tools=[], model=Offline(does), name="talker", description="Knows cities", verbosity_level=0)


connect(
    Agent.wrap(agent(), id="agt_smolagents_talker", skill="echo"),
    Agent.wrap(agent("fill"), id="agt_smolagents_filler", skill="echo"),
    Agent.wrap(agent("wait"), id="agt_smolagents_sleeper", skill="echo"),
    Agent.wrap(agent("fail"), id="agt_smolagents_failing", skill="echo"),
    Agent.wrap(
        CodeAgent(tools=[], model=Offline("code"), max_steps=1, verbosity_level=0),
        id="agt_smolagents_coder",
        skill="echo",
    ),
)
