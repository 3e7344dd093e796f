"""The book of tasks: the only place that opens, grows and loads them.

A task is judged here when it completes: its answer becomes one object, and one that breaks the skill's output schema
is the agent's failure. What others wrote in between (`Raced`) is taken as it is, and what is still legal goes after it.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.hub.accounts import accounted
from dragoman.hub.callback_secrets import CallbackSecrets
from dragoman.hub.grants import grant
from dragoman.hub.owed import owed
from dragoman.hub.parents import LiveCalls
from dragoman.hub.time_left import TimeLeft
from dragoman.model.call import AdmittedCall, Caller, OpenedCall
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.compiled import NO_SCHEMA, Compiled
from dragoman.model.errors import BadAgentReply, IdempotencyConflict, RateLimited, TaskFinished, TaskNotFound
from dragoman.model.events import Logged, MessageAdded, Sent, StatusChanged, TaskEvent, Watched
from dragoman.model.lifecycle import answered_at_once, fold, legal, output_of
from dragoman.model.objects import answer_object
from dragoman.model.operations import ACCEPTED, SendTask
from dragoman.model.rank import rank
from dragoman.model.states import COMPLETED, FINAL, INTERRUPTED, WORKING, TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import Clock, SteadyClock
from dragoman.ports.store import (
    CALLS,
    WORKFLOWS,
    Duplicate,
    Growth,
    NewJob,
    Once,
    Opening,
    Owner,
    Scope,
    Store,
)

REQUEST: Final = "request"
ALIAS: Final = "alias"
FOR_EVER: Final = datetime(9999, 1, 1, tzinfo=UTC)

# JSON, not MessagePack: that has no whole numbers beyond 64 bits.
_encode = msgspec.json.Encoder(order="sorted").encode


class TaskBook:
    """Opens, records and loads tasks for one replica."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        owner: Owner,
        keep_h: float,
        owing: Callable[[], None],
        secrets: CallbackSecrets,
        over_quota: Callable[[str], RateLimited | None] = lambda _: None,
        opened: Callable[[Task], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._time_left = TimeLeft(clock)  # of those that wait in the queue
        self._keep = timedelta(hours=keep_h)
        self._call_job = NewJob(queue=CALLS, owner=owner)
        self._owing = owing  # told when a callback has to be delivered
        self._secrets = secrets
        self._over_quota = over_quota  # why a tenant may open no more calls now, if it may not
        self._opened = opened  # told of each new call
        self.live = LiveCalls()  # tasks this replica carries now

    async def open(self, call: AdmittedCall, once: Once | None = None, *, claimed: bool = False) -> OpenedCall | Task:
        """Open the call's task; or the task that an earlier call with the same key made.

        `claimed`: nobody waits for it, and it is carried here all the same. A call that steps follow is opened with the
        job of the whole, which keeps on whose behalf it goes on.

        Raises IdempotencyConflict, RateLimited beyond the tenant's quota, Overloaded.
        """
        asked, task = call.operation, call.task
        if asked.continues is not None:
            return await self._continue(call)
        over = self._over_quota(task.tenant) if once is None else None  # A step belongs to a call that was taken.
        if over is not None:
            repeated = await self.repeated(call.caller, asked)
            if repeated is None:
                raise over
            return repeated
        if once is None and (asked.idempotency_key is not None or asked.request_id is not None):
            once = self._once(call)
        if once is not None and once.scope == REQUEST:
            found = await self._requested(call.caller, once)
            if found is not None:
                return found
        if asked.callback is not None:
            task = self._with_hidden(task, asked.callback)
        accepted = asked.wait is ACCEPTED or bool(asked.then)
        opening = Opening(
            task=task,
            # What nobody waits for is for the worker, the most urgent first.
            job=_worker_job(call) if accepted and not claimed else self._call_job,
            durable=accepted or asked.idempotency_key is not None or call.durable,
            once=once,
            alias=None if asked.alias is None else _alias_of(task.caller_id, sender_of(asked), asked.alias),
        )
        opened = await self._store.open(opening)
        if isinstance(opened, Duplicate):
            if not opened.same and not asked.key_decides:
                raise IdempotencyConflict(call_id=opened.task_id)
            found = await self._first(call.caller, opened.task_id)
            if found is None:
                raise TaskNotFound(call_id=opened.task_id)
            return found
        self._opened(task)
        if not accepted or claimed:
            self.live.add(task)
        else:
            self._time_left.note(task.id, call.deadline)
        return OpenedCall(call=call, task=task)

    async def record(
        self, task: Task, events: Sequence[TaskEvent], compiled: Compiled = NO_SCHEMA, once: Once | None = None
    ) -> Task:
        """The task with these events, once they are on disk; what is no longer legal is left out."""
        while True:
            kept, grown = events, answered_at_once(task, events)
            if grown is None:
                kept = legal(task.state, events)
                if not kept:
                    return task
                grown = fold(task, kept)
            if grown.state is COMPLETED:
                grown, kept = _judged(task, grown, kept, compiled)
            if compiled.pricing is not None or (grown.usage is not None and grown.usage.refused):
                grown, kept = accounted(task, grown, kept, compiled.pricing)
            jobs = _callbacks(grown, kept, task.last_seq) if grown.callbacks else ()
            raced = await self._store.append(
                Growth(task=grown, after=task.last_seq, events=tuple(kept), jobs=jobs, once=once)
            )
            if raced is None:
                if grown.state in FINAL:
                    self.live.drop(grown.id)
                if jobs:
                    self._owing()
                return grown
            if raced.task.state in INTERRUPTED and task.state not in INTERRUPTED:
                # Its agent has asked something meanwhile: that it is at work is older than that.
                events = [each for each in events if not (type(each) is StatusChanged and each.state is WORKING)]
            task = raced.task

    async def watch(self, task: Task, change: Callable[[tuple[Callback, ...]], tuple[Callback, ...]]) -> Task:
        """The task with other callbacks, once they are on disk; of an ended task it is only noted who they are."""
        while True:
            callbacks = tuple(self._secrets.hidden(each, task) for each in change(task.callbacks))
            if not task.ended:
                grown = await self.record(task, (Watched(at=self._clock.now(), callbacks=callbacks),))
                if not grown.ended or grown.callbacks == callbacks:
                    return grown
                task = grown
                continue
            grown = msgspec.structs.replace(task, callbacks=callbacks)
            raced = await self._store.append(Growth(task=grown, after=task.last_seq, events=()))
            if raced is None:
                return grown
            task = raced.task

    async def load(self, caller: Caller, task_id: str) -> Task:
        """A task of this caller's. Raises TaskNotFound, for a foreign one too."""
        task = await self._store.load(scope_of(caller), task_id)
        if task is None:
            raise TaskNotFound(f"There is no call or task {task_id!r}.", call_id=task_id)
        return task

    async def by_alias(self, caller: Caller, sender: str | None, alias: str) -> Task | None:
        """The caller's task that it calls by a name of its own."""
        name = _alias_of(caller.id, sender, alias)
        known = await self._store.find_once(caller.tenant, name.principal, ALIAS, name.key)
        return None if known is None else await self._store.load(scope_of(caller), known[0])

    async def by_key(self, caller: Caller, scope: str, key: str) -> Task | None:
        """The caller's task that was made under a key."""
        known = await self._store.find_once(caller.tenant, caller.id, scope, key)
        return None if known is None else await self._first(caller, known[0])

    async def repeated(self, caller: Caller, asked: SendTask) -> Task | None:
        """The task that the same request made before, where its key says so. Raises IdempotencyConflict."""
        if asked.idempotency_key is None or caller.anonymous:
            return None
        known = await self._store.find_once(caller.tenant, caller.id, asked.key_scope, asked.idempotency_key)
        if known is None:
            return None
        if known[1] != digest_of(asked) and not asked.key_decides:
            raise IdempotencyConflict(call_id=known[0])
        return await self._first(caller, known[0])

    async def was_reported(self, tenant: str, once: Once) -> bool:
        """Whether a report was taken before. Raises IdempotencyConflict where it said something else then."""
        known = await self._store.find_once(tenant, once.principal, once.scope, once.key)
        if known is not None and known[1] != once.digest:
            raise IdempotencyConflict
        return known is not None

    def report_once(self, agent_id: str, key: str, digest: bytes) -> Once:
        """The mark by which a repeated report is known."""
        expires_at = self._steady.now() + self._keep
        return Once(principal=agent_id, scope="report", key=key, digest=digest, expires_at=expires_at)

    def left_s(self, task: Task) -> float | None:
        """How many seconds a stored task has left; None where it has no deadline."""
        return None if task.deadline is None else self._time_left.of(task, task.deadline)

    async def _continue(self, call: AdmittedCall) -> OpenedCall:
        now = self._clock.now()
        task, callback = call.task, call.operation.callback
        said = MessageAdded(at=now, message=call.operation.message)
        events: list[TaskEvent] = [said, StatusChanged(at=now, state=TaskState.WORKING)]
        if callback is not None:
            # It takes the place of the one of its kind.
            others = (known for known in task.callbacks if known.dialect != callback.dialect)
            events.insert(0, Watched(at=now, callbacks=(*others, self._secrets.hidden(callback, task))))
        task = await self.record(task, events)
        if task.state is not TaskState.WORKING:
            raise TaskFinished(f"{task.id} takes no more messages.", call_id=task.id, state=task.state.value)
        self.live.add(task)
        return OpenedCall(call=call, task=task, attempt=task.attempt + 1)

    def _with_hidden(self, task: Task, callback: Callback) -> Task:
        """The task as it is stored: no secret of its callback in clear, where it is asked for included."""
        hidden = self._secrets.hidden(callback, task)
        asked = msgspec.structs.replace(task.asked, callback=hidden)
        return msgspec.structs.replace(task, asked=asked, callbacks=(hidden,))

    async def _requested(self, caller: Caller, once: Once) -> Task | None:
        """The task that the very same request made before."""
        known = await self._store.find_once(caller.tenant, once.principal, REQUEST, once.key)
        return None if known is None or known[1] != once.digest else await self._first(caller, known[0])

    async def _first(self, caller: Caller, task_id: str) -> Task | None:
        return await self._store.load(scope_of(caller), task_id)

    def _once(self, call: AdmittedCall) -> Once | None:
        asked, task = call.operation, call.task
        key, scope = asked.idempotency_key, asked.key_scope
        if key is None and asked.request_joins:
            key, scope = asked.request_id, REQUEST
        # Anonymous callers are strangers to each other: a key of one must not find the call of another.
        if key is None or call.caller.anonymous:
            return None
        digest = digest_of(asked)
        if scope == REQUEST:
            # The same request id with another body is another call, not a conflict.
            key = f"{key} {digest.hex()}"
        expires_at = self._steady.now() + self._keep
        return Once(principal=task.caller_id, scope=scope, key=key, digest=digest, expires_at=expires_at)


def _worker_job(call: AdmittedCall) -> NewJob:
    place = rank(call.operation.priority, call.task.created_at)
    if call.operation.then:
        return NewJob(queue=WORKFLOWS, payload=grant(call.caller, signed=call.signed), rank=place)
    return NewJob(queue=CALLS, rank=place)


def sender_of(asked: SendTask) -> str | None:
    """By whom, beside its principal, a caller's own names are told apart; nobody where a key alone decides."""
    return None if asked.key_decides else asked.sender


def _alias_of(caller_id: str, sender: str | None, alias: str) -> Once:
    key = alias if sender is None else f"{sender} {alias}"
    return Once(principal=caller_id, scope=ALIAS, key=key, digest=b"", expires_at=FOR_EVER)


def digest_of(asked: SendTask) -> bytes:
    """What makes two requests the same: everything that was asked, without the ids and times of the asking."""
    same = msgspec.structs.replace(
        asked,
        message=msgspec.structs.replace(asked.message, id="", at=None),
        callback=None if asked.callback is None else msgspec.structs.replace(asked.callback, id=""),
        idempotency_key=None,
        request_id=None,
        after=None,
        signature=None,
    )
    return sha256(_encode(same)).digest()


def _callbacks(task: Task, events: Sequence[TaskEvent], after: int) -> tuple[NewJob, ...]:
    """The notices that these events owe, each under its event's number."""
    return tuple(
        owed(callback, seq)
        for callback in task.callbacks
        for seq, event in enumerate(events, after + 1)
        if _tells(callback.tells, event)
    )


def _tells(tells: Tells, event: TaskEvent) -> bool:
    if isinstance(event, StatusChanged):
        return tells is not Tells.END or event.state in FINAL
    return tells is Tells.EVENTS and not isinstance(event, Sent | Watched | Logged)


def _judged(task: Task, grown: Task, kept: Sequence[TaskEvent], compiled: Compiled) -> tuple[Task, Sequence[TaskEvent]]:
    """A completed task with its answer as one object, or failed where the answer breaks the skill's own schema."""
    result = grown.result
    shaped = result is None
    if shaped:
        result = answer_object(output_of(grown), compiled.output_schema)
    last = kept[-1]
    if not isinstance(last, StatusChanged):
        return grown, kept
    if compiled.output is not None:
        errors = compiled.output(result)
        if errors:
            shown = "; ".join(f"{error['path']}: {error['message']}" for error in errors[:3])
            refused = BadAgentReply(
                f"The agent's answer does not fit its own output schema: {shown}",
                reason="output_schema",
                errors=errors,
            )
            failed = StatusChanged(
                at=last.at, state=TaskState.FAILED, failure=refused.failure(), usage=last.usage, n=last.n
            )
            kept = [*kept[:-1], failed]
            return fold(task, kept), kept
    if shaped:
        kept = [*kept[:-1], msgspec.structs.replace(last, result=result)]
        grown = msgspec.structs.replace(grown, result=result)
    return grown, kept


def scope_of(caller: Caller) -> Scope:
    """Whose tasks a caller may see: its own, or its tenant's for an administrator."""
    return Scope(tenant=caller.tenant, principal=None if caller.admin else caller.id)
