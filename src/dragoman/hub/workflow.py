"""Workflows: a call whose steps follow each other, each an ordinary call of its own.

    the first call's task   submitted ─ working, 1 of 3 ─ working, 2 of 3 ─ working, 3 of 3 ─ completed
    its calls                           …-0 ────────────┘ …-1 ────────────┘ …-2.1, …-2.2 ───┘

The first call's task itself goes to no agent. It owns the job of the whole, which ends with it, in the same commit: at
no moment is a workflow open that nobody would carry on. Whoever takes the job up goes through the steps from the
beginning. A step's call has a name that follows from its place, so one that was opened before is found, never opened
again. The calls are carried by the worker of all accepted calls and only waited for here: no workflow takes a place
that its own steps need. A step whose agent takes it only later, for its limits or because it is left alone, waits for
that here, as long as the whole has time.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Final

import msgspec

from dragoman.hub.admission import Admission
from dragoman.hub.cancel import Canceller
from dragoman.hub.flow.flow import Flow
from dragoman.hub.follow import until_settled
from dragoman.hub.grants import read_grant, was_signed
from dragoman.hub.step_calls import (
    Stage,
    StepCall,
    artifacts_from,
    asked_of,
    failure_at,
    plan,
    put_off_s,
    result_of,
    trace_below,
    used_together,
    why_not,
)
from dragoman.hub.tasks import TaskBook
from dragoman.model.call import Arrival, Caller, OpenedCall
from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import AgentTimeout, DragomanError, Failure, NotAuthorized
from dragoman.model.events import ArtifactChunk, StatusChanged, TaskEvent
from dragoman.model.json import Json
from dragoman.model.states import TaskState
from dragoman.model.steps import FIRST, PREVIOUS, as_object, refuse_too_large
from dragoman.model.task import Task
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.store import Job, Once, Scope, Store

LOG: Final = logging.getLogger("dragoman.hub")
AT_ONCE: Final = 1024  # most workflows under way; they only wait
STEP: Final = "step"
Waiting = asyncio.Task[Task | None]  # for a task's end; None where it does not come in time
NAMES_KEPT: Final = timedelta(days=1)  # beyond the workflow's own time


class _Stopped(Exception):
    """The workflow has ended by another's hand."""


