"""Agents of pydantic-ai, wrapped. Their models are functions of ours: no network."""

from collections.abc import AsyncIterator

from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage
from wrapping import connect, forever, reply, spoken

from dragoman import Agent


class City(BaseModel):
    name: str
    people: int


def said(messages: list[ModelMessage]) -> str:
    parts = [part for message in messages for part in message.parts if part.part_kind == "user-prompt"]
    return reply([str(part.content) for part in parts])


async def say(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str]:
    async for word in spoken(said(messages)):
        yield word


async def sleep(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
    await forever()
    yield ""


async def fail(_: list[ModelMessage], __: AgentInfo) -> AsyncIterator[str]:
    raise ValueError("the password is 1234")
    yield ""


def fill(_: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    call = ToolCallPart(info.output_tools[0].name, {"name": "Oslo", "people": 709000})
    return ModelResponse(parts=[call], usage=RequestUsage(input_tokens=7, output_tokens=5))


async def look(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
    """Words, a call of a tool, and words again."""
    if len(messages) == 1:
        yield "let me look "
        yield {0: DeltaToolCall(name="people_of", json_args='{"city": "Oslo"}', tool_call_id="1")}
    else:
        yield "709000 people"


looking = PydanticAgent(FunctionModel(stream_function=look), name="Looker", description="Knows cities")


@looking.tool_plain
def people_of(city: str) -> int:
    return {"Oslo": 709000}[city]


connect(
    Agent.wrap(
        PydanticAgent(FunctionModel(stream_function=say), name="Talker"), id="agt_pydantic_ai_talker", skill="echo"
    ),
    Agent.wrap(PydanticAgent(FunctionModel(fill), output_type=City), id="agt_pydantic_ai_filler", skill="echo"),
    Agent.wrap(PydanticAgent(FunctionModel(stream_function=sleep)), id="agt_pydantic_ai_sleeper", skill="echo"),
    Agent.wrap(PydanticAgent(FunctionModel(stream_function=fail)), id="agt_pydantic_ai_failing", skill="echo"),
    Agent.wrap(looking, id="agt_pydantic_ai_looker", skill="echo"),
)
