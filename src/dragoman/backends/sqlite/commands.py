"""What each command writes, and how a batch of them is written together.

Openings first, then calls that ended at once, then steps of written tasks, then everything else, each kind in the order
it came: an opening nobody waits for is always there for the step that follows it. A batch may be run again after a
failure, so nothing here changes memory but the command's own outcome.
"""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Final, Generic, Protocol, TypeVar, final

import msgspec

from dragoman.backends.sqlite import audit, codec, deliveries
from dragoman.backends.sqlite.audit import Noted, Reckoned
from dragoman.backends.sqlite.connection import Connection, Value
from dragoman.backends.sqlite.counted import ROW_BYTES, CountedConnection
from dragoman.backends.sqlite.held import Held
from dragoman.backends.sqlite.once import REQUEST
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.tasks import task_anyone
from dragoman.model.errors import TaskNotFound
from dragoman.model.events import StatusChanged
from dragoman.model.task import Task
from dragoman.ports.audit import Act
from dragoman.ports.store import Duplicate, Growth, NewJob, Once, Opened, Raced

T = TypeVar("T")

OPENED: Final = Opened()
JOB_BYTES: Final = 8 * ROW_BYTES  # a job and its index; of a notice its row and five more
SNAPSHOT_BITS: Final = 8  # a long task is stored anew every 256 events, so no reader folds more than that

_ADD_QUICK: Final = SQL["add_quick_task"]
_ADD_TASK: Final = SQL["add_task"]
_ADD_EVENT: Final = SQL["add_event"]
_ADD_JOB: Final = SQL["add_job"]
_CLAIM_KEY: Final = SQL["claim_key"]
_NOTE_KEY: Final = SQL["note_key"]
_FIND_KEY: Final = SQL["find_key_task"]
_GROW: Final = SQL["grow_task"]
_MOVE: Final = SQL["move_task"]
_NOTE: Final = SQL["note_task"]
_REROUTE: Final = SQL["reroute_task"]
_END_JOB: Final = SQL["end_call_job"]


class Open(msgspec.Struct):
    """Write an opening. Without a future nobody waits for it."""

    held: Held
    future: asyncio.Future[Opened | Duplicate] | None = None
    outcome: Opened | Duplicate = OPENED
    error: Exception | None = None


class Grow(msgspec.Struct):
    """Write a step of a task; with `held` its opening, too. `job_ids` are for the jobs born in it."""

    growth: Growth
    held: Held | None
    job_ids: range
    future: asyncio.Future[Raced | None]
    outcome: Raced | None = None
    error: Exception | None = None


class AnyStep(Protocol):
    """A command that is neither: it knows by itself what to write and whom to tell."""

    error: Exception | None

    def carry_out(self, connection: Connection, noted: Noted) -> None:
        """Run it inside the batch's transaction, and say what the audit has to know of it."""
        ...

    def settle(self) -> None:
        """Tell who waits; on the loop, after the commit."""
        ...


@final
class Step(Generic[T]):
    """A function of the connection, who waits for what it returns, and what the audit says that was done."""

    __slots__ = ("_act", "_future", "_outcome", "_run", "error")

    def __init__(
        self,
        run: Callable[[Connection, Noted], T],
        future: asyncio.Future[T],
        act: Callable[[T], Act | None] | None = None,
    ) -> None:
        self._run = run
        self._future = future
        self._act = act
        self._outcome: list[T] = []
        self.error: Exception | None = None

    def carry_out(self, connection: Connection, noted: Noted) -> None:
        """Run it; when a batch is run again the last outcome counts."""
        outcome = self._run(connection, noted)
        self._outcome = [outcome]
        act = None if self._act is None else self._act(outcome)
        if act is not None:
            noted.acts.append(act)

    def settle(self) -> None:
        """Tell who waits."""
        if self._future.done():
            return
        if self.error is not None:
            self._future.set_exception(self.error)
        else:
            self._future.set_result(self._outcome[0])


Command = Open | Grow | AnyStep


def carry_out(connection: Connection, batch: Sequence[Command], now: Callable[[], int], noted: Noted) -> int:
    """Write a batch inside the open transaction; about how many bytes of log that makes. Its audit is still to come."""
    opens: list[Open] = []
    quick: list[Grow] = []
    grows: list[Grow] = []
    steps: list[AnyStep] = []
    for command in batch:
        if isinstance(command, Grow):
            (quick if command.held is not None and command.growth.task.ended else grows).append(command)
        elif isinstance(command, Open):
            opens.append(command)
        else:
            steps.append(command)
    size = 0
    if opens or grows:
        fresh = [command.held for command in opens if _decide(connection, command, now)]
        fresh += [command.held for command in grows if command.held is not None]
        size += _write_openings(connection, fresh, now, noted)
    if quick:
        size += _write_quick(connection, quick, now, noted)
    for command in grows:
        size += _grow(connection, command, now, noted)
    if steps:
        counted = CountedConnection(connection)
        for step in steps:
            step.carry_out(counted, noted)
        size += counted.size
    return size


