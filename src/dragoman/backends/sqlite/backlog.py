"""What waits in the store, counted for metrics: notices to callbacks, and the oldest work of each queue."""

from typing import Final

import msgspec

from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.store import CALLBACKS, CALLS, WORKFLOWS, Backlog

MICROS: Final = 1_000_000
_PENDING: Final = 0
_PARKED: Final = 1


class _Oldest(msgspec.Struct, frozen=True, array_like=True):
    attempt: int
    since: int


def backlog(connection: Connection, now: int) -> Backlog:
    """Everything that waits now."""
    return Backlog(
        pending=number(connection, SQL["count_deliveries"], (_PENDING,)) or 0,
        parked=number(connection, SQL["count_deliveries"], (_PARKED,)) or 0,
        oldest_s={queue: _oldest_s(connection, queue, now) for queue in (CALLS, CALLBACKS, WORKFLOWS)},
    )


def _oldest_s(connection: Connection, queue: str, now: int) -> float:
    """How long the oldest job waits that nobody has begun; what was begun before waits by design."""
    rows = connection.execute(SQL["oldest_job"], (queue,)).fetchall()
    if not rows:
        return 0.0
    oldest = msgspec.convert(rows[0], _Oldest)
    return 0.0 if oldest.attempt else max(0.0, (now - oldest.since) / MICROS)
