"""A model that needs no network: it looks a city up with the tool it is given, and says what it found."""

import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Model, ModelResponse
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
)


class Offline(Model):
    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        raise NotImplementedError

    async def stream_response(self, _: Any, given: Any, *__: Any, **___: Any) -> AsyncIterator[Any]:
        found = next((each["output"] for each in given if each.get("type") == "function_call_output"), None)
        if found is None:
            asked = json.dumps({"city": "Oslo"})
            call = ResponseFunctionToolCall(arguments=asked, call_id="1", name="people_of", type="function_call")
            yield completed(call)
            return
        words = f"Oslo has {found} inhabitants."
        yield ResponseTextDeltaEvent(
            content_index=0,
            delta=words,
            item_id="1",
            logprobs=[],
            output_index=0,
            sequence_number=0,
            type="response.output_text.delta",
        )
        said = ResponseOutputText(text=words, type="output_text", annotations=[])
        yield completed(
            ResponseOutputMessage(id="1", content=[said], role="assistant", status="completed", type="message")
        )


def completed(*output: Any) -> ResponseCompletedEvent:
    response = Response(
        id="1",
        created_at=0,
        model="offline",
        object="response",
        output=list(output),
        parallel_tool_calls=False,
        tool_choice="auto",
        tools=[],
    )
    return ResponseCompletedEvent(response=response, sequence_number=1, type="response.completed")


model = Offline()
