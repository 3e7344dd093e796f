"""An agent of google-adk behind its own `to_a2a`; its model, on ADK's own base, says what it heard."""

from collections.abc import AsyncGenerator

from google.adk.a2a.utils.agent_to_a2a import to_a2a
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.genai import types
from serving import HOST, serve
from starlette.applications import Starlette


class Repeater(BaseLlm):
    """Says what it heard, streamed or not."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """One turn."""
        heard = [part.text for content in llm_request.contents for part in content.parts if content.role == "user"]
        answer = f"You said: {heard[-1]}"
        if stream:
            for word in answer.split(" "):
                yield LlmResponse(content=said(word if word == "You" else f" {word}"), partial=True)
        yield LlmResponse(content=said(answer), partial=False)


def said(text: str) -> types.Content:
    """Words of the model."""
    return types.Content(role="model", parts=[types.Part(text=text)])


def application(port: int, _: str) -> Starlette:
    """The agent as an application."""
    agent = LlmAgent(name="repeater", model=Repeater(model="repeater"), description="Says what it heard.")
    return to_a2a(agent, host=HOST, port=port)


if __name__ == "__main__":
    serve("An agent of google-adk.", ("JSONRPC",), application)
