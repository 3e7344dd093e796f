"""Deliveries read back: what a job has to deliver, what is held against an address, and lists, newest first."""

import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection, Value
from dragoman.backends.sqlite.cursor import from_cursor, to_cursor
from dragoman.backends.sqlite.jobs import OTHER_JOBS
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.errors import BadParams
from dragoman.ports.deliveries import Delivery, DeliveryList, DeliveryQuery, DeliveryState, Pending, Receiver
from dragoman.ports.store import Job, Scope

STATE: Final[Mapping[DeliveryState, int]] = {
    DeliveryState.PENDING: 0,
    DeliveryState.PARKED: 1,
    DeliveryState.DISABLED: 2,
    DeliveryState.DELIVERED: 3,
}
MAX_PAGE: Final = 1000
PREFIX: Final = "dlv_"
FIRST: Final = OTHER_JOBS - 1  # deliveries are counted from 1
_STATES: Final = {number: state for state, number in STATE.items()}
_NEWEST: Final = 2**62


class DeliveryRow(msgspec.Struct, frozen=True, array_like=True):
    """A delivery with its call, its job and its address."""

    id: int
    task_id: str
    caller: str
    seq: int
    url: str
    state: int
    born: int
    tries: int
    replays: int
    tried: int | None
    answer: str | None
    run_at: int | None
    disabled: int
    reason: str | None
    task: int
    callback: str


class _PendingRow(msgspec.Struct, frozen=True, array_like=True):
    callback: str
    seq: int
    tries: int
    replays: int


class _ReceiverRow(msgspec.Struct, frozen=True, array_like=True):
    failing: int | None
    disabled: int | None
    reason: str | None


class _Position(msgspec.Struct, frozen=True):
    id: int
    of: int  # which filters it belongs to


def pending(connection: Connection, job: Job) -> Pending | None:
    """The notice that a job is to deliver."""
    rows = connection.execute(SQL["pending_delivery"], (job.id,)).fetchall()
    if not rows:
        return None
    row = msgspec.convert(rows[0], _PendingRow)
    return Pending(id=_id_of(job.id), callback_id=row.callback, seq=row.seq, tries=row.tries, replays=row.replays)


def receiver(connection: Connection, tenant: str, url: str) -> Receiver | None:
    """What is held against an address."""
    rows = connection.execute(SQL["receiver"], (tenant, url)).fetchall()
    if not rows:
        return None
    row = msgspec.convert(rows[0], _ReceiverRow)
    return Receiver(
        failing_since=_time(row.failing),
        disabled_at=_time(row.disabled),
        reason=row.reason,
    )


def find(connection: Connection, scope: Scope, delivery_id: str) -> Delivery | None:
    """One delivery of that scope."""
    row = row_of(connection, scope, job_id_of(delivery_id))
    return None if row is None else _delivery(row)


def row_of(connection: Connection, scope: Scope, job_id: int) -> DeliveryRow | None:
    """One delivery of that scope, as it is kept."""
    rows = connection.execute(SQL["delivery_of_scope"], (job_id, scope.tenant, scope.principal)).fetchall()
    return msgspec.convert(rows[0], DeliveryRow) if rows else None


def job_id_of(delivery_id: str) -> int:
    """The job of a delivery; one that never was for anything else."""
    number = delivery_id.removeprefix(PREFIX)
    usable = delivery_id.startswith(PREFIX) and number.isascii() and number.isdigit() and len(number) <= 15
    return FIRST + int(number) if usable else -1


def _id_of(job_id: int) -> str:
    return f"{PREFIX}{job_id - FIRST}"


def list_deliveries(connection: Connection, scope: Scope, query: DeliveryQuery) -> DeliveryList:
    """One page, all of it from one commit. Raises BadParams for a cursor that is malformed or of other filters."""
    before = _position(scope, query)
    limit = min(max(query.limit, 1), MAX_PAGE)
    connection.execute("BEGIN")
    try:
        found: list[int] = []
        for state in query.states or tuple(DeliveryState):
            found += _ids(connection, scope, query, STATE[state], before, limit + 1)
        found.sort(reverse=True)
        rows = [row_of(connection, scope, number) for number in found[:limit]]
    finally:
        connection.execute("COMMIT")
    cursor = to_cursor(_Position(id=found[limit - 1], of=_mark(scope, query))) if len(found) > limit else None
    return DeliveryList(deliveries=tuple(_delivery(row) for row in rows if row is not None), cursor=cursor)


def _ids(connection: Connection, scope: Scope, query: DeliveryQuery, state: int, before: int, limit: int) -> list[int]:
    params: dict[str, Value] = {
        "tenant": scope.tenant,
        "caller": scope.principal,
        "state": state,
        "task": query.task_id,
        "url": query.url,
        "since": 0 if query.since is None else codec.to_micros(query.since),
        "before": before,
        "limit": limit,
    }
    if query.task_id is not None:
        name = "deliveries_of_task"
    elif query.url is not None:
        name = "deliveries_to_url"
    else:
        name = "deliveries_of_tenant" if scope.principal is None else "deliveries_of_caller"
    return [row[0] for row in msgspec.convert(connection.execute(SQL[name], params).fetchall(), list[tuple[int]])]


def _position(scope: Scope, query: DeliveryQuery) -> int:
    if query.cursor is None:
        return _NEWEST
    position = from_cursor(query.cursor, _Position)
    if position.of != _mark(scope, query) or not 0 <= position.id <= _NEWEST:
        raise BadParams("The cursor belongs to another list; begin again without one.", field="cursor")
    return position.id


def _mark(scope: Scope, query: DeliveryQuery) -> int:
    """A short sum of what is listed, so that a cursor is not taken to another list by mistake."""
    return zlib.crc32(msgspec.msgpack.encode((scope, query.states, query.url, query.task_id, query.since)))


def _delivery(row: DeliveryRow) -> Delivery:
    return Delivery(
        id=_id_of(row.id),
        task_id=row.task_id,
        callback_id=row.callback,
        caller_id=row.caller,
        seq=row.seq,
        url=row.url,
        state=_STATES[row.state],
        born_at=codec.from_micros(row.born),
        tries=row.tries,
        replays=row.replays,
        tried_at=_time(row.tried),
        answer=row.answer,
        again_at=_time(row.run_at),
        disabled=row.reason if row.disabled else None,
    )


def _time(micros: int | None) -> datetime | None:
    return None if micros is None else codec.from_micros(micros)
