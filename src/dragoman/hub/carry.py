"""Carry one opened call to its end: each batch of events the courier brings is recorded before it counts.

A call that runs out of time ends as failed, and its target is told to stop. One that is cancelled meanwhile is let go.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, aclosing
from typing import Final

import msgspec

from dragoman.hub.flow.flow import Flow
from dragoman.hub.flow.gate import waited
from dragoman.hub.flow.queue import Permit, give_back, kept_to_the_end
from dragoman.hub.follow import until_settled
from dragoman.hub.tasks import TaskBook
from dragoman.model.agent import Agent
from dragoman.model.call import Before, OpenedCall
from dragoman.model.compiled import NO_SCHEMA, Compiled
from dragoman.model.content import Text
from dragoman.model.errors import AgentError, DragomanError, Failure
from dragoman.model.events import Sent, StatusChanged
from dragoman.model.fit import Feature
from dragoman.model.lifecycle import moved_to
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.observe.logs import IN_CALL
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier, Delivered
from dragoman.ports.store import Tasks

LOG: Final = logging.getLogger("dragoman.hub")

Spawn = Callable[[Coroutine[None, None, None]], asyncio.Task[None]]
Next = Callable[[OpenedCall, str], Awaitable[OpenedCall | None]]  # with the code of why this one cannot take it


async def nobody_else(_: OpenedCall, _code: str) -> None:
    """No other agent could have a call."""


class Carrier:
    """Carries calls for one replica."""

    def __init__(
        self,
        *,
        courier: Courier,
        tasks: TaskBook,
        store: Tasks,
        bus: Bus,
        clock: Clock,
        spawn: Spawn,
        flow: Flow,
        resting: Callable[[], AbstractContextManager[None]],
        ended: Callable[[Task], object],
        next_for: Next = nobody_else,
        waited: Callable[[str, int], None] = lambda _id, _ms: None,
    ) -> None:
        self._courier = courier
        self._tasks = tasks
        self._store = store
        self._bus = bus
        self._clock = clock
        self._spawn = spawn
        self._loop = asyncio.get_running_loop()  # Kept: to ask for it is a system call each time.
        self._flow = flow
        self._resting = resting  # gives way to others while a call only waits for what its target reports
        self._ended = ended
        self._waited = waited  # told how long a call waited for its turn, in milliseconds
        self._next = next_for  # the same call for another agent that could have it
        self._carrying: dict[str, asyncio.Task[object] | None] = {}
        self._let_go: dict[str, Task] = {}
        self._waiting: set[str] = set()  # calls whose turn it is not yet

    async def carry(  # noqa: C901 - a call's whole way, in its order
        self, opened: OpenedCall, *, was_sent: bool = False, begins: bool = False
    ) -> Task:
        """The task at its end, or where it waits for its caller; one that was sent already is only followed.

        `begins`: that it is worked on is noted when it is its turn, before it is sent.
        """
        call, task = opened.call, opened.task
        compiled = call.compiled
        # A further message for a call that is under way goes with that one's permit.
        entered = None if task.id in self._carrying else self._flow.enter(opened, sent=was_sent)
        permit, waiting = (entered, None) if isinstance(entered, Permit) else (None, entered)
        reached = was_sent
        carrying = self._carrying[task.id] = asyncio.current_task(self._loop)
        IN_CALL.set(task)
        try:
            if waiting is not None:
                permit, opened = await self._turn(opened, waiting)
            if opened.waited_ms:
                self._waited(task.id, opened.waited_ms)
            if begins:
                task = await self._tasks.record(task, (StatusChanged(at=self._clock.now(), state=TaskState.WORKING),))
                opened = msgspec.structs.replace(opened, task=task)
                if task.ended:
                    return task
            settled, reached = False, True
            if not was_sent and self._courier.streams(opened):
                task, settled, unsent = await self._streamed(opened, task, compiled)
                if unsent is not None:
                    give_back(permit)
                    permit = None
                    return await self._elsewhere(opened, task, unsent, compiled)
            elif not was_sent:
                delivered = await self._courier.deliver(opened)
                if delivered.unsent and has_others(opened):
                    give_back(permit)
                    permit = None
                    return await self._elsewhere(opened, task, delivered, compiled)
                task = await self._tasks.record(task, delivered.events, compiled)
                settled = delivered.settled
            if not settled and not task.ended:
                permit = kept_to_the_end(permit)
                task = await self._followed(opened, task, compiled)
            if task.state in INTERRUPTED and not call.operation.interactive:
                task = await self._refuse_question(task, call.agent, compiled)
        except asyncio.CancelledError:
            task = self._let_go.pop(task.id, task)
            if carrying is None or not task.ended:
                raise
            carrying.uncancel()
        except Exception as error:  # noqa: BLE001 - the call must end, whatever broke
            task = await self._fail(task, _failure_of(error, task), compiled)
        finally:
            self._carrying.pop(task.id, None)
            IN_CALL.set(None)
            if permit is not None:
                permit.give_back()
        self._carried(task, call.agent, reached=reached)
        return task

    def waits(self, task_id: str) -> bool:
        """Whether a call waits for its turn: its agent knows nothing of it."""
        return task_id in self._waiting

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
        task = await self._fail(task, failure, NO_SCHEMA)
        if task.ended:
            self._ended(task)

    def _carried(self, task: Task, agent: Agent, *, reached: bool) -> None:
        """Nobody carries this call any more; `reached`: its agent knows of it."""
        if task.state not in FINAL:
            self._flow.ended(task)  # It waits for its caller, and takes nobody's place meanwhile.
            return
        self._tasks.live.drop(task.id)
        self._ended(task)
        if reached and task.failure is not None and task.failure.code == "AGENT_TIMEOUT":
            self._spawn(self._stop(task, agent, "timeout"))

    async def _turn(self, opened: OpenedCall, waiting: Awaitable[Permit]) -> tuple[Permit, OpenedCall]:
        """The permit, once it is the call's turn; until then another may have its slot. Raises AgentTimeout."""
        since, task_id = self._clock.monotonic(), opened.task.id
        self._waiting.add(task_id)
        try:
            with self._resting():
                permit = await waiting
        finally:
            self._waiting.discard(task_id)
        return permit, waited(opened, self._clock.monotonic() - since)

    async def _elsewhere(self, opened: OpenedCall, task: Task, unsent: Delivered, compiled: Compiled) -> Task:
        """The task at its end, carried by the next agent that can take it; nothing of it reached this one.

        That this one was tried is on disk before the next is.
        """
        agent = opened.call.agent
        self._flow.ended(task)
        failed = unsent.events[-1]
        code = failed.failure.code if isinstance(failed, StatusChanged) and failed.failure else ""
        moved = await self._next(opened, code)
        if moved is None:
            task = await self._tasks.record(task, unsent.events, compiled)
            self._carried(task, agent, reached=False)
            return task
        tried = Sent(at=self._clock.now(), agent_id=agent.id, attempt=opened.attempt, failed=code)
        task = await self._tasks.record(task, (tried,), compiled)
        if task.ended:
            self._carried(task, agent, reached=False)
            return task
        task = moved_to(task, moved.call.agent)
        self._tasks.live.add(task)
        self._carrying.pop(task.id, None)
        return await self.carry(msgspec.structs.replace(moved, task=task))

    async def _streamed(
        self, opened: OpenedCall, task: Task, compiled: Compiled
    ) -> tuple[Task, bool, Delivered | None]:
        """The task after all that its target told in one stream, and whether it is settled; or that nothing was sent.

        Each batch is on disk before the next is asked for: what comes meanwhile is that next one.
        """
        settled = False
        async with aclosing(self._courier.stream(opened)) as stream:
            async for delivered in stream:
                if delivered.unsent and has_others(opened):
                    return task, False, delivered
                task = await self._tasks.record(task, delivered.events, compiled)
                if delivered.recorded is not None:
                    delivered.recorded()
                settled = delivered.settled
                if task.ended:
                    break
        return task, settled, None

    async def _followed(self, opened: OpenedCall, task: Task, compiled: Compiled) -> Task:
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

    async def _refuse_question(self, task: Task, agent: Agent, compiled: Compiled) -> Task:
        """Nobody can answer the target: its task is cancelled there, and the caller is told what it wanted."""
        said = task.status_message.parts if task.status_message is not None else ()
        question = "".join(part.text for part in said if isinstance(part, Text))
        self._spawn(self._stop(task, agent, "nobody can answer"))
        reason = "input_required" if task.state is TaskState.INPUT_REQUIRED else "auth_required"
        error = AgentError(question or "The agent needs more input.", reason=reason, question=question or None)
        return await self._fail(task, error.failure(), compiled)

    async def _fail(self, task: Task, failure: Failure, compiled: Compiled) -> Task:
        ended = StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=failure)
        return await self._tasks.record(task, (ended,), compiled)

    async def _stop(self, task: Task, agent: Agent, reason: str) -> None:
        await self._courier.cancel(task, agent, reason)


def has_others(opened: OpenedCall) -> bool:
    """Whether another agent could have a call; not where an earlier life of the hub may have sent it to this one."""
    return bool(opened.call.others) and opened.before is Before.UNSENT


def _failure_of(error: Exception, task: Task) -> Failure:
    """Why a call failed. It must end, whatever broke: the traceback is for us, the caller gets the id."""
    if isinstance(error, DragomanError):
        return error.failure()
    LOG.exception("a call broke inside the hub", extra={"fields": {"call_id": task.id}})
    return DragomanError("The hub failed to carry this call.", error_id=task.id).failure()
