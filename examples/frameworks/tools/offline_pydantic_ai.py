"""A model that needs no network: it calls the tool it is given, and says what it heard."""

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    heard = [part.content for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
    if heard:
        return ModelResponse(parts=[TextPart(f"I found {heard[0]}")])
    return ModelResponse(parts=[ToolCallPart(info.function_tools[0].name, {"query": "tides"})])


model = FunctionModel(answer)
