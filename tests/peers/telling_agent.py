"""An agent built with the published a2a-sdk 1.3.0, as a stranger would write it, that tells its answer in pieces.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 1.0 over
JSON-RPC at `/`, or over HTTP with paths (`--binding HTTP+JSON`), and prints `ready` once it listens. The first piece
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
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import Event, EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import GetTaskRequest, Message, SubscribeToTaskRequest, Task
from echo_agent import BINDINGS, HOST, AnnouncedServer, card, end_with_parent
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
        gate = self.gates[gate_in(context.message)]
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        for number, piece in enumerate(PIECES):
            if number:
                await gate.acquire()
            last = number == len(PIECES) - 1
            await updater.add_artifact([new_text_part(piece)], "answer", append=number > 0, last_chunk=last)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task as canceled; the SDK has stopped `execute` already."""
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


def application(port: int, binding: str) -> Starlette:
    """Card and endpoint as the SDK makes them, and the gates."""
    described, teller = card(port, binding), Teller()
    handler = NotingHandler(agent_executor=teller, task_store=InMemoryTaskStore(), agent_card=described)
    served = create_rest_routes(handler) if binding == "HTTP+JSON" else create_jsonrpc_routes(handler, "/")
    gates = [Route("/go/{gate}", teller.let_go, methods=["POST"]), Route("/asked", teller.tell_asked)]
    return Starlette(routes=[*gates, *create_agent_card_routes(described), *served])


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Streaming agent on the published A2A SDK.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--binding", choices=BINDINGS, default="JSONRPC")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    app = application(asked.port, asked.binding)
    AnnouncedServer(uvicorn.Config(app, host=HOST, port=asked.port, log_level="warning")).run()


if __name__ == "__main__":
    main()
