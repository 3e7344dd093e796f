"""An agent built with the published a2a-sdk 0.3.26, as a stranger would write it, that tells its answer in pieces.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 0.3 over
JSON-RPC at `/`, or over HTTP below `/v1` (`--binding HTTP+JSON`), and prints `ready` once it listens. The first piece
comes at once, each further one when it is let go; what it is sent, a text or the `text` of an object, names the gate:

    POST /go/{gate}   lets one more piece through
    GET /asked        how often the agent was sent a message, subscribed to, and asked for a task
"""

import argparse
import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator

import uvicorn
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.context import ServerCallContext
from a2a.server.events import Event, EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import Task, TaskIdParams, TaskQueryParams
from a2a.utils import new_task
from echo_agent_v03 import BINDINGS, HOST, AnnouncedServer, card, end_with_parent, wish_of, words
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

PIECES = ("one ", "two ", "three")


class Teller(AgentExecutor):
    """Tells in pieces."""

    def __init__(self) -> None:
        self.gates: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self.asked: Counter[str] = Counter(sent=0, subscribed=0, got=0)

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out one message."""
        self.asked["sent"] += 1
        gate, task = self.gates[wish_of(context.message)], new_task(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        for number, piece in enumerate(PIECES):
            if number:
                await gate.acquire()
            last = number == len(PIECES) - 1
            await updater.add_artifact(words(piece), "answer", append=number > 0, last_chunk=last)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task as canceled; the SDK stops `execute`."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def let_go(self, request: Request) -> JSONResponse:
        """Let one piece through a gate."""
        self.gates[request.path_params["gate"]].release()
        return JSONResponse({})

    async def tell_asked(self, request: Request) -> JSONResponse:
        """What the agent was asked so far."""
        return JSONResponse(self.asked)


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
    teller = Teller()
    handler = NotingHandler(agent_executor=teller, task_store=InMemoryTaskStore())
    made = A2AStarletteApplication if binding == BINDINGS[0] else A2ARESTFastAPIApplication
    app = made(agent_card=card(port, binding), http_handler=handler).build()
    app.routes.append(Route("/go/{gate}", teller.let_go, methods=["POST"]))
    app.routes.append(Route("/asked", teller.tell_asked))
    return app


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Streaming agent on the published A2A SDK of 0.3.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--binding", choices=BINDINGS, default=BINDINGS[0])
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    app = application(asked.port, asked.binding)
    AnnouncedServer(uvicorn.Config(app, host=HOST, port=asked.port, log_level="warning")).run()


if __name__ == "__main__":
    main()
