"""An agent built with the published a2a-sdk 1.3.0, as a stranger would write it: the peer our interop tests talk to.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 1.0 over
JSON-RPC at `/`, serves its card at `/.well-known/agent-card.json`, and prints `ready` once it listens.

    --mode echo   answers with the parts it was sent, in one artifact of a completed task
    --mode slow   the same, `--delay` seconds later; can be cancelled meanwhile
    --mode fail   ends every task as failed
    --mode ask    asks a question first (input required), echoes the answer to it
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
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

HOST = "127.0.0.1"
MODES = ("echo", "slow", "fail", "ask")


class Echo(AgentExecutor):
    """Gives back what it was told, in the manner of its mode."""

    def __init__(self, mode: str, delay_s: float) -> None:
        self.mode = mode
        self.delay_s = delay_s

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out one message."""
        message = context.message
        continued = context.current_task is not None
        if not continued:
            await event_queue.enqueue_event(new_task_from_user_message(message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if self.mode == "fail":
            await updater.failed(updater.new_agent_message([new_text_part("This agent always fails.")]))
            return
        if self.mode == "ask" and not continued:
            await updater.requires_input(updater.new_agent_message([new_text_part("What should I echo?")]))
            return
        if self.mode == "slow":
            await asyncio.sleep(self.delay_s)
        await updater.add_artifact(list(message.parts), name="echo", last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task as canceled; the SDK has stopped `execute` already."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


class AnnouncedServer(uvicorn.Server):
    """Prints `ready` when the socket listens."""

    async def startup(self, sockets: list | None = None) -> None:
        """Start listening, then say so."""
        await super().startup(sockets)
        if self.started:
            print("ready", flush=True)


def card(port: int) -> AgentCard:
    """The card of an agent that has one skill, `echo`."""
    return AgentCard(
        name="Echo",
        description="Gives back what it is told.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=f"http://{HOST}:{port}/", protocol_binding="JSONRPC", protocol_version="1.0")
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


def application(port: int, mode: str, delay_s: float) -> Starlette:
    """Card and JSON-RPC endpoint as the SDK makes them."""
    described = card(port)
    handler = DefaultRequestHandler(
        agent_executor=Echo(mode, delay_s), task_store=InMemoryTaskStore(), agent_card=described
    )
    return Starlette(routes=[*create_agent_card_routes(described), *create_jsonrpc_routes(handler, "/")])


def end_with_parent() -> None:
    """Leave when standard input closes: a killed test run leaves no agent behind."""
    sys.stdin.buffer.read()
    os._exit(0)


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description="Echo agent on the published A2A SDK.")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--mode", choices=MODES, default="echo")
    parser.add_argument("--delay", type=float, default=2.0, metavar="SECONDS", help="how long --mode slow takes")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    asked = parser.parse_args()
    if asked.with_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    app = application(asked.port, asked.mode, asked.delay)
    AnnouncedServer(uvicorn.Config(app, host=HOST, port=asked.port, log_level="warning")).run()


if __name__ == "__main__":
    main()
