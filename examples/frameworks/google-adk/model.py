"""A model that needs no network: it calls the tool, then says what that answered."""

from collections.abc import AsyncGenerator

from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types


class Offline(BaseLlm):
    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = (llm_request.contents[-1].parts or [types.Part()])[-1]
        if last.function_response is None:
            part = types.Part.from_function_call(name="people_of", args={"city": "Oslo"})
        else:
            part = types.Part(text=f"Oslo has {(last.function_response.response or {})['result']} inhabitants.")
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


model = Offline(model="offline")
