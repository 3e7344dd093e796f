"""Carry one opened call to its end: each batch of events the courier brings is recorded before it counts.

A call that runs out of time ends as failed, and its target is told to stop. One that is cancelled meanwhile is let go.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, aclosing
from typing import Final

from dragoman.hub.follow import until_settled
from dragoman.hub.tasks import TaskBook
from dragoman.hub.validate import Compiled, Schemas
from dragoman.model.agent import Agent
from dragoman.model.call import OpenedCall
from dragoman.model.content import Text
from dragoman.model.errors import AgentError, DragomanError, Failure
from dragoman.model.events import StatusChanged
from dragoman.model.fit import Feature
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier
from dragoman.ports.store import Tasks

LOG: Final = logging.getLogger("dragoman.hub")

Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]


class Carrier:
    """Carries calls for one replica."""

    def __init__(
        self,
        *,
        courier: Courier,
        tasks: TaskBook,
        schemas: Schemas,
        store: Tasks,
        bus: Bus,
        clock: Clock,
        spawn: Spawn,
        resting: Callable[[], AbstractContextManager[None]],
        ended: Callable[[Task], object],
    ) -> None:
        self._courier = courier
        self._tasks = tasks
        self._schemas = schemas
        self._store = store
        self._bus = bus
        self._clock = clock
        self._spawn = spawn
        self._resting = resting  # gives way to others while a call only waits for what its target reports
        self._ended = ended
        self._carrying: dict[str, asyncio.Task[object]] = {}
        self._let_go: dict[str, Task] = {}

    async def carry(self, opened: OpenedCall, *, was_sent: bool = False) -> Task:
        """The task at its end, or where it waits for its caller; one that was sent already is only followed."""
        call, task = opened.call, opened.task
        compiled = None if call.skill is None else self._schemas.of(call.agent, call.skill)
        carrying = asyncio.current_task()
        if carrying is not None:
            self._carrying[task.id] = carrying
        try:
            settled = False
            if not was_sent and self._courier.streams(opened):
                task, settled = await self._streamed(opened, task, compiled)
            elif not was_sent:
                delivered = await self._courier.deliver(opened)
                task = await self._tasks.record(task, delivered.events, compiled)
                settled = delivered.settled
            if not settled and not task.ended:
                task = await self._followed(opened, task, compiled)
            if task.state in INTERRUPTED and not call.operation.interactive:
                task = await self._refuse_question(task, call.agent, compiled)
        except asyncio.CancelledError:
            task = self._let_go.pop(task.id, task)
            if carrying is None or not task.ended:
                raise
            carrying.uncancel()
        except DragomanError as error:
            task = await self._fail(task, error.failure(), compiled)
        except Exception:
            # The call must end, whatever broke; the traceback is for us, the caller gets the id.
            LOG.exception("a call broke inside the hub", extra={"fields": {"call_id": task.id}})
            failure = DragomanError("The hub failed to carry this call.", error_id=task.id).failure()
            task = await self._fail(task, failure, compiled)
        finally:
            self._carrying.pop(task.id, None)
        if task.ended:
            self._tasks.live.pop(task.id, None)
            self._ended(task)
            if task.failure is not None and task.failure.code == "AGENT_TIMEOUT":
                self._spawn(self._stop(task, call.agent, "timeout"))
        return task

    def let_go(self, task: Task) -> None:
        """The task has ended by another's hand: whoever carries it stops, and answers with it as it is."""
        carrying = self._carrying.pop(task.id, None)
        if carrying is None:
            self._ended(task)
        else:
            self._let_go[task.id] = task
            carrying.cancel()

    async def give_up(self, task: Task, failure: Failure) -> None:
        """End a call that is not carried on, and note it like any other."""
        task = await self._fail(task, failure, None)
        if task.ended:
            self._ended(task)

    async def _streamed(self, opened: OpenedCall, task: Task, compiled: Compiled | None) -> tuple[Task, bool]:
        """The task after all that its target told in one stream, and whether it is settled.

        Each batch is on disk before the next is asked for: what comes meanwhile is that next one.
        """
        settled = False
        async with aclosing(self._courier.stream(opened)) as stream:
            async for delivered in stream:
                task = await self._tasks.record(task, delivered.events, compiled)
                if delivered.recorded is not None:
                    delivered.recorded()
                settled = delivered.settled
                if task.ended:
                    break
        return task, settled

    async def _followed(self, opened: OpenedCall, task: Task, compiled: Compiled | None) -> Task:
        """The task once it is settled: by asking after it, or by what its target reports."""
        call = opened.call
        features = call.endpoint.features
        if Feature.REPORTS in features and Feature.GET not in features:
            with self._resting():
                return await until_settled(
                    task,
                    store=self._store,
                    bus=self._bus,
                    clock=self._clock,
                    deadline=call.deadline,
                    timeout_s=call.timeout_s,
                )
        async with aclosing(self._courier.follow(opened, lambda: task)) as further:
            async for events in further:
                task = await self._tasks.record(task, events, compiled)
                if task.ended:
                    break
        return task

    async def _refuse_question(self, task: Task, agent: Agent, compiled: Compiled | None) -> Task:
        """Nobody can answer the target: its task is cancelled there, and the caller is told what it wanted."""
        said = task.status_message.parts if task.status_message is not None else ()
        question = "".join(part.text for part in said if isinstance(part, Text))
        self._spawn(self._stop(task, agent, "nobody can answer"))
        reason = "input_required" if task.state is TaskState.INPUT_REQUIRED else "auth_required"
        error = AgentError(question or "The agent needs more input.", reason=reason, question=question or None)
        return await self._fail(task, error.failure(), compiled)

    async def _fail(self, task: Task, failure: Failure, compiled: Compiled | None) -> Task:
        ended = StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=failure)
        return await self._tasks.record(task, (ended,), compiled)

    async def _stop(self, task: Task, agent: Agent, reason: str) -> None:
        await self._courier.cancel(task, agent, reason)
