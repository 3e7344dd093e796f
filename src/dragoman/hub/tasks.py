"""The book of tasks: the only place that opens, grows and loads them.

A task is judged here when it completes: its answer becomes one object, and one that breaks the skill's output schema
is the agent's failure. What others wrote in between (`Raced`) is taken as it is, and what is still legal goes after it.
"""

from collections.abc import Sequence
from datetime import timedelta
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.dialects.flatten import answer_object
from dragoman.hub.validate import Compiled
from dragoman.model.call import AdmittedCall, Caller, OpenedCall
from dragoman.model.errors import BadAgentReply, IdempotencyConflict, TaskNotFound
from dragoman.model.events import MessageAdded, StatusChanged, TaskEvent
from dragoman.model.lifecycle import fold, legal, output_of
from dragoman.model.operations import SendTask, Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.store import (
    CALLBACKS,
    CALLS,
    Duplicate,
    Growth,
    NewJob,
    Once,
    Opening,
    Owner,
    Raced,
    Scope,
    Store,
)

KEY: Final = "key"
REQUEST: Final = "request"

# JSON, not MessagePack: that has no whole numbers beyond 64 bits.
_encode = msgspec.json.Encoder(order="sorted").encode


class TaskBook:
    """Opens, records and loads tasks for one replica."""

    def __init__(self, *, store: Store, clock: Clock, owner: Owner, keep_h: float) -> None:
        self._store = store
        self._clock = clock
        self._keep = timedelta(hours=keep_h)
        self._call_job = NewJob(queue=CALLS, owner=owner)
        self.live: dict[str, Task] = {}  # tasks this replica carries now

    async def open(self, call: AdmittedCall) -> OpenedCall | Task:
        """Open the call's task; or the task that an earlier call with the same key made.

        Raises IdempotencyConflict, Overloaded.
        """
        asked, task = call.operation, call.task
        if asked.continues is not None:
            return await self._continue(call)
        once = self._once(call)
        if once is not None and once.scope == REQUEST:
            known = await self._store.find_once(task.tenant, once.principal, REQUEST, once.key)
            if known is not None and known[1] == once.digest:
                found = await self._first(call.caller, known[0])
                if found is not None:
                    return found
        opening = Opening(
            task=task,
            job=self._call_job,
            durable=asked.wait is Wait.NONE or asked.idempotency_key is not None,
            once=once,
        )
        opened = await self._store.open(opening)
        if isinstance(opened, Duplicate):
            if not opened.same:
                raise IdempotencyConflict(call_id=opened.task_id)
            found = await self._first(call.caller, opened.task_id)
            if found is None:
                raise TaskNotFound(call_id=opened.task_id)
            return found
        self.live[task.id] = task
        return OpenedCall(call=call, task=task)

    async def record(self, task: Task, events: Sequence[TaskEvent], compiled: Compiled | None = None) -> Task:
        """The task with these events, once they are on disk; what is no longer legal is left out."""
        while True:
            kept = legal(task.state, events)
            if not kept:
                return task
            grown = fold(task, kept)
            if grown.state is TaskState.COMPLETED:
                grown, kept = _judged(task, grown, kept, compiled)
            jobs = self._callbacks(grown) if grown.ended and grown.callbacks else ()
            raced = await self._store.append(Growth(task=grown, after=task.last_seq, events=tuple(kept), jobs=jobs))
            if not isinstance(raced, Raced):
                if grown.ended:
                    self.live.pop(grown.id, None)
                return grown
            task = raced.task

    async def load(self, caller: Caller, task_id: str) -> Task:
        """A task of this caller's. Raises TaskNotFound, for a foreign one too."""
        task = await self._store.load(_scope(caller), task_id)
        if task is None:
            raise TaskNotFound(f"There is no call {task_id!r}.", call_id=task_id)
        return task

    async def find_parent(self, caller: Caller, task_id: str) -> Task | None:
        """The call that a nested call names as its parent, if this hub knows it."""
        live = self.live.get(task_id)
        if live is not None:
            return live if live.tenant == caller.tenant else None
        return await self._store.load(Scope(tenant=caller.tenant, principal=None), task_id)

    async def _continue(self, call: AdmittedCall) -> OpenedCall:
        now = self._clock.now()
        said = MessageAdded(at=now, message=call.operation.message)
        task = await self.record(call.task, (said, StatusChanged(at=now, state=TaskState.WORKING)))
        # The target is asked in the words of the message that continues, not of the one that began it.
        self.live[task.id] = task = msgspec.structs.replace(task, asked=_continuing(task.asked, call.operation))
        return OpenedCall(call=call, task=task, attempt=task.attempt + 1)

    async def _first(self, caller: Caller, task_id: str) -> Task | None:
        return await self._store.load(_scope(caller), task_id)

    def _once(self, call: AdmittedCall) -> Once | None:
        asked, task = call.operation, call.task
        key, scope = asked.idempotency_key, KEY
        if key is None:
            key, scope = asked.request_id, REQUEST
        # Anonymous callers are strangers to each other: a key of one must not find the call of another.
        if key is None or call.caller.anonymous:
            return None
        digest = digest_of(asked)
        if scope == REQUEST:
            # The same request id with another body is another call, not a conflict.
            key = f"{key} {digest.hex()}"
        return Once(
            principal=task.caller_id, scope=scope, key=key, digest=digest, expires_at=task.created_at + self._keep
        )

    def _callbacks(self, task: Task) -> tuple[NewJob, ...]:
        return tuple(NewJob(queue=CALLBACKS, payload=callback.id.encode()) for callback in task.callbacks)


def digest_of(asked: SendTask) -> bytes:
    """What makes two requests the same: everything that was asked, without the ids and times of the asking."""
    same = msgspec.structs.replace(
        asked,
        message=msgspec.structs.replace(asked.message, id="", at=None),
        callback=None if asked.callback is None else msgspec.structs.replace(asked.callback, id=""),
        idempotency_key=None,
        request_id=None,
    )
    return sha256(_encode(same)).digest()


def _continuing(began: SendTask, now: SendTask) -> SendTask:
    return msgspec.structs.replace(began, message=now.message, continues=now.continues, timeout_s=now.timeout_s)


def _judged(task: Task, grown: Task, kept: list[TaskEvent], compiled: Compiled | None) -> tuple[Task, list[TaskEvent]]:
    """A completed task with its answer as one object, or failed where the answer breaks the skill's own schema."""
    result = grown.result
    shaped = result is None
    if shaped:
        result = answer_object(output_of(grown), None if compiled is None else compiled.output_schema)
    last = kept[-1]
    if not isinstance(last, StatusChanged):
        return grown, kept
    if compiled is not None and compiled.output is not None:
        errors = compiled.output(result)
        if errors:
            shown = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
            refused = BadAgentReply(
                f"The agent's answer does not fit its own output schema: {shown}",
                reason="output_schema",
                errors=errors,
            )
            failed = StatusChanged(at=last.at, state=TaskState.FAILED, failure=refused.failure(), usage=last.usage)
            kept = [*kept[:-1], failed]
            return fold(task, kept), kept
    if shaped:
        kept = [*kept[:-1], msgspec.structs.replace(last, result=result)]
        grown = msgspec.structs.replace(grown, result=result)
    return grown, kept


def _scope(caller: Caller) -> Scope:
    return Scope(tenant=caller.tenant, principal=None if caller.admin else caller.id)
