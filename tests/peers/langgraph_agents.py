"""LangGraph's graphs and LangChain's agents, wrapped. The model answers without a network."""

from collections.abc import AsyncIterator
from typing import Any

from langchain.agents import create_agent
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from pydantic import BaseModel
from typing_extensions import TypedDict
from wrapping import connect, forever, reply, spoken

from dragoman import Agent

USED = {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}


class City(BaseModel):
    name: str
    people: int


class Model(BaseChatModel):
    """Answers what was said, calls the tool it is given for structured output, or never answers."""

    sleeps: bool = False
    tools: tuple[Any, ...] = ()

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, tools: Any, **_: Any) -> "Model":
        return self.model_copy(update={"tools": tuple(tools)})

    def _said(self, messages: list[BaseMessage]) -> str:
        return reply([message.text for message in messages if message.type == "human"])

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.tools:
            call = {"name": "City", "args": {"name": "Oslo", "people": 709000}, "id": "1", "type": "tool_call"}
            message = AIMessage("", tool_calls=[call], usage_metadata=USED)
        else:
            message = AIMessage(self._said(messages), usage_metadata=USED)
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _astream(self, messages: list[BaseMessage], *_: Any, **__: Any) -> AsyncIterator[ChatGenerationChunk]:
        if self.sleeps:
            await forever()
        if self.tools:
            whole = self._generate(messages).generations[0].message
            message = AIMessageChunk("", tool_calls=whole.tool_calls, usage_metadata=USED)
            yield ChatGenerationChunk(message=message)
            return
        async for word in spoken(self._said(messages)):
            yield ChatGenerationChunk(message=AIMessageChunk(word))
        about = {"model_name": "offline-1"}
        yield ChatGenerationChunk(message=AIMessageChunk("", usage_metadata=USED, response_metadata=about))


class Order(TypedDict):
    topic: str
    words: int
    text: str


def ask(_: MessagesState) -> dict[str, Any]:
    said = interrupt({"question": "Which colour?"})
    return {"messages": [AIMessage(f"{said} it is")]}


def write(order: Order) -> dict[str, str]:
    return {"text": " ".join([order["topic"]] * order["words"])}


def fail(_: MessagesState) -> dict[str, Any]:
    raise ValueError("the password is 1234")


def circle(_: MessagesState) -> dict[str, Any]:
    return {}


def graph(node: Any, state: Any = MessagesState) -> StateGraph:
    return StateGraph(state).add_node("node", node).add_edge(START, "node")


connect(
    Agent.wrap(create_agent(Model(), tools=[], name="Talker"), id="agt_langgraph_talker", skill="echo"),
    Agent.wrap(
        create_agent(Model(), tools=[], name="Keeper", checkpointer=InMemorySaver()),
        id="agt_langgraph_keeper",
        skill="echo",
    ),
    Agent.wrap(
        create_agent(Model(), tools=[], response_format=ToolStrategy(City)), id="agt_langgraph_filler", skill="echo"
    ),
    Agent.wrap(create_agent(Model(sleeps=True), tools=[]), id="agt_langgraph_sleeper", skill="echo"),
    Agent.wrap(graph(ask).compile(checkpointer=InMemorySaver()), id="agt_langgraph_asker", skill="echo"),
    Agent.wrap(graph(ask).compile(), id="agt_langgraph_forgetful", skill="echo"),
    Agent.wrap(graph(write, Order).compile(name="Writer"), id="agt_langgraph_writer", skill="echo"),
    Agent.wrap(graph(fail).compile(), id="agt_langgraph_failing", skill="echo"),
    Agent.wrap(graph(circle).add_edge("node", "node").compile(), id="agt_langgraph_circle", skill="echo"),
)
