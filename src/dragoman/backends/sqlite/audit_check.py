"""Check the audit: walk the chain, then every call that it says it covers, and name the first thing that is wrong.

    rows    1 ─ 2 ─ 3 ─ …      each follows the one before; each task that a row covers is there, as it says or later,
                               or a row says that it was removed when its time was over
    calls   1   2   3   …      each is covered by the row that it names

Together they find what was changed, taken out, put in, exchanged or put back to an earlier state. In pieces, each one
look at a commit: a hub goes on writing meanwhile, and nothing grows with the length of the chain. The end of the chain
is held by the last act (`audit_tip`), by the calls that name rows, and by signed heads, which are checked elsewhere;
its beginning, where the oldest rows were removed, by the act that says so (`audit_base`).
"""

import sqlite3
from collections.abc import Iterator
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal

import msgspec

from dragoman.backends.sqlite import audit, codec
from dragoman.backends.sqlite.audit import ENTRY_BYTES, NOTHING, NUMBER_BYTES, Base, TaskRow
from dragoman.backends.sqlite.audit_rows import StoredRow
from dragoman.backends.sqlite.audit_trim import FIRST
from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.cursor import from_cursor, to_cursor
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.audit import BEGUN, TRIMMED, AuditRow, Broken, Checked, Window

ROWS: Final = 200  # of one piece, at most
CALLS: Final = 500
# A value of another kind than the hub writes, or text that is none.
UNREADABLE: Final = (msgspec.ValidationError, sqlite3.Error, OverflowError)

_ROWS: Final = SQL["audit_rows"]
_ROW: Final = SQL["audit_row"]
_TASKS: Final = SQL["audited_tasks"]
_REMOVED: Final = SQL["removed_near"]


class _Place(msgspec.Struct, frozen=True, kw_only=True):
    """How far a check has come: the last row, or the last call's number, that was checked."""

    of: Literal["rows", "calls"]
    after: int
    first: int
    last: int


class _Covering(msgspec.Struct, frozen=True, array_like=True):
    at: int
    covers: bytes | None
    hash: bytes


class _Tip(msgspec.Struct, frozen=True, array_like=True):
    n: int
    hash: bytes
    of_row: bytes | None


class _Removed(msgspec.Struct, frozen=True, array_like=True):
    last: int
    covered_by: int


class _Call(msgspec.Struct, frozen=True, array_like=True):
    number: int
    id: str
    digest: bytes | None
    covered_by: int | None


class _Wrong(Exception):
    """Something is wrong."""

    def __init__(self, reason: str, *, row: int | None = None, call_id: str | None = None) -> None:
        super().__init__(reason)
        self.broken = Broken(row=row, call_id=call_id, reason=reason)


def check(connection: Connection, window: Window) -> Checked:
    """The next piece. Raises BadParams for a malformed cursor."""
    connection.execute("BEGIN")
    try:
        return _check(connection, window)
    finally:
        connection.execute("COMMIT")


def _check(connection: Connection, window: Window) -> Checked:
    last_call = number(connection, SQL["last_task_number"]) or 0
    whole = window.since is None and window.until is None
    place = None if window.cursor is None else from_cursor(window.cursor, _Place)
    first = 1 if place is None else place.first
    since: datetime | None = None
    try:
        base = audit.base(connection)
        began = _row(connection, base.n + 1)
        since = None if began is None else codec.from_micros(began.at)
        if place is None:
            place = _begin(connection, window, base)
        elif place.of == "rows" and place.after < base.n:
            place = msgspec.structs.replace(place, after=base.n)  # The oldest rows were removed between two pieces.
        total = max(place.last - place.first + 1, 0) + (last_call if whole else 0)
        if place.of == "rows":
            checked = _check_rows(connection, place, base, rows=window.rows)
        else:
            checked = _check_calls(connection, place, base)
    except _Wrong as wrong:
        return Checked(done=first, total=first, since=since, broken=wrong.broken)
    except UNREADABLE as error:
        broken = Broken(row=None, call_id=None, reason=f"what is stored cannot be read: {error}")
        return Checked(done=first, total=first, since=since, broken=broken)
    following = _next(place, checked, whole=whole)
    return msgspec.structs.replace(
        checked, total=total, since=since, cursor=None if following is None else to_cursor(following)
    )


