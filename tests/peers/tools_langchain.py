"""LangChain's agent, which is a LangGraph graph, with skills as its tools. The model needs no network."""

from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.utils.function_calling import convert_to_openai_tool
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}


class Model(BaseChatModel):
    """Calls one tool after the other."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        for tool in tools:
            function = convert_to_openai_tool(tool)["function"]
            SHOWN[function["name"]] = function["parameters"]
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        number = sum(isinstance(message, ToolMessage) for message in messages)
        message = AIMessage(DONE)
        if number < len(CALLS):
            name, arguments = CALLS[number]
            call = {"name": name, "args": arguments, "id": str(number), "type": "tool_call"}
            message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


async def work(tools: list[Any]) -> Any:
    state = await create_agent(Model(), tools).ainvoke({"messages": [("user", "Go")]})
    heard = [message for message in state["messages"] if isinstance(message, ToolMessage)]
    assert [message.status for message in heard] == ["success", "success", "error", "success"]
    (greet,) = [tool for tool in tools if tool.name == "agt_archive__greet"]
    assert await greet.ainvoke({"name": "Ada"}) == "Hello, Ada!"
    (taken,) = [tool for tool in tools if tool.name == "agt_archive__taken"]
    assert await taken.ainvoke({"input": {"config": "mine"}}) == "config is mine"
    return SHOWN, [message.content for message in heard], state["messages"][-1].content


def block(tools: list[Any]) -> Any:
    state = create_agent(Model(), tools).invoke({"messages": [("user", "Go")]})
    heard = [message.content for message in state["messages"] if isinstance(message, ToolMessage)]
    return SHOWN, heard, state["messages"][-1].content


play("langchain", work)
play("langgraph", block)
