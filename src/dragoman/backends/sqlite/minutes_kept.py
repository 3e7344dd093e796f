"""How long statistics are kept as they are: minutes become hours, hours go. One short step of the writer at a time.

A step looks at one day of minutes, so it is short however much there is.
"""

from collections.abc import Callable
from typing import Final

from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.retention import Expired

AT_ONCE: Final = 200
HOUR: Final = 60
DAY: Final = 1440

_OLD: Final = SQL["minutes_to_fold"]
_ADD: Final = SQL["add_minute"]
_DROP: Final = SQL["drop_minute"]


def expire(
    connection: Connection, *, fold_before: int, drop_before: int, after: int, monotonic: Callable[[], float]
) -> Expired:
    """Add minutes of before one up to hours, from `after` on, and drop what is from before another."""
    began = monotonic()
    dropped = len(connection.execute(SQL["remove_minutes"], (drop_before, AT_ONCE)).fetchall())
    first = number(connection, SQL["first_minute"])
    start = fold_before if first is None else max(after, first)
    end = min(start + DAY, fold_before)
    folded = _fold(connection, start, end) if start < end else 0
    following = start if folded == AT_ONCE else end
    done = following >= fold_before and dropped < AT_ONCE
    return Expired(rows=dropped + folded, took_s=monotonic() - began, next=None if done else following)


def _fold(connection: Connection, start: int, end: int) -> int:
    """Add some minutes of a stretch up to hours; how many."""
    rows = connection.execute(_OLD, (start, end, AT_ONCE)).fetchall()
    connection.executemany(_ADD, [(*row[:2], _hour(row[2]), *row[3:]) for row in rows])
    connection.executemany(_DROP, [row[:5] for row in rows])
    return len(rows)


def _hour(minute: object) -> int:
    return minute // HOUR * HOUR if isinstance(minute, int) else 0