def _next(place: _Place, checked: Checked, *, whole: bool) -> _Place | None:
    if place.of == "rows":
        if checked.done > place.last - place.first:
            return _Place(of="calls", after=0, first=place.first, last=place.last) if whole else None
        return msgspec.structs.replace(place, after=place.first + checked.done - 1)
    return None if checked.cursor is None else msgspec.structs.replace(place, after=int(checked.cursor))


def _begin(connection: Connection, window: Window, base: Base) -> _Place:
    """Where the check begins and ends, after a look at both ends of the chain."""
    last = audit.last(connection).n
    tips = msgspec.convert(connection.execute(SQL["audit_tip"]).fetchall(), list[_Tip])
    if not tips or last == 0:
        raise _Wrong("the audit has no beginning, or no end", row=1)
    tip = tips[0]
    if tip.n > last:
        raise _Wrong(f"rows {last + 1} to {tip.n} are missing at the end", row=last + 1)
    if tip.hash != tip.of_row:
        raise _Wrong("the last act is not the one that was noted as such", row=tip.n)
    if base.n > 0:
        _noted_beginning(connection, base)
    first = base.n + 1
    if window.since is not None:
        first = _first_at(connection, window.since, first, last)
    if window.until is not None:
        last = _first_at(connection, window.until, base.n + 1, last, beyond=True) - 1
    return _Place(of="rows", after=first - 1, first=first, last=last)


def _noted_beginning(connection: Connection, base: Base) -> None:
    """Raises where no act says that the rows before the first were removed."""
    act = _next_row(connection, base.noted_by - 1, base.noted_by) if base.noted_by > base.n else None
    said = base.act()
    if act is None or (act.action, act.object, act.digest) != (TRIMMED, said.object, said.digest):
        raise _Wrong("rows before the first are missing, and no act says that they were removed", row=base.n + 1)


def _first_at(connection: Connection, at: datetime, first: int, last: int, *, beyond: bool = False) -> int:
    """The number of the first row at or after a time (`beyond`: after it), by halving."""
    micros = codec.to_micros(at) + int(beyond)
    low, high = first, last + 1
    while low < high:
        middle = (low + high) // 2
        row = _row(connection, middle)
        if row is None:
            raise _Wrong("the row is missing", row=middle)
        if row.at < micros:
            low = middle + 1
        else:
            high = middle
    return low


def _row(connection: Connection, n: int) -> _Covering | None:
    rows = connection.execute(_ROW, (n,)).fetchall()
    return msgspec.convert(rows[0], _Covering) if rows else None


def _check_rows(connection: Connection, place: _Place, base: Base, *, rows: bool) -> Checked:
    before = base.hash
    if place.after > base.n:
        known = _row(connection, place.after)
        if known is None:
            raise _Wrong("the row is missing", row=place.after)
        before = known.hash
    done, acts, calls = place.after, 0, 0
    removals = _Removals(connection)
    shown: list[AuditRow] = []
    while done < place.last and done - place.after < ROWS and calls < CALLS:
        try:
            row = _next_row(connection, done, place.last)
            before = _follows(row, done + 1, before)
            covered = 0 if row.covers is None else _covered(connection, row, row.covers, removals)
        except UNREADABLE as error:
            raise _Wrong(f"the row, or what it covers, cannot be read: {error}", row=done + 1) from error
        acts += row.covers is None
        calls += covered
        if rows:
            shown.append(row.shown())
        done += 1
    return Checked(done=done - place.first + 1, total=0, acts=acts, calls=calls, rows=tuple(shown))


def _next_row(connection: Connection, after: int, last: int) -> StoredRow:
    found = connection.execute(_ROWS, (after, last, 1)).fetchall()
    if not found:
        raise _Wrong("the row is missing", row=after + 1)
    return msgspec.convert(found[0], StoredRow)


