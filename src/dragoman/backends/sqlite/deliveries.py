"""Notices to callbacks: each function is one step inside the writer's transaction.

    line   1 delivered   2 pending, has the job   3 pending   4 pending      one callback of one task

Only the first pending notice of a line has a job. Whatever ends it gives the next one its job, in the same commit: so
order holds over restarts, and a line that waits for a late receiver costs nothing.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec, delivery_lists, jobs
from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.delivery_lists import STATE, job_id_of
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.task import Task
from dragoman.ports.deliveries import Delivery, DeliveryState, NewNotice, Outcome
from dragoman.ports.store import CALLBACKS, Job, Scope

DELIVERED_KEPT: Final = 1000  # of each tenant
DISABLED_AT_ONCE: Final = 1000  # what waits beyond these is disabled as it falls due

Line = tuple[int, str]  # the task's number, the callback's id


class _Attempted(msgspec.Struct, frozen=True, array_like=True):
    task: int
    callback: str
    tenant: str
    replayed: int


class _Waiting(msgspec.Struct, frozen=True, array_like=True):
    id: int
    task: int
    callback: str


def born(connection: Connection, job_id: int, task_number: int, task: Task, notice: NewNotice, now: int) -> bool:
    """Keep a new notice; whether it is the first of its line, and so has a job."""
    waits = number(connection, SQL["first_in_line"], (task_number, notice.callback_id)) is not None
    row = (job_id, task_number, notice.callback_id, notice.seq, task.tenant, task.caller_id, notice.url, now)
    connection.execute(SQL["add_delivery"], row).fetchall()
    return not waits


def attempted(connection: Connection, job: Job, outcome: Outcome | None) -> bool:
    """Note what a notice has come to and let its line go on; False if the job was no longer ours."""
    if outcome is not None and outcome.state is DeliveryState.PENDING:
        held = jobs.retry(connection, job, codec.to_micros(outcome.again_at or outcome.at))
    else:
        held = jobs.finish(connection, job)
    if not held:
        return False
    if outcome is None:
        rows = connection.execute(SQL["drop_delivery"], (job.id,)).fetchall()
        for line in msgspec.convert(rows, list[Line]):
            _advance(connection, line)
        return True
    at = codec.to_micros(outcome.at)
    tried = at if outcome.dialled else None
    row = (job.id, STATE[outcome.state], outcome.url, int(outcome.dialled), tried, outcome.answer)
    noted = msgspec.convert(connection.execute(SQL["attempt_delivery"], row).fetchall()[0], _Attempted)
    _note_receiver(connection, noted, outcome, at)
    _advance(connection, (noted.task, noted.callback))
    return True


def replay(connection: Connection, scope: Scope, ids: Sequence[str]) -> list[Delivery]:
    """Have these sent once more, each in its line's order; a pending one is only hastened."""
    known: list[str] = []
    for each in dict.fromkeys(ids):
        job_id = job_id_of(each)
        found = delivery_lists.row_of(connection, scope, job_id)
        if found is None:
            continue
        known.append(each)
        if found.state == STATE[DeliveryState.PENDING]:
            connection.execute(SQL["hasten_job"], (job_id,)).fetchall()
        else:
            connection.execute(SQL["replay_delivery"], (job_id,)).fetchall()
            _advance(connection, (found.task, found.callback))
    return [one for each in known if (one := delivery_lists.find(connection, scope, each)) is not None]


def switch(connection: Connection, scope: Scope, delivery_id: str, reason: str | None, at: int) -> Delivery | None:
    """Disable the address of a delivery for a reason, or enable it; None if there is no such delivery."""
    found = delivery_lists.row_of(connection, scope, job_id_of(delivery_id))
    if found is None:
        return None
    if reason is None:
        connection.execute(SQL["enable_receiver"], (scope.tenant, found.url)).fetchall()
    else:
        _disable(connection, scope.tenant, found.url, reason, at)
    return delivery_lists.find(connection, scope, delivery_id)


def _note_receiver(connection: Connection, noted: _Attempted, outcome: Outcome, at: int) -> None:
    if not outcome.dialled or not outcome.url:
        return
    place = (noted.tenant, outcome.url)
    if outcome.state is DeliveryState.DELIVERED:
        connection.execute(SQL["receiver_took"], (*place, noted.replayed)).fetchall()
        connection.execute(SQL["trim_delivered"], (noted.tenant, DELIVERED_KEPT)).fetchall()
        return
    connection.execute(SQL["receiver_failed"], (*place, at)).fetchall()
    if outcome.disables is not None:
        _disable(connection, *place, outcome.disables, at)


def _disable(connection: Connection, tenant: str, url: str, reason: str, at: int) -> None:
    connection.execute(SQL["disable_receiver"], (tenant, url, at, reason)).fetchall()
    rows = connection.execute(SQL["pending_to"], (tenant, url, DISABLED_AT_ONCE)).fetchall()
    waiting = msgspec.convert(rows, list[_Waiting])
    for one in waiting:
        connection.execute(SQL["disable_delivery"], (one.id,)).fetchall()
        connection.execute(SQL["drop_job"], (one.id,)).fetchall()
    for line in {(one.task, one.callback) for one in waiting}:
        _advance(connection, line)


def _advance(connection: Connection, line: Line) -> None:
    """Give the job of a line to its first pending notice, unless one is on its way: that one does it when it ends."""
    first = number(connection, SQL["first_in_line"], line)
    if first is None:
        return
    rows = connection.execute(SQL["jobs_of_line"], line).fetchall()
    known = dict(msgspec.convert(rows, list[tuple[int, int]]))
    if any(known.values()) or list(known) == [first]:
        return
    for other in known:
        if other != first:
            connection.execute(SQL["drop_job"], (other,)).fetchall()
    if first not in known:
        connection.execute(SQL["add_job"], (first, line[0], CALLBACKS, 0.0, None, b"", None, None)).fetchall()
