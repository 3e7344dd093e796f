"""An agent of agent-framework behind its own `A2AExecutor`; its model, on its own base, says what it heard."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface
from agent_framework import (
    Agent,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    Message,
    ResponseStream,
)
from agent_framework.a2a import A2AExecutor
from serving import HOST, serve
from starlette.applications import Starlette


class Repeater(BaseChatClient):
    """Says what it heard, streamed or not."""

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **_: Any
    ) -> Any:
        answer = f"You said: {messages[-1].text}"

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=[answer])])

        async def pieces() -> AsyncIterator[ChatResponseUpdate]:
            for word in answer.split(" "):
                piece = Content.from_text(word if word == "You" else f" {word}")
                yield ChatResponseUpdate(role="assistant", contents=[piece], message_id="answer")

        return ResponseStream(pieces(), finalizer=ChatResponse.from_updates) if stream else whole()


def application(port: int, binding: str) -> Starlette:
    """The agent as an application, put together as the executor's documentation shows."""
    interface = AgentInterface(url=f"http://{HOST}:{port}/", protocol_binding=binding, protocol_version="1.0")
    card = AgentCard(
        name="repeater",
        description="Says what it heard.",
        version="1.0.0",
        default_input_modes=["text"],
        default_output_modes=["text"],
        capabilities=AgentCapabilities(streaming=True),
        supported_interfaces=[interface],
        skills=[],
    )
    handler = DefaultRequestHandler(
        agent_executor=A2AExecutor(Agent(Repeater(), name="repeater")),
        task_store=InMemoryTaskStore(),
        agent_card=card,
    )
    return Starlette(routes=[*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")])


if __name__ == "__main__":
    serve("An agent of agent-framework.", ("JSONRPC",), application)