def _follows(row: StoredRow, n: int, before: bytes) -> bytes:
    """The hash of a row that is the next."""
    if row.n != n:
        raise _Wrong("the row is missing", row=n)
    if row.hashed().hash_after(before) != row.hash:
        raise _Wrong("the row, or the one before it, is not as it was written", row=n)
    if row.covers is not None and (len(row.covers) % ENTRY_BYTES or sha256(row.covers).digest() != row.digest):
        raise _Wrong("what the row covers is not what it covered", row=n)
    return row.hash


class _Removals:
    """Looks up which row says of a call that it was removed; calls were removed in the order of their numbers."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._n = 0
        self._covers: dict[int, bytes] = {}

    def noted(self, number_: int, since: int) -> bool:
        """Whether a row says so, that one or a later one."""
        near = msgspec.convert(self._connection.execute(_REMOVED, (number_,)).fetchall(), list[_Removed])
        if not near or number_ > near[0].last or near[0].covered_by < since:
            return False
        if self._n != near[0].covered_by:
            self._n = near[0].covered_by
            row = _row(self._connection, self._n)
            self._covers = {} if row is None else dict(_entries(row.covers or b""))
        return self._covers.get(number_) == NOTHING


def _covered(connection: Connection, row: StoredRow, covers: bytes, removals: _Removals) -> int:
    """Look at each task that a row covers; how many there are."""
    for number_, digest in _entries(covers):
        task = audit.task_row(connection, number_)
        if task is None:
            if not removals.noted(number_, row.n):
                raise _Wrong(f"call number {number_} is no longer there", row=row.n)
            continue
        if task.covered_by is None or task.covered_by < row.n:
            raise _Wrong("the call is not as it was left", row=row.n, call_id=task.id)
        if task.covered_by == row.n:
            _stands(connection, task, digest, row.n)
    return len(covers) // ENTRY_BYTES


def _stands(connection: Connection, task: TaskRow, digest: bytes, n: int) -> None:
    """Raises where a task is not what its digest says."""
    found = audit.reckoned(connection, task)
    if found.digest != digest or task.digest != digest or found.sums != task.sums:
        raise _Wrong("the call is not as it was written", row=n, call_id=task.id)


def _entries(covers: bytes) -> Iterator[tuple[int, bytes]]:
    for start in range(0, len(covers), ENTRY_BYTES):
        middle = start + NUMBER_BYTES
        yield int.from_bytes(covers[start:middle]), covers[middle : start + ENTRY_BYTES]


def _check_calls(connection: Connection, place: _Place, base: Base) -> Checked:
    """The next calls, by their numbers: is each covered by the row that it names?"""
    calls = msgspec.convert(connection.execute(_TASKS, (place.after, CALLS)).fetchall(), list[_Call])
    begun = base.calls if base.n > 0 else _begun_after(connection)
    unvouched = 0
    n, covers = 0, dict[int, bytes]()
    for call in calls:
        if call.covered_by is None and call.digest is None and call.number <= begun:
            unvouched += 1
            continue
        if call.covered_by is not None and call.covered_by <= base.n and call.number <= base.calls:
            unvouched += 1
            continue
        if call.covered_by is not None and call.covered_by != n:
            n = call.covered_by
            row = _row(connection, n)
            covers = dict(_entries(row.covers or b"")) if row is not None else {}
        if call.covered_by is None or call.digest is None or covers.get(call.number) != call.digest:
            raise _Wrong("no row of the audit covers the call", row=call.covered_by, call_id=call.id)
    done = place.last - place.first + 1 + (calls[-1].number if calls else place.after)
    following = str(calls[-1].number) if len(calls) == CALLS else None
    return Checked(done=done, total=0, unvouched=unvouched, cursor=following)


def _begun_after(connection: Connection) -> int:
    """The number of the last call that was there before the audit."""
    first = _next_row(connection, 0, 1)
    if first.action != BEGUN or not first.object.removeprefix(FIRST).isdigit():
        raise _Wrong("the first row is not the first", row=1)
    return int(first.object.removeprefix(FIRST))