class _StepFailed(Exception):
    """A step has no result; `failure` says why, and which."""

    def __init__(self, call: StepCall, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure_at(call, failure)


_Stop = _Stopped | _StepFailed


class _Run(msgspec.Struct, kw_only=True):
    """How far a workflow has come in this life of the hub."""

    first: Task
    caller: Caller
    signed: bool  # the request that made it was
    deadline: float  # monotonic
    open: list[Task] = []  # the calls of the present stage
    ended: list[Task] = []  # those of the stages before
    results: dict[str, Json] = {}

    def late(self) -> AgentTimeout:
        """The whole has no time left."""
        first = self.first
        given = timedelta() if first.deadline is None else first.deadline - first.created_at
        return AgentTimeout("The workflow's time ran out.", timeout_ms=round(given.total_seconds() * 1000))


class _Calls(msgspec.Struct, kw_only=True):
    """The calls of one stage, by how far they have come."""

    due: list[StepCall]  # to be opened now
    put_off: dict[Waiting, StepCall] = {}  # to be opened later, each by the wait for that
    running: dict[Waiting, StepCall] = {}
    ended: dict[str, Task] = {}
    refused: dict[str, int] = {}  # how often


class Workflows:
    """Carries workflows from step to step."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        clock: Clock,
        admission: Admission,
        tasks: TaskBook,
        canceller: Canceller,
        flow: Flow,
        opened: Callable[[], None],
        ended: Callable[[Task], object],
        most_bytes: int,
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._admission = admission
        self._tasks = tasks
        self._canceller = canceller
        self._flow = flow
        self._opened = opened  # told when the call of a step waits for a worker
        self._ended = ended
        self._most_bytes = most_bytes  # that a step is given, or that steps side by side answer

    async def carry(self, job: Job) -> None:
        """Carry one workflow to its end."""
        first = await self._store.load(Scope(tenant=job.tenant, principal=None), job.task_id)
        if first is None or first.ended:
            await self._store.finish(job)
            return
        deadline = self._clock.monotonic() + (self._tasks.left_s(first) or 0.0)
        run = _Run(first=first, caller=read_grant(job.payload), signed=was_signed(job.payload), deadline=deadline)
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(self._settled(first, deadline))
            try:
                await self._go_through(run, watching)
            except _Stopped:
                pass
            except _StepFailed as error:
                await self._fail(run, error.failure)
            except Exception:
                # The workflow must end, whatever broke; the traceback is for us, the caller gets the id.
                LOG.exception("a workflow broke inside the hub", extra={"fields": {"call_id": first.id}})
                broken = DragomanError("The hub failed to carry this workflow.", error_id=first.id)
                await self._fail(run, broken.failure())
            watching.cancel()
        await asyncio.gather(*[self._stop(run.caller, call) for call in run.open])

    async def _go_through(self, run: _Run, watching: Waiting) -> None:
        stages = plan(run.first)
        for number, stage in enumerate(stages):
            await self._tell(run, stage, number, len(stages))
            ended = await self._awaited(run, stage, watching)
            run.open = []
            run.ended += ended
            self._keep(run, stage, ended)
        now = self._clock.now()
        last = stages[-1]
        made = [ArtifactChunk(at=now, artifact=each) for each in artifacts_from(last, run.ended[-len(last.calls) :])]
        done = StatusChanged(
            at=now,
            state=TaskState.COMPLETED,
            progress=1.0,
            result=as_object(run.results[PREVIOUS]),
            usage=used_together(run.ended),
        )
        await self._end(run, done, made)

    async def _tell(self, run: _Run, stage: Stage, number: int, total: int) -> None:
        """Say which step runs now, unless an earlier life of the hub has said so."""
        if run.first.progress is not None and run.first.progress >= number / total:
            return
        skills = ", ".join(call.skill or "the first call" for call in stage.calls)
        words = Text(text=f"Step {number + 1} of {total}: {skills}")
        said = Message(id=f"{run.first.id}-at-{number}", role=Role.AGENT, parts=(words,))
        now = self._clock.now()
        told = StatusChanged(at=now, state=TaskState.WORKING, progress=number / total, message=said)
        run.first = await self._tasks.record(run.first, (told,))
        if run.first.ended:
            raise _Stopped

    async def _call(self, run: _Run, call: StepCall) -> Task:
        """The task of one call: opened now, or in an earlier life of the hub."""
        first, clock = run.first, self._clock
        known = await self._store.load(Scope(tenant=first.tenant, principal=first.caller_id), call.call_id)
        if known is not None:
            return known
        left_s = run.deadline - clock.monotonic()
        if left_s <= 0:
            raise run.late()
        await self._refuse_revoked(run.caller)
        arrival = Arrival(
            task_id=call.call_id,
            request_id=call.call_id,
            at=clock.now(),
            dialect=first.dialect,
            trace=trace_below(first, call),
            since=clock.monotonic(),
            signed=run.signed,
        )
        asked = asked_of(first, call, run.results, timeout_s=left_s, most_bytes=self._most_bytes)
        admitted = await self._admission.admit(run.caller, asked, arrival, first)
        expires_at = (first.deadline or first.created_at) + NAMES_KEPT
        once = Once(principal=first.caller_id, scope=STEP, key=call.call_id, digest=b"", expires_at=expires_at)
        try:
            opened = await self._tasks.open(admitted, once)
        except BaseException:
            self._flow.given_up(admitted, step=True)
            raise
        self._opened()
        return opened.task if isinstance(opened, OpenedCall) else opened

    async def _awaited(self, run: _Run, stage: Stage, watching: Waiting) -> list[Task]:
        """The calls of a stage, all completed. Raises what stops the workflow, as soon as it is known."""
        calls, stop = _Calls(due=list(stage.calls)), None
        async with asyncio.TaskGroup() as group:
            while stop is None and calls.due:
                stop = await self._begin(run, calls, watching, group) or await _stop_of(run, calls, watching)
            for wait in (*calls.running, *calls.put_off):
                wait.cancel()
        if stop is not None:
            raise stop
        return [calls.ended[call.call_id] for call in stage.calls]

    async def _begin(self, run: _Run, calls: _Calls, watching: Waiting, group: asyncio.TaskGroup) -> _Stop | None:
        """Open the calls that are due, or put them off where their agents take them only later; what stops it."""
        for call in calls.due:
            if watching.done() and watching.result() is not None:
                return _Stopped()
            try:
                task = await self._call(run, call)
            except DragomanError as error:
                refused = calls.refused.get(call.call_id, 0)
                wait_s = put_off_s(error, refused)
                if wait_s is None or self._clock.monotonic() + wait_s >= run.deadline:
                    return _StepFailed(call, error.failure())
                fields = {"call_id": call.call_id, "workflow": run.first.id, "code": error.code, "wait_s": wait_s}
                LOG.info("a step waits until its agent takes it", extra={"fields": fields})
                calls.refused[call.call_id] = refused + 1
                calls.put_off[group.create_task(self._clock.sleep(wait_s))] = call
            else:
                run.open.append(task)
                calls.running[group.create_task(self._settled(task, run.deadline))] = call
        calls.due = []
        return None

    def _keep(self, run: _Run, stage: Stage, ended: Sequence[Task]) -> None:
        """Have the results of a stage at hand for the steps after it."""
        result = result_of(stage, ended)
        if stage.is_list:
            try:
                refuse_too_large(result, self._most_bytes)
            except DragomanError as error:
                raise _StepFailed(stage.calls[0], error.failure()) from None
        run.results.setdefault(FIRST, result)
        run.results[PREVIOUS] = result
        for call, task in zip(stage.calls, ended, strict=True):
            if call.step is not None and call.step.id is not None:
                run.results[call.step.id] = task.result

    async def _refuse_revoked(self, caller: Caller) -> None:
        """A key that was taken back while the workflow ran opens no further calls. Raises NotAuthorized."""
        if caller.key_id is None:
            return
        key, now = await self._store.find_key(caller.key_id), self._clock.now()
        if key is None or (key.revoked_at is not None and key.revoked_at <= now):
            raise NotAuthorized("The key was revoked.", reason="revoked")
        if key.expires_at is not None and key.expires_at <= now:
            raise NotAuthorized("The key has expired.", reason="expired")

    async def _settled(self, task: Task, deadline: float) -> Task | None:
        """The task once it has ended; None where that is not in time."""
        try:
            return await until_settled(
                task, store=self._store, bus=self._bus, clock=self._clock, deadline=deadline, timeout_s=0.0
            )
        except AgentTimeout:
            return None

    async def _fail(self, run: _Run, failure: Failure) -> None:
        usage = used_together(run.ended)
        await self._end(run, StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=failure, usage=usage))

    async def _end(self, run: _Run, end: StatusChanged, made: Sequence[TaskEvent] = ()) -> None:
        ended = await self._tasks.record(run.first, (*made, end))
        # Whoever was faster, and cancelled it, has noted it too.
        if ended.state is end.state:
            self._ended(ended)

    async def _stop(self, caller: Caller, task: Task) -> None:
        """Cancel a call that is of no use any more, if it still runs."""
        with contextlib.suppress(DragomanError):
            task = await self._tasks.load(caller, task.id)
            await self._canceller.cancel(caller, task, "the workflow has ended")


async def _stop_of(run: _Run, calls: _Calls, watching: Waiting) -> _Stop | None:
    """What stops the workflow while the calls of a stage run; None once all are completed, or some are due."""
    while not calls.due and (calls.running or calls.put_off):
        done, _ = await asyncio.wait({*calls.running, *calls.put_off, watching}, return_when=asyncio.FIRST_COMPLETED)
        for wait in [each for each in calls.running if each in done]:
            call, task = calls.running.pop(wait), wait.result()
            failure = run.late().failure() if task is None else why_not(task)
            if failure is not None:
                return _StepFailed(call, failure)
            if task is not None:
                calls.ended[call.call_id] = task
        calls.due = [calls.put_off.pop(each) for each in list(calls.put_off) if each in done]
        unfinished = (*calls.running.values(), *calls.put_off.values(), *calls.due)
        if unfinished and watching in done:
            return _Stopped() if watching.result() is not None else _StepFailed(unfinished[0], run.late().failure())
    return None
