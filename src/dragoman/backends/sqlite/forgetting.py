"""Forgetting: what people and agents wrote in calls is overwritten, in one step of the writer.

Rows, numbers, times and states stay, and the digests that the audit has of what was there; what is left is covered anew
by the commit that forgets. A call that was not as the audit left it keeps its old digest, so that this still shows.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite import audit, codec
from dragoman.backends.sqlite.audit import Noted, TaskRow
from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.mail import drop_these, waiting
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.tasks import task_numbered
from dragoman.model.forgetting import forgotten_event, forgotten_task
from dragoman.model.task import Task
from dragoman.ports.store import Scope

EVENTS_AT_ONCE: Final = 500
MAIL_LOOKED_AT: Final = 10_000  # of one box

_FIND: Final = SQL["task_to_forget"]
_EVENTS: Final = SQL["events_between"]


def forget(connection: Connection, noted: Noted, scope: Scope, ids: Sequence[str], now: int) -> list[str]:
    """Remove what was written in these calls of the scope, if they have ended; the ids of those where it was."""
    return [each for each in dict.fromkeys(ids) if _forget(connection, noted, scope, each, now)]


def _forget(connection: Connection, noted: Noted, scope: Scope, task_id: str, now: int) -> bool:
    found = number(connection, _FIND, (task_id, scope.tenant, scope.principal))
    row = None if found is None else audit.task_row(connection, found)
    if row is None or row.state < codec.FIRST_FINAL:
        return False
    if row.forgotten is not None:
        return True
    task = task_numbered(connection, row.number)
    was_right = row.digest is not None and audit.reckoned(connection, row).digest == row.digest
    before = len(row.doc or b"") + len(row.log or b"") + _strip_events(connection, row.number)
    doc, log = _stripped(row, now)
    connection.execute(SQL["forget_task"], (row.number, doc, log, now)).fetchall()
    if task is not None:
        _strip_mail(connection, task)
    for (job_id,) in msgspec.convert(
        connection.execute(SQL["forget_deliveries"], (row.number,)).fetchall(), list[tuple[int]]
    ):
        connection.execute(SQL["drop_job"], (job_id,)).fetchall()
    connection.execute(SQL["forget_rating"], (task_id,)).fetchall()
    left = audit.task_row(connection, row.number)
    size = len(doc or b"") + len(log or b"") - before
    if left is not None and (was_right or row.digest is None):
        noted.changed(row.number, audit.reckoned(connection, left), row.tenant, size)
    return True


def _stripped(row: TaskRow, now: int) -> tuple[bytes | None, bytes | None]:
    at = codec.from_micros(now)
    doc, log = row.doc, row.log
    if doc is not None:
        doc = codec.pack(forgotten_task(codec.TASK.unpack(doc), at))
    if log is not None:
        read = codec.LOG.unpack(log)
        events = tuple(forgotten_event(event) for event in read.events)
        log = codec.pack(codec.Log(forgotten_task(read.task, at), events))
    return doc, log


def _strip_events(connection: Connection, task_number: int) -> int:
    """Overwrite the events of a task; by how many bytes they became shorter."""
    after, end = task_number << codec.SEQ_BITS, task_number << codec.SEQ_BITS | codec.MAX_SEQ
    shorter = 0
    while rows := connection.execute(_EVENTS, (after, end, EVENTS_AT_ONCE)).fetchall():
        events = msgspec.convert(rows, list[tuple[int, bytes]])
        left = [(key, codec.pack_event(forgotten_event(codec.unpack_event(body)))) for key, body in events]
        connection.executemany(SQL["change_event"], left)
        shorter += sum(len(body) for _, body in events) - sum(len(body) for _, body in left)
        after = events[-1][0]
    return shorter


def _strip_mail(connection: Connection, task: Task) -> None:
    """Take out of the mailboxes of both sides what tells of a task."""
    remote = None if task.remote is None else task.remote.task_id
    names = [name.encode() for name in (task.id, task.asked.alias, task.asked.message.id, remote) if name]
    told_to = [each.agent_id for each in task.callbacks if each.agent_id is not None]
    for box in {task.caller_id, task.agent_id, *task.chain, *told_to}:
        told = waiting(connection, task.tenant, box, MAIL_LOOKED_AT)
        about = [each for each, body in told if any(name in body for name in names)]
        if about:
            drop_these(connection, task.tenant, box, about)
