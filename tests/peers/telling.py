"""Telling in pieces, in what the published SDKs of A2A 0.3 and 1.0 have in common.

The first piece comes at once, each further one when it is let go; what the agent is sent names the gate:

    POST /go/{gate}   lets one more piece through
    GET /asked        how often the agent was sent a message, subscribed to, and asked for a task
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Message, Part, Task
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

PIECES = ("one ", "two ", "three")


class Teller(AgentExecutor):
    """Tells in pieces; how to find the gate, begin a task and say a piece is the version's own."""

    def __init__(
        self,
        gate_in: Callable[[Message], str],
        new_task: Callable[[Message], Task],
        words: Callable[[str], list[Part]],
    ) -> None:
        self.gates: defaultdict[str, asyncio.Semaphore] = defaultdict(lambda: asyncio.Semaphore(0))
        self.asked: Counter[str] = Counter(sent=0, subscribed=0, got=0)
        self.routes = [Route("/go/{gate}", self.let_go, methods=["POST"]), Route("/asked", self.tell_asked)]
        self._gate_in = gate_in
        self._new_task = new_task
        self._words = words

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Carry out one message."""
        self.asked["sent"] += 1
        gate = self.gates[self._gate_in(context.message)]
        await event_queue.enqueue_event(self._new_task(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        for number, piece in enumerate(PIECES):
            if number:
                await gate.acquire()
            last = number == len(PIECES) - 1
            await updater.add_artifact(self._words(piece), "answer", append=number > 0, last_chunk=last)
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task as canceled; stopping `execute` is the SDK's."""
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def let_go(self, request: Request) -> JSONResponse:
        """Let one piece through a gate."""
        self.gates[request.path_params["gate"]].release()
        return JSONResponse({})

    async def tell_asked(self, request: Request) -> JSONResponse:
        """What the agent was asked so far."""
        return JSONResponse(self.asked)
