"""An agent of smolagents with skills as its tools. The model needs no network."""

from typing import Any

from smolagents import ChatMessage, CodeAgent, Model, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, get_tool_json_schema
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}


class Calling(Model):
    """Calls one tool after the other."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def generate(self, messages: Any, tools_to_call_from: Any = None, **_: Any) -> ChatMessage:
        for tool in tools_to_call_from or ():
            function = get_tool_json_schema(tool)["function"]
            SHOWN[function["name"]] = function["parameters"]
        name, arguments = [*CALLS, ("final_answer", {"answer": DONE})][self.calls]
        self.calls += 1
        call = ChatMessageToolCall(
            id=str(self.calls), type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments)
        )
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=[call])


class Coding(Model):
    """Writes a program that calls the tools."""

    def generate(self, messages: Any, **_: Any) -> ChatMessage:
        lines = [f"print({name}(**{arguments!r}))" for name, arguments in CALLS]
        lines += ['first = agt_archive__greet("Eve")', "final_answer(first)"]
        return ChatMessage(role=MessageRole.ASSISTANT, content="<code>\n" + "\n".join(lines) + "\n</code>")


def work(tools: list[Any]) -> Any:
    agent = ToolCallingAgent(tools=tools, model=Calling(), verbosity_level=0)
    answer = agent.run("Go")
    heard = [str(step.observations) for step in agent.memory.steps if getattr(step, "observations", None)]
    assert CodeAgent(tools=tools, model=Coding(), verbosity_level=0).run("Go") == "Hello, Eve!"
    return SHOWN, heard[: len(CALLS)], answer


play("smolagents", work)
