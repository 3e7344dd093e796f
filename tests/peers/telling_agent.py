"""An agent built with the published a2a-sdk 1.3.0, as a stranger would write it, that tells its answer in pieces.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 1.0 over
JSON-RPC at `/`, or over HTTP with paths (`--binding HTTP+JSON`), and prints `ready` once it listens. How it is let go
stands in telling.py; what it is sent, a text or the `text` of an object, names the gate.
"""

from collections.abc import AsyncGenerator

from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types.a2a_pb2 import GetTaskRequest, Message, Part, SubscribeToTaskRequest, Task
from echo_agent import BINDINGS, card
from serving import serve
from starlette.applications import Starlette
from telling import Teller


class NotingHandler(DefaultRequestHandler):
    """The SDK's own, which notes what its agent is asked besides its work."""

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event]:
        """Note it, and do as ever."""
        self.agent_executor.asked["subscribed"] += 1
        async for event in super().on_subscribe_to_task(params, context):
            yield event

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        """Note it, and do as ever."""
        self.agent_executor.asked["got"] += 1
        return await super().on_get_task(params, context)


def gate_in(message: Message) -> str:
    """The first text, or the text of the first object."""
    first = message.parts[0]
    held = first.data.struct_value.fields
    return held["text"].string_value if "text" in held else first.text


def words(text: str) -> list[Part]:
    """Something to say."""
    return [new_text_part(text)]


def application(port: int, binding: str) -> Starlette:
    """Card and endpoint as the SDK makes them, and the gates."""
    described, teller = card(port, binding), Teller(gate_in, new_task_from_user_message, words)
    handler = NotingHandler(agent_executor=teller, task_store=InMemoryTaskStore(), agent_card=described)
    served = create_rest_routes(handler) if binding == "HTTP+JSON" else create_jsonrpc_routes(handler, "/")
    return Starlette(routes=[*teller.routes, *create_agent_card_routes(described), *served])


if __name__ == "__main__":
    serve("Streaming agent on the published A2A SDK.", BINDINGS, application)
