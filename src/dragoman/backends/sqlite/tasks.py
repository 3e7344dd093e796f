"""Tasks read back: a quick row is folded from its log, any other from its document and the events after it.

Every read is one short look at the last commit; nothing here writes.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.once import Name
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.errors import TaskNotFound
from dragoman.model.events import Happened
from dragoman.model.lifecycle import fold
from dragoman.model.task import Task
from dragoman.ports.store import Scope

_OF_SCOPE: Final = SQL["task_of_scope"]
_ANYONE: Final = SQL["task_anyone"]
_BY_NUMBER: Final = SQL["task_by_number"]
_CONTEXT_OWNER: Final = SQL["context_owner"]
_LAST_TURN: Final = SQL["last_turn"]
_EVENTS: Final = SQL["events_between"]
_KEY: Final = SQL["find_key_task"]

KeyTask = tuple[str, bytes]  # the task that a key names, and the digest of what was asked


class TaskRow(msgspec.Struct, frozen=True, array_like=True):
    """What a task is folded from."""

    number: int
    doc: bytes | None
    log: bytes | None


class _EventRow(msgspec.Struct, frozen=True, array_like=True):
    key: int
    body: bytes


def load(connection: Connection, scope: Scope, task_id: str) -> Task | None:
    """One task of that scope."""
    rows = connection.execute(_OF_SCOPE, (task_id, scope.tenant, scope.principal)).fetchall()
    return folded(connection, msgspec.convert(rows[0], TaskRow)) if rows else None


def task_anyone(connection: Connection, task_id: str) -> Task:
    """A task whoever owns it; raises TaskNotFound if there is none."""
    rows = connection.execute(_ANYONE, (task_id,)).fetchall()
    if not rows:
        raise TaskNotFound(task_id=task_id)
    return folded(connection, msgspec.convert(rows[0], TaskRow))


def task_numbered(connection: Connection, number: int) -> Task | None:
    """The task of that number, if it is still there."""
    rows = connection.execute(_BY_NUMBER, (number,)).fetchall()
    return folded(connection, msgspec.convert(rows[0], TaskRow)) if rows else None


def events(connection: Connection, task_id: str, after: int, limit: int) -> Sequence[Happened]:
    """Events of a task after a number, in order; none for a task that is not there."""
    rows = connection.execute(_ANYONE, (task_id,)).fetchall()
    if not rows:
        return ()
    row = msgspec.convert(rows[0], TaskRow)
    if row.log is None:
        return _event_rows(connection, row.number, after, limit)
    log = codec.LOG.unpack(row.log)
    first = max(after, 0)
    return codec.numbered((codec.first_event(log.task), *log.events), 0)[first : first + max(limit, 0)]


def context_owner(connection: Connection, tenant: str, context_id: str) -> str | None:
    """Who was the first to name a conversation so."""
    rows = connection.execute(_CONTEXT_OWNER, (tenant, context_id)).fetchall()
    return msgspec.convert(rows[0], tuple[str])[0] if rows else None


def last_turn(connection: Connection, scope: Scope, context_id: str, agent_id: str) -> Task | None:
    """The last task of a conversation that an agent had from a caller."""
    rows = connection.execute(_LAST_TURN, (scope.tenant, context_id, scope.principal, agent_id)).fetchall()
    return folded(connection, msgspec.convert(rows[0], TaskRow)) if rows else None


def find_once(connection: Connection, name: Name, now: int) -> KeyTask | None:
    """The task id and digest behind a key that has not expired."""
    rows = connection.execute(_KEY, (*name, now)).fetchall()
    return msgspec.convert(rows[0], KeyTask) if rows else None


def folded(connection: Connection, row: TaskRow) -> Task:
    """The task a row stands for."""
    if row.doc is None:
        if row.log is None:
            raise TaskNotFound
        log = codec.LOG.unpack(row.log)
        return fold(log.task, log.events)
    task = codec.TASK.unpack(row.doc)
    if task.ended:
        return task
    later = _event_rows(connection, row.number, task.last_seq, codec.MAX_SEQ)
    return fold(task, [happened.event for happened in later]) if later else task


def _event_rows(connection: Connection, number: int, after: int, limit: int) -> list[Happened]:
    base = number << codec.SEQ_BITS
    bounds = (base + min(max(after, 0), codec.MAX_SEQ), base | codec.MAX_SEQ, max(limit, 0))
    found = msgspec.convert(connection.execute(_EVENTS, bounds).fetchall(), list[_EventRow])
    return [Happened(seq=row.key & codec.MAX_SEQ, event=codec.unpack_event(row.body)) for row in found]
