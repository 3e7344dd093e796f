"""An agent of AG2 behind its own `A2AServer`; its model, on AG2's own protocol, says what it heard."""

from collections.abc import Sequence
from typing import Any, Self

from ag2 import Agent, Context
from ag2.a2a import A2AServer
from ag2.config import LLMClient, ModelConfig
from ag2.events import BaseEvent, ModelMessage, ModelMessageChunk, ModelRequest, ModelResponse, TextInput
from serving import HOST, serve
from starlette.applications import Starlette


class Repeater(LLMClient):
    """Says what it heard, word by word and then as a whole."""

    async def __call__(self, messages: Sequence[BaseEvent], context: Context, **_: Any) -> ModelResponse:
        """One turn."""
        heard = [part for event in messages if isinstance(event, ModelRequest) for part in event.parts]
        answer = "You said: " + [part.content for part in heard if isinstance(part, TextInput)][-1]
        for word in answer.split(" "):
            await context.send(ModelMessageChunk(word if word == "You" else f" {word}"))
        message = ModelMessage(answer)
        await context.send(message)
        return ModelResponse(message)


class Repeating(ModelConfig):
    """What makes AG2's agents use that model."""

    provider = "repeater"
    model = "repeater"

    def copy(self) -> Self:
        """There is nothing to change."""
        return self

    def create(self) -> Repeater:
        """A model."""
        return Repeater()

    def create_files_client(self) -> Any:
        """It knows words alone."""
        raise NotImplementedError


def application(port: int, _: str) -> Starlette:
    """The agent as an application."""
    return A2AServer(Agent("repeater", config=Repeating())).build_jsonrpc(url=f"http://{HOST}:{port}/")


if __name__ == "__main__":
    serve("An agent of AG2.", ("JSONRPC",), application)
