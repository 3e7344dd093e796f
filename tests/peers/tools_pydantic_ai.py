"""An agent of pydantic-ai with skills as its tools. The model needs no network."""

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}


def heard_in(messages: list[ModelMessage]) -> list[Any]:
    return [part.content for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    SHOWN.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
    number = len(heard_in(messages))
    if number < len(CALLS):
        return ModelResponse(parts=[ToolCallPart(*CALLS[number])])
    return ModelResponse(parts=[TextPart(DONE)])


async def work(tools: list[Any]) -> Any:
    found = await Agent(FunctionModel(answer), tools=tools).run("Go")
    return SHOWN, heard_in(found.all_messages()), found.output


play("pydantic-ai", work)
