"""An agent built with the published a2a-sdk 0.3.26, as a stranger would write it, that tells its answer in pieces.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 0.3 over
JSON-RPC at `/`, or over HTTP below `/v1` (`--binding HTTP+JSON`), and prints `ready` once it listens. How it is let go
stands in telling.py; what it is sent, a text or the `text` of an object, names the gate.
"""

from collections.abc import AsyncGenerator

from a2a.server.context import ServerCallContext
from a2a.server.events import Event
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import Task, TaskIdParams, TaskQueryParams
from a2a.utils import new_task
from echo_agent_v03 import BINDINGS, served_by, wish_of, words
from serving import serve
from starlette.applications import Starlette
from telling import Teller


class NotingHandler(DefaultRequestHandler):
    """The SDK's own, which notes what its agent is asked besides its work."""

    async def on_resubscribe_to_task(
        self, params: TaskIdParams, context: ServerCallContext | None = None
    ) -> AsyncGenerator[Event]:
        """Note it, and do as ever."""
        self.agent_executor.asked["subscribed"] += 1
        async for event in super().on_resubscribe_to_task(params, context):
            yield event

    async def on_get_task(self, params: TaskQueryParams, context: ServerCallContext | None = None) -> Task | None:
        """Note it, and do as ever."""
        self.agent_executor.asked["got"] += 1
        return await super().on_get_task(params, context)


def application(port: int, binding: str) -> Starlette:
    """Card and endpoint as the SDK makes them, and the gates."""
    teller = Teller(wish_of, new_task, words)
    app = served_by(NotingHandler(agent_executor=teller, task_store=InMemoryTaskStore()), port, binding)
    app.routes.extend(teller.routes)
    return app


if __name__ == "__main__":
    serve("Streaming agent on the published A2A SDK of 0.3.", BINDINGS, application)
