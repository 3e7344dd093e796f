"""A model that needs no network: it calls the tool it is given, and says what it heard."""

from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText


class Offline(Model):
    async def get_response(self, *, input: Any, tools: list[Any], **_: Any) -> ModelResponse:
        heard = [item["output"] for item in input if item.get("type") == "function_call_output"]
        answer: Any = ResponseFunctionToolCall(
            type="function_call", call_id="1", name=tools[0].name, arguments='{"query": "tides"}'
        )
        if heard:
            said = ResponseOutputText(type="output_text", text=f"I found {heard[0]}", annotations=[])
            answer = ResponseOutputMessage(id="1", type="message", role="assistant", status="completed", content=[said])
        return ModelResponse(output=[answer], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


model = Offline()
