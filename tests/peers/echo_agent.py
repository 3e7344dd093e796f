"""An agent built with the published a2a-sdk 1.3.0, as a stranger would write it: the peer our interop tests talk to.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 1.0 over
JSON-RPC at `/`, or over HTTP with paths (`--binding HTTP+JSON`), serves its card at `/.well-known/agent-card.json`,
and prints `ready` once it listens, `canceled` for each task that it is told to stop.

    --mode echo   answers with the parts it was sent, in one artifact of a completed task
    --mode slow   the same, `--delay` seconds later; can be cancelled meanwhile
    --mode fail   ends every task as failed
    --mode ask    asks a question first (input required), echoes the answer to it
    --mode file   answers with a file, in bytes
    --mode told   takes its mode from the first text of a task, be it a text or the `text` of an object
"""

import argparse
import asyncio
import os
import sys
import threading

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Message, Part
from starlette.applications import Starlette

HOST = "127.0.0.1"
MODES = ("echo", "slow", "fail", "ask", "file", "told")
FILE = Part(raw=b"\x00\xff\x10 bytes", filename="a b.bin", media_type="application/x-thing")
BINDINGS = ("JSONRPC", "HTTP+JSON")


class Echo(AgentExecutor):
    """Gives back what it was told, in the manner of its mode."""

    def __init__(self, mode: str, delay_s: float) -> None:
        self.mode = mode
        self.delay_s = delay_s

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out one message."""
        message = context.message
        continued = context.current_task is not None
        mode = self.mode if self.mode != "told" else told(message, continued)
        if not continued:
            await event_queue.enqueue_event(new_task_from_user_message(message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if mode == "fail":
            await updater.failed(updater.new_agent_message([new_text_part("This agent always fails.")]))
            return
        if mode == "ask" and not continued:
            await updater.requires_input(updater.new_agent_message([new_text_part("What should I echo?")]))
            return
        if mode == "slow":
            await asyncio.sleep(self.delay_s)
        await updater.add_artifact([FILE] if mode == "file" else list(message.parts), name="echo", last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task as canceled; the SDK has stopped `execute` already."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        print("canceled", flush=True)


def told(message: Message, continued: bool) -> str:
    """What a task's first message says it should do; anything it does not know is to be echoed."""
    first = message.parts[0]
    held = first.data.struct_value.fields
    wish = held["text"].string_value if "text" in held else first.text
    return wish if wish in MODES and not continued else "echo"


class AnnouncedServer(uvicorn.Server):
    """Prints `ready` when the socket listens."""

    async def startup(self, sockets: list | None = None) -> None:
        """Start listening, then say so."""
        await super().startup(sockets)
        if self.started:
            print("ready", flush=True)


def card(port: int, binding: str) -> AgentCard:
    """The card of an agent that has one skill, `echo`."""
    return AgentCard(
        name="Echo",
        description="Gives back what it is told.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=f"http://{HOST}:{port}/", protocol_binding=binding, protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        skills=[
            AgentSkill(
                id="echo",
                name="Echo",
                description="Gives back the parts of the message.",
                tags=["echo", "test"],
                examples=["hello"],
            )
        ],
    )


def application(port: int, mode: str, delay_s: float, binding: str) -> Starlette:
    """Card and endpoint as the SDK makes them."""
    described = card(port, binding)
    handler = DefaultRequestHandler(
        agent_executor=Echo(mode, delay_s), task_store=InMemoryTaskStore(), agent_card=described
    )
    served = create_rest_routes(handler) if binding == "HTTP+JSON" else create_jsonrpc_routes(handler, "/")
    return Starlette(routes=[*create_agent_card_routes(described), *served])


def end_with_parent() -> None:
    """Leave when standard input closes: a killed test run leaves no agent behind."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Echo agent on the published A2A SDK.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=MODES, default="echo")
    parser.add_argument("--binding", choices=BINDINGS, default="JSONRPC")
    parser.add_argument("--delay", type=float, default=2.0, metavar="SECONDS", help="how long --mode slow takes")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    app = application(asked.port, asked.mode, asked.delay, asked.binding)
    AnnouncedServer(uvicorn.Config(app, host=HOST, port=asked.port, log_level="warning")).run()


if __name__ == "__main__":
    main()
