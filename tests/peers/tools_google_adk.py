"""An agent of Google's ADK with skills as its tools. The model needs no network."""

import json
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types
from tool_script import CALLS, DONE, play

SHOWN: dict[str, Any] = {}


def text_of(response: dict[str, Any]) -> str:
    """What the model heard, in the words that other frameworks have for it."""
    if response.keys() <= {"error", "result"}:
        return next(iter(response.values()))
    return json.dumps(response, separators=(",", ":"))


class Model(BaseLlm):
    """Calls one tool after the other."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        for tool in llm_request.config.tools or ():
            for declared in tool.function_declarations or ():
                SHOWN[declared.name] = declared.parameters_json_schema
        parts = [part for content in llm_request.contents for part in content.parts or ()]
        number = sum(part.function_response is not None for part in parts)
        part = types.Part(text=DONE)
        if number < len(CALLS):
            name, arguments = CALLS[number]
            part = types.Part(function_call=types.FunctionCall(id=str(number), name=name, args=arguments))
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


async def work(tools: list[Any]) -> Any:
    runner = InMemoryRunner(LlmAgent(name="reader", model=Model(model="offline"), tools=tools), app_name="reading")
    await runner.session_service.create_session(app_name="reading", user_id="u", session_id="s")
    message = types.Content(role="user", parts=[types.Part(text="Go")])
    heard: list[str] = []
    answer = ""
    async for event in runner.run_async(user_id="u", session_id="s", new_message=message):
        for part in (event.content and event.content.parts) or ():
            if part.function_response is not None:
                heard.append(text_of(part.function_response.response or {}))
            answer = part.text or answer
    return SHOWN, heard, answer


play("google-adk", work)
