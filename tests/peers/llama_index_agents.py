"""LlamaIndex's agents, workflows and engines, wrapped. The model answers without a network."""

import warnings
from collections.abc import AsyncIterator, Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata, MessageRole
from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.workflow import Context, Event, StartEvent, StopEvent, Workflow, step
from pydantic import BaseModel
from workflows.events import HumanResponseEvent, InputRequiredEvent
from wrapping import connect, forever, reply, spoken

from dragoman import Agent

warnings.simplefilter("ignore")  # LlamaIndex says of its own memory that it cannot be put down


class City(BaseModel):
    name: str
    people: int


class Model(FunctionCallingLLM):
    """Answers what was said, waits for ever, or fails."""

    does: str = "reply"

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(is_function_calling_model=True, is_chat_model=True, model_name="offline-1")

    async def _answers(self, messages: Sequence[ChatMessage]) -> AsyncIterator[ChatResponse]:
        if self.does == "sleep":
            await forever()
        if self.does == "fail":
            raise ValueError("the password is 1234")
        so_far = ""
        async for word in spoken(reply([each.content or "" for each in messages if each.role == MessageRole.USER])):
            so_far += word
            yield ChatResponse(
                message=ChatMessage(role=MessageRole.ASSISTANT, content=so_far),
                delta=word,
                raw={"model": "offline-1", "usage": {"prompt_tokens": 7, "completion_tokens": 5}},
            )

    async def astream_chat(self, messages: Sequence[ChatMessage], **_: Any) -> AsyncIterator[ChatResponse]:
        return self._answers(messages)

    async def achat(self, messages: Sequence[ChatMessage], **_: Any) -> ChatResponse:
        return [each async for each in self._answers(messages)][-1]

    def _prepare_chat_with_tools(self, tools: Any, chat_history: Any = None, **_: Any) -> dict[str, Any]:
        return {"messages": chat_history or []}

    def get_tool_calls_from_response(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def chat(self, *_: Any, **__: Any) -> Any: ...
    def stream_chat(self, *_: Any, **__: Any) -> Any: ...
    def complete(self, *_: Any, **__: Any) -> Any: ...
    def stream_complete(self, *_: Any, **__: Any) -> Any: ...
    async def acomplete(self, *_: Any, **__: Any) -> Any: ...
    async def astream_complete(self, *_: Any, **__: Any) -> Any: ...


async def oslo(_: Any) -> dict[str, Any]:
    return {"name": "Oslo", "people": 709000}


def agent(does: str = "reply", **options: Any) -> FunctionAgent:
    return FunctionAgent(name="Talker", description="Knows cities", llm=Model(does=does), **options)


class Topic(StartEvent):
    topic: str


class Told(Event):
    msg: str


class Article(StopEvent):
    topic: str
    length: str
    number: int


class Writer(Workflow):
    """Asks how long the article is to be, and counts them."""

    @step
    async def ask(self, ctx: Context, ev: Topic) -> InputRequiredEvent:
        ctx.write_event_to_stream(Told(msg="thinking"))
        await ctx.store.set("topic", ev.topic)
        return InputRequiredEvent(prefix="How long?")

    @step
    async def write(self, ctx: Context, ev: HumanResponseEvent) -> Article:
        number = await ctx.store.get("number", default=0) + 1
        await ctx.store.set("number", number)
        return Article(topic=await ctx.store.get("topic"), length=ev.response, number=number)


class Repeater(Workflow):
    """Takes anything."""

    @step
    async def repeat(self, ev: StartEvent) -> StopEvent:
        return StopEvent(result=f"{ev.user_msg}, {ev.get('topic', 'no topic')}")


class Library(CustomQueryEngine):
    """Answers questions."""

    def custom_query(self, query_str: str) -> str:
        return f"all about {query_str}"


connect(
    Agent.wrap(agent(), id="agt_llama_index_talker", skill="echo"),
    Agent.wrap(agent(output_cls=City, structured_output_fn=None), id="agt_llama_index_claims", skill="echo"),
    Agent.wrap(agent(structured_output_fn=oslo), id="agt_llama_index_filler", skill="echo"),
    Agent.wrap(agent("sleep"), id="agt_llama_index_sleeper", skill="echo"),
    Agent.wrap(agent("fail"), id="agt_llama_index_failing", skill="echo"),
    Agent.wrap(Writer(), id="agt_llama_index_writer", skill="echo"),
    Agent.wrap(Repeater(), id="agt_llama_index_repeater", skill="echo"),
    Agent.wrap(Library(), id="agt_llama_index_library", skill="echo"),
    Agent.wrap(SimpleChatEngine.from_defaults(llm=Model()), id="agt_llama_index_engine", skill="echo"),
)
