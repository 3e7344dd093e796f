"""The audit's own retention: its oldest rows go, and the chain begins after the last of them.

That one's hash is kept, and an act of the chain says so: what remains is checked from there on.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.backends.sqlite import audit
from dragoman.backends.sqlite.audit import ENTRY_BYTES, NUMBER_BYTES, Base, Noted
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.audit import BEGUN
from dragoman.ports.retention import Expired

AT_ONCE: Final = 500
FIRST: Final = "calls after "  # what the first row says, before a number

_OLDEST: Final = SQL["oldest_audit"]


class _Row(msgspec.Struct, frozen=True, array_like=True):
    n: int
    at: int
    covers: bytes | None
    hash: bytes
    action: str
    object: str


def expire(connection: Connection, noted: Noted, *, before: int, monotonic: Callable[[], float]) -> Expired:
    """Remove rows from before that time, the oldest first; the last row of the chain always stays."""
    began = monotonic()
    old = audit.base(connection)
    rows = msgspec.convert(connection.execute(_OLDEST, (old.n, AT_ONCE)).fetchall(), list[_Row])
    gone: list[_Row] = []
    for row in rows:
        # A clock that was wrong once leaves a late time among early ones: no row after it goes before it does.
        if row.at >= before or row.n >= noted.link.n:
            break
        gone.append(row)
    if gone:
        last = gone[-1]
        connection.execute(SQL["remove_audit"], (old.n, last.n)).fetchall()
        connection.execute(SQL["remove_audit_heads"], (last.n,)).fetchall()
        connection.execute(SQL["remove_removed"], (last.n,)).fetchall()
        noted.base = Base(last.n, last.hash, max(old.calls, *map(_highest, gone)))
    following = 0 if len(gone) == AT_ONCE else None
    return Expired(rows=len(gone), took_s=monotonic() - began, next=following)


def _highest(row: _Row) -> int:
    """The highest number of a call that a row covers, or that was there before the audit."""
    if row.covers is None:
        first = row.object.removeprefix(FIRST)
        return int(first) if row.action == BEGUN and first.isdigit() else 0
    starts = range(0, len(row.covers), ENTRY_BYTES)
    return max((int.from_bytes(row.covers[start : start + NUMBER_BYTES]) for start in starts), default=0)
