"""An agent built with the published a2a-sdk 0.3.26, as a stranger would write it: the peer our interop tests talk to.

Runs in its own environment (tests/support/peers.py makes it) and imports nothing of Dragoman. It speaks A2A 0.3, serves
its card at `/.well-known/agent-card.json`, and prints `ready` once it listens, `canceled` for each task that it is told
to stop.

    --binding JSONRPC     the SDK's JSON-RPC application, at `/`
    --binding HTTP+JSON   the SDK's REST application, below `/v1`

What it does is what the first text says, be it a text or the `text` of an object: `fail`, `slow` (until it is
cancelled), `ask` (a question, whose answer it echoes), `file` (it answers with one, in bytes); anything else is echoed
in one artifact of a completed task.
"""

import asyncio

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    Message,
    Part,
    TextPart,
    TransportProtocol,
)
from a2a.utils import new_task
from serving import HOST, serve
from starlette.applications import Starlette

FILE = Part(root=FilePart(file=FileWithBytes(bytes="AP8QIGJ5dGVz", name="a b.bin", mime_type="application/x-thing")))
BINDINGS = (TransportProtocol.jsonrpc.value, TransportProtocol.http_json.value)


class Echo(AgentExecutor):
    """Gives back what it was told, or does what it was told to do."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out one message."""
        message, task = context.message, context.current_task
        continued = task is not None
        if task is None:
            task = new_task(message)
            await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        wish = "" if continued else wish_of(message)
        if wish == "ask":
            await updater.requires_input(updater.new_agent_message(words("What should I echo?")), final=True)
            return
        await updater.start_work()
        if wish == "fail":
            await updater.failed(updater.new_agent_message(words("This agent always fails.")))
            return
        if wish == "slow":
            await asyncio.Event().wait()
        await updater.add_artifact([FILE] if wish == "file" else message.parts, name="echo", last_chunk=True)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task as canceled; the SDK stops `execute`."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()
        print("canceled", flush=True)


def wish_of(message: Message) -> str:
    """The first text, or the text of the first object."""
    first = message.parts[0].root
    if isinstance(first, DataPart):
        return str(first.data.get("text", ""))
    return first.text if isinstance(first, TextPart) else ""


def words(text: str) -> list[Part]:
    """Something to say."""
    return [Part(root=TextPart(text=text))]


def card(port: int, binding: str) -> AgentCard:
    """The card of an agent that has one skill, `echo`."""
    return AgentCard(
        name="Echo",
        description="Gives back what it is told.",
        version="1.0.0",
        url=f"http://{HOST}:{port}/",
        preferred_transport=binding,
        capabilities=AgentCapabilities(streaming=True),
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


def served_by(handler: DefaultRequestHandler, port: int, binding: str) -> Starlette:
    """Card and endpoint as the SDK makes them."""
    made = A2AStarletteApplication if binding == BINDINGS[0] else A2ARESTFastAPIApplication
    return made(agent_card=card(port, binding), http_handler=handler).build()


def application(port: int, binding: str) -> Starlette:
    """The echo agent."""
    return served_by(DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore()), port, binding)


if __name__ == "__main__":
    serve("Echo agent on the published A2A SDK of 0.3.", BINDINGS, application)
