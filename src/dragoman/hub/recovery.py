"""After a restart: every call that an earlier life of this hub left open goes on, or ends with a clear word.

A call that may be repeated (it came with a key, or its skill is idempotent) is sent again under the same id; any
other ends as failed, reason `interrupted`. Nothing stays open for ever.
"""

import logging
from typing import Final

from dragoman.hub.admission import Admission
from dragoman.hub.carry import Carrier, Spawn
from dragoman.hub.tasks import TaskBook
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.errors import AgentTimeout, DragomanError, Interrupted
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.store import CALLS, Job, Owner, Scope, Store

LOG: Final = logging.getLogger("dragoman.hub")
BATCH: Final = 100


class Recovery:
    """Takes up what earlier lives of this replica left open."""

    def __init__(
        self,
        *,
        store: Store,
        owner: Owner,
        clock: Clock,
        admission: Admission,
        tasks: TaskBook,
        carrier: Carrier,
        spawn: Spawn,
    ) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._admission = admission
        self._tasks = tasks
        self._carrier = carrier
        self._spawn = spawn

    async def run(self) -> None:
        """Take up every open call; one that breaks does not keep the others from it."""
        count = 0
        while jobs := await self._store.lease((CALLS,), BATCH, self._owner):
            for job in jobs:
                count += 1
                try:
                    await self._take_up(job)
                except Exception:
                    LOG.exception("an open call could not be taken up", extra={"fields": {"call_id": job.task_id}})
        if count:
            LOG.info("open calls taken up", extra={"fields": {"count": count}})

    async def _take_up(self, job: Job) -> None:
        task = await self._store.load(Scope(tenant=job.tenant, principal=None), job.task_id)
        if task is None or task.ended:
            await self._store.finish(job)
            return
        if task.state in INTERRUPTED:
            return  # It waits for its caller, who may come back.
        try:
            call = await self._admission.readmit(task)
            self._refuse_late(task)
            if not may_repeat(task, call):
                raise Interrupted(reason="interrupted", agent_id=task.agent_id)
        except DragomanError as error:
            await self._carrier.give_up(task, error.failure())
            return
        self._tasks.live[task.id] = task
        self._spawn(_carry(self._carrier, OpenedCall(call=call, task=task, attempt=job.attempt)))

    def _refuse_late(self, task: Task) -> None:
        if task.deadline is not None and task.deadline <= self._clock.now():
            given_ms = round((task.deadline - task.created_at).total_seconds() * 1000)
            raise AgentTimeout(
                "The call's time ran out while the hub was down.", timeout_ms=given_ms, agent_id=task.agent_id
            )


def may_repeat(task: Task, call: AdmittedCall) -> bool:
    """Whether a call may be sent a second time."""
    if task.asked.at_most_once:
        return False
    return task.asked.idempotency_key is not None or (call.skill is not None and call.skill.idempotent)


async def _carry(carrier: Carrier, opened: OpenedCall) -> None:
    await carrier.carry(opened)
