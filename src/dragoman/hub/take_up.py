"""Calls from their queue: those that were accepted while every slot was taken, and what an earlier life left open.

A call that was sent and whose target can still be asked, or reports by itself, is only followed. One that may be
repeated is sent (again) under the same id; any other ends as failed, reason `interrupted`. Nothing stays open for ever.
A target that connects to the hub says by itself which calls it still has: there also one that may not be repeated is
carried on, and goes on if the target has it.
"""

import contextlib
from datetime import datetime

from dragoman.hub.admission import Admission
from dragoman.hub.cancel import Canceller
from dragoman.hub.carry import Carrier
from dragoman.hub.tasks import TaskBook
from dragoman.model.agent import Via
from dragoman.model.call import AdmittedCall, Before, Caller, OpenedCall
from dragoman.model.errors import AgentTimeout, DragomanError, Interrupted, TaskNotCancelable
from dragoman.model.fit import Feature
from dragoman.model.operations import Wait
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.store import Job, Scope, Store


class TakeUp:
    """Carries the calls of the queue."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        admission: Admission,
        tasks: TaskBook,
        carrier: Carrier,
        canceller: Canceller,
    ) -> None:
        self._store = store
        self._clock = clock
        self._admission = admission
        self._tasks = tasks
        self._carrier = carrier
        self._canceller = canceller

    async def carry(self, job: Job) -> None:
        """Carry one call to its end, or give it up with a clear word."""
        task = await self._store.load(Scope(tenant=job.tenant, principal=None), job.task_id)
        if task is None or task.ended:
            await self._store.finish(job)
            return
        if task.state in INTERRUPTED:
            return  # It waits for its caller, who may come back.
        if await self._is_left_behind(task):
            with contextlib.suppress(TaskNotCancelable):
                caller = Caller(tenant=task.tenant, id=task.caller_id)
                await self._canceller.cancel(caller, task, "the workflow has ended")
            return
        try:
            call = await self._admission.readmit(task, self._tasks.left_s(task))
            refuse_late(task, call)
            was_sent = may_follow(task, call)
            before = sent_before(task, call, job)
            if not was_sent and before is Before.UNREPEATABLE and call.endpoint.via is not Via.CONNECTED:
                raise Interrupted(reason="interrupted", agent_id=task.agent_id)
        except DragomanError as error:
            await self._carrier.give_up(task, error.failure())
            return
        self._tasks.live.add(task)
        waited_ms = _waited_ms(task, self._clock.now()) if before is Before.UNSENT else 0
        opened = OpenedCall(call=call, task=task, attempt=job.attempt, before=before, waited_ms=waited_ms)
        # That work begins is noted before it is sent: from there on nobody can know that it was not.
        await self._carrier.carry(opened, was_sent=was_sent, begins=task.state is TaskState.SUBMITTED)

    async def _is_left_behind(self, task: Task) -> bool:
        """Whether this is a step of a workflow that ended without it, and then the hub died before it was cancelled."""
        if task.parent_id is None or not task.id.startswith(f"{task.parent_id}-"):
            return False
        first = await self._store.load(Scope(tenant=task.tenant, principal=task.caller_id), task.parent_id)
        return first is not None and first.ended


def refuse_late(task: Task, call: AdmittedCall) -> None:
    """Raises AgentTimeout where no time is left."""
    if task.deadline is not None and call.timeout_s <= 0:
        given_ms = round((task.deadline - task.created_at).total_seconds() * 1000)
        raise AgentTimeout("The call's time ran out before it was sent.", timeout_ms=given_ms, agent_id=task.agent_id)


def _waited_ms(task: Task, now: datetime) -> int:
    """How long a call has been in the queue."""
    return max(0, round((now - task.created_at).total_seconds() * 1000))


def may_follow(task: Task, call: AdmittedCall) -> bool:
    """Whether the outcome can still be learnt without sending the call again."""
    if task.remote is None or task.remote.task_id is None:
        return False
    return Feature.GET in call.endpoint.features or Feature.REPORTS in call.endpoint.features


def sent_before(task: Task, call: AdmittedCall, job: Job) -> Before:
    """Whether a call of the queue may have been sent before, and may be sent once more."""
    if not may_send(task, call):
        return Before.UNREPEATABLE
    return Before.UNSENT if job.attempt == 1 else Before.REPEATABLE


def may_send(task: Task, call: AdmittedCall) -> bool:
    """Whether a call may be sent, perhaps for the second time."""
    asked = task.asked
    accepted = asked.wait is Wait.NONE
    if asked.at_most_once:
        return accepted and task.state is TaskState.SUBMITTED
    return accepted or asked.idempotency_key is not None or (call.skill is not None and call.skill.idempotent)
