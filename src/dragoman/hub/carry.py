"""Carry one opened call to its end: each batch of events the courier brings is recorded before it counts.

A call that runs out of time ends as failed, and its target is told to stop.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Final

from dragoman.hub.tasks import TaskBook
from dragoman.hub.validate import Compiled, Schemas
from dragoman.model.agent import Agent
from dragoman.model.call import OpenedCall
from dragoman.model.errors import DragomanError, Failure
from dragoman.model.events import StatusChanged
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier

LOG: Final = logging.getLogger("dragoman.hub")

Spawn = Callable[[Coroutine[None, None, None]], object]


class Carrier:
    """Carries calls for one replica."""

    def __init__(
        self,
        *,
        courier: Courier,
        tasks: TaskBook,
        schemas: Schemas,
        clock: Clock,
        spawn: Spawn,
        ended: Callable[[Task], object],
    ) -> None:
        self._courier = courier
        self._tasks = tasks
        self._schemas = schemas
        self._clock = clock
        self._spawn = spawn
        self._ended = ended

    async def carry(self, opened: OpenedCall) -> Task:
        """The task at its end, or where it waits for its caller."""
        call, task = opened.call, opened.task
        compiled = None if call.skill is None else self._schemas.of(call.agent, call.skill)
        try:
            delivered = await self._courier.deliver(opened)
            task = await self._tasks.record(task, delivered.events, compiled)
            if not delivered.settled:
                async for events in self._courier.follow(opened, task):
                    task = await self._tasks.record(task, events, compiled)
        except asyncio.CancelledError:
            raise
        except DragomanError as error:
            task = await self._fail(task, error.failure(), compiled)
        except Exception:
            # The call must end, whatever broke; the traceback is for us, the caller gets the id.
            LOG.exception("a call broke inside the hub", extra={"fields": {"call_id": task.id}})
            failure = DragomanError("The hub failed to carry this call.", error_id=task.id).failure()
            task = await self._fail(task, failure, compiled)
        if task.ended:
            self._tasks.live.pop(task.id, None)
            self._ended(task)
            if task.failure is not None and task.failure.code == "AGENT_TIMEOUT":
                self._spawn(self._stop(task, call.agent))
        return task

    async def give_up(self, task: Task, failure: Failure) -> None:
        """End a call that is not carried on, and note it like any other."""
        task = await self._fail(task, failure, None)
        if task.ended:
            self._ended(task)

    async def _fail(self, task: Task, failure: Failure, compiled: Compiled | None) -> Task:
        ended = StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=failure)
        return await self._tasks.record(task, (ended,), compiled)

    async def _stop(self, task: Task, agent: Agent) -> None:
        await self._courier.cancel(task, agent, "timeout")