def _decide(connection: Connection, command: Open, now: Callable[[], int]) -> bool:
    """Whether the opening is to be written: its key is free, or it has none that must be unique."""
    opening = command.held.opening
    once = opening.once
    if once is None or once.scope == REQUEST:
        command.outcome = OPENED
        return True
    task = opening.task
    at = now()
    if connection.execute(_CLAIM_KEY, (*_key_row(task.tenant, once, task.id), at)).fetchall():
        command.outcome = OPENED
        return True
    row = connection.execute(_FIND_KEY, (task.tenant, once.principal, once.scope, once.key, at)).fetchall()[0]
    known = msgspec.convert(row, _Claimed)
    command.outcome = Duplicate(task_id=known.task_id, same=known.digest == once.digest)
    return False


class _Claimed(msgspec.Struct, frozen=True, array_like=True):
    task_id: str
    digest: bytes


def _write_openings(connection: Connection, fresh: Sequence[Held], now: Callable[[], int], noted: Noted) -> int:
    if not fresh:
        return 0
    tasks: list[tuple[Value, ...]] = []
    events: list[tuple[int, bytes]] = []
    size = 0
    for held in fresh:
        task = held.opening.task
        doc = codec.pack(task)
        size += len(doc) + 3 * ROW_BYTES
        created = codec.to_micros(task.created_at)
        event = (held.number << codec.SEQ_BITS | 1, codec.pack_event(codec.first_event(task)))
        events.append(event)
        head = (held.number, task.id, task.tenant, task.caller_id, task.context_id, 0, created, 1)
        found_by = _found_by(task)
        made = audit.grown(head, found_by, audit.summed(doc, audit.after_events(audit.NOTHING, (event,))))
        noted.wrote(held.number, made.digest, task.tenant, len(doc) + len(event[1]))
        noted.opened(task.tenant, 1)
        noted.traced.append((held.number, task.trace.trace_id))
        tasks.append((*head, doc, *found_by, made.digest, made.sums, noted.n))
    connection.executemany(_ADD_TASK, tasks)
    connection.executemany(_ADD_EVENT, events)
    connection.executemany(_ADD_JOB, [_job_row(held.number, held.number, held.opening.job) for held in fresh])
    _note_keys(connection, fresh, now)
    return size


def _write_quick(connection: Connection, quick: Sequence[Grow], now: Callable[[], int], noted: Noted) -> int:
    rows: list[tuple[Value, ...]] = []
    fresh: list[Held] = []
    jobs: list[tuple[Value, ...]] = []
    covers, stored, traced, n = noted.covers, noted.stored, noted.traced, noted.n
    room = bytearray()
    size = 0
    for command in quick:
        held = command.held
        if held is None:
            continue
        growth, number, opening = command.growth, held.number, held.opening
        task = growth.task
        log = codec.pack(codec.Log(opening.task, growth.events), room)
        size += len(log) + ROW_BYTES
        at = codec.to_micros(task.ended_at or task.updated_at)
        last = growth.after + len(growth.events)
        state = codec.STATE[task.state]
        head = (number, task.id, task.tenant, task.caller_id, task.context_id, state, at, last, log)
        row = head + _found_by(task)
        digest = covers[number] = audit.digest_of(row, room)
        stored[task.tenant] = stored.get(task.tenant, 0) + len(log)
        rows.append((*row, digest, n))
        traced.append((number, task.trace.trace_id))
        if opening.once is not None or opening.alias is not None:
            fresh.append(held)
        if growth.once is not None:
            connection.execute(_NOTE_KEY, (*_key_row(task.tenant, growth.once, task.id), now())).fetchall()
        if growth.jobs:
            jobs += _born_jobs(connection, number, command, now)
            size += len(growth.jobs) * JOB_BYTES
    connection.executemany(_ADD_QUICK, rows)
    if fresh:
        _note_keys(connection, fresh, now)
    if jobs:
        connection.executemany(_ADD_JOB, jobs)
    return size


def _grow(connection: Connection, command: Grow, now: Callable[[], int], noted: Noted) -> int:
    growth = command.growth
    task = growth.task
    last = growth.after + len(growth.events)
    # A change without events is kept in the document alone.
    whole = task.ended or not growth.events or growth.after >> SNAPSHOT_BITS != last >> SNAPSHOT_BITS
    doc = codec.pack(task) if whole else None
    moved = next((event for event in reversed(growth.events) if isinstance(event, StatusChanged)), None)
    if not growth.events:
        found = connection.execute(_NOTE, (task.id, growth.after, doc, task.forgotten_at is not None)).fetchall()
    elif moved is None:
        found = connection.execute(_GROW, (task.id, growth.after, last, doc)).fetchall()
    else:
        state, at = codec.STATE[task.state], codec.to_micros(moved.at)
        found = connection.execute(_MOVE, (task.id, growth.after, last, doc, state, at)).fetchall()
    if not found:
        command.outcome = Raced(task=task_anyone(connection, task.id))
        return 0
    command.outcome = None
    row = msgspec.convert(found[0], _Grown)
    number = row.number
    if row.agent != task.agent_id and row.agent:
        # It was chosen by its skill, and goes to another agent now.
        connection.execute(_REROUTE, (number, task.agent_id)).fetchall()
        row = msgspec.structs.replace(row, agent=task.agent_id)
    base = number << codec.SEQ_BITS
    events = [(base | seq, codec.pack_event(event)) for seq, event in enumerate(growth.events, growth.after + 1)]
    connection.executemany(_ADD_EVENT, events)
    written = sum(len(body) for _, body in events)
    kept = written + (len(doc or b"") if task.ended else 0)  # Until then its document is small.
    noted.changed(number, _reckoned(connection, row, task, last, doc, events, noted), task.tenant, kept)
    if growth.once is not None:
        connection.execute(_NOTE_KEY, (*_key_row(task.tenant, growth.once, task.id), now())).fetchall()
    if task.ended and events:
        noted.opened(task.tenant, -1)
    if task.ended:
        connection.execute(_END_JOB, (number,)).fetchall()
    if growth.jobs:
        connection.executemany(_ADD_JOB, _born_jobs(connection, number, command, now))
    return written + len(doc or b"") + 3 * ROW_BYTES + len(growth.jobs) * JOB_BYTES


class _Grown(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a step of a task left, and what the audit knew of the task before."""

    number: int
    state_at: int
    sums: bytes | None
    forgotten: int | None
    agent: str
    skill: str
    dialect: str
    trace: str
    parent: str | None


def _reckoned(
    connection: Connection,
    row: _Grown,
    task: Task,
    last: int,
    doc: bytes | None,
    events: Sequence[tuple[int, bytes]],
    noted: Noted,
) -> Reckoned:
    """The digest of a task after a step: from its sums and what the step wrote, where it has sums."""
    sums = noted.sums_of(row.number) or row.sums
    if sums is None or row.forgotten is not None:
        # A call of one row, or of before there was an audit: all of it is looked at.
        whole = audit.task_row(connection, row.number)
        if whole is None:
            raise TaskNotFound(task_number=row.number)
        return audit.reckoned(connection, whole)
    of_doc = sums[: audit.DIGEST_BYTES] if doc is None else sha256(doc).digest()
    sums = of_doc + audit.after_events(sums[audit.DIGEST_BYTES :], events)
    state = codec.STATE[task.state]
    head = (row.number, task.id, task.tenant, task.caller_id, task.context_id, state, row.state_at, last)
    # As they are stored: calls of early versions lack some of them.
    return audit.grown(head, (row.agent, row.skill, row.dialect, row.trace, row.parent), sums)


def _found_by(task: Task) -> tuple[Value, ...]:
    return (task.agent_id, task.skill or "", task.dialect, task.trace.trace_id, task.parent_id)


def _note_keys(connection: Connection, fresh: Iterable[Held], now: Callable[[], int]) -> None:
    rows: list[tuple[Value, ...]] = []
    for held in fresh:
        task, once, alias = held.opening.task, held.opening.once, held.opening.alias
        if once is not None and once.scope == REQUEST:
            rows.append((*_key_row(task.tenant, once, task.id), now()))
        if alias is not None:
            rows.append((*_key_row(task.tenant, alias, task.id), now()))
    if rows:
        connection.executemany(_NOTE_KEY, rows)


def _key_row(tenant: str, once: Once, task_id: str) -> tuple[Value, ...]:
    expires = codec.to_micros(once.expires_at)
    return (tenant, once.principal, once.scope, once.key, task_id, once.digest, expires)


def _born_jobs(connection: Connection, number: int, command: Grow, now: Callable[[], int]) -> list[tuple[Value, ...]]:
    task = command.growth.task
    return [
        _job_row(job_id, number, job)
        for job_id, job in zip(command.job_ids, command.growth.jobs, strict=True)
        if job.notice is None or deliveries.born(connection, job_id, number, task, job.notice, now())
    ]


def _job_row(job_id: int, number: int, job: NewJob) -> tuple[Value, ...]:
    run_at = None if job.run_at is None else codec.to_micros(job.run_at)
    replica, epoch = (None, None) if job.owner is None else (job.owner.replica, job.owner.epoch)
    return (job_id, number, job.queue, job.rank, run_at, job.payload, replica, epoch)
