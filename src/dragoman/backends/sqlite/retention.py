"""Retention: calls whose time is over go, with all that belongs to them; each function is one short step of the writer.

Calls are looked at in the order of their numbers, which is that of their openings, so no index by time is needed. What
was removed is noted in the audit as a call that was written with no digest, and in `removed`, where the check of the
audit finds which row says so.
"""

from collections.abc import Callable, Sequence, Set
from typing import Final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.audit import NOTHING, Noted
from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.rating import COUNTED
from dragoman.ports.retention import Expired

AT_ONCE: Final = 500  # rows of one step
LOOKED_AT: Final = 200  # calls of one step
LONGEST_S: Final = 0.005  # of one step: it ends with the call after which that is over

_CALLS: Final = SQL["calls_by_number"]
_CONTEXT: Final = SQL["ends_of_context"]
_OWED: Final = SQL["owed"]
_REMOVE: Final = SQL["remove_call"]
_EVENTS: Final = SQL["remove_events"]
_OPENED: Final = SQL["task_by_number"]


class _Call(msgspec.Struct, frozen=True, array_like=True):
    number: int
    id: str
    tenant: str
    context: str
    state: int
    state_at: int
    size: int
    has_events: bool


class _Owed(msgspec.Struct, frozen=True, array_like=True):
    jobs: int
    pending: int
    last_notice: int


def expire_calls(
    connection: Connection,
    noted: Noted,
    *,
    before: int,
    now: int,
    after: int,
    monotonic: Callable[[], float],
    counted: Callable[[int], bool],
) -> Expired:
    """Remove the next calls that ended before that time. `counted`: whether a call is in the figures of its tenant."""
    began = monotonic()
    rows = connection.execute(_CALLS, (after, LOOKED_AT)).fetchall()
    calls = msgspec.convert(rows, list[_Call], strict=False)
    step = _Step(connection)
    looked_at = 0
    for call in calls:
        looked_at += 1
        old = call.state >= codec.FIRST_FINAL and call.state_at < before
        size = step.take(call) if old else None
        if size is not None:
            noted.wrote(call.number, NOTHING, call.tenant, -size if counted(call.number) else 0)
            noted.removed.append(call.number)
        if step.rows >= AT_ONCE or monotonic() - began > LONGEST_S:
            break
    step.remove([call.number for call in calls[:looked_at]], noted.n)
    following = calls[looked_at - 1].number if looked_at else None
    if looked_at == len(calls):
        # One from a time that is yet to come was opened while the clock was wrong: what follows may be old.
        young = bool(calls) and not step.taken and before <= _opened_at(connection, calls[-1].number) <= now
        following = None if len(calls) < LOOKED_AT or young else following
    return Expired(calls=len(step.taken), rows=step.rows, took_s=monotonic() - began, next=following)


class _Step:
    """The calls that go in one step."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._ends: dict[tuple[str, str], tuple[int, int]] = {}  # the first and the last call of each conversation
        self._with_notices: list[int] = []
        self._last_notice = 0
        self.taken: list[_Call] = []
        self.rows = 0

    def take(self, call: _Call) -> int | None:
        """How many bytes go with a call; None where it may not go: something is owed, or it says whose a living
        conversation is."""
        owed = msgspec.convert(self._connection.execute(_OWED, (call.number,)).fetchall()[0], _Owed)
        first, last = self._ends_of(call)
        if owed.jobs or owed.pending or (call.number == first and call.number != last):
            return None
        gone = self._events_of(call) if call.has_events else []
        if owed.last_notice:
            self._with_notices.append(call.number)
            self._last_notice = max(self._last_notice, owed.last_notice)
        self.taken.append(call)
        self.rows += 1 + len(gone)
        return call.size + sum(gone)

    def remove(self, looked_at: Sequence[int], covered_by: int) -> None:
        """Remove what was taken; the row of the audit that says so."""
        if not self.taken:
            return
        run = self._connection.executemany
        ids, numbers = [(call.id,) for call in self.taken], [(call.number,) for call in self.taken]
        run(SQL["remove_traced"], numbers)
        run(_REMOVE, numbers)
        run(SQL["remove_aliases"], ids)
        run(SQL["drop_comment"], ids)
        run(SQL["remove_old_rating"], [(call.id, COUNTED - 1) for call in self.taken])
        run(SQL["remove_notices"], [(each,) for each in self._with_notices])
        runs = _runs(looked_at, {call.number for call in self.taken})
        run(SQL["mark_removed"], [(first, last, covered_by) for first, last in runs])
        highest = (self.taken[-1].number, self._last_notice)
        self._connection.execute(SQL["set_removed_last"], highest).fetchall()

    def _ends_of(self, call: _Call) -> tuple[int, int]:
        key = (call.tenant, call.context)
        known = self._ends.get(key)
        if known is None:
            rows = self._connection.execute(_CONTEXT, key).fetchall()
            known = self._ends[key] = msgspec.convert(rows[0], tuple[int, int])
        return known

    def _events_of(self, call: _Call) -> list[int]:
        room = max(AT_ONCE - self.rows, 1)
        gone = _remove_events(self._connection, call.number, room)
        if len(gone) == room:
            self._connection.execute(SQL["note_rest"], (call.number,)).fetchall()
        return gone


def expire_rest(
    connection: Connection, *, now: int, mail_before: int | None, monotonic: Callable[[], float]
) -> Expired:
    """Remove some of the keys, marks, messages and left events whose time is over; `next` is set where more may be."""
    began = monotonic()
    found = [
        _left_events(connection),
        len(connection.execute(SQL["remove_keys"], (now, AT_ONCE)).fetchall()),
        len(connection.execute(SQL["remove_marks"], (now, AT_ONCE)).fetchall()),
    ]
    if mail_before is not None:
        found.append(len(connection.execute(SQL["remove_mail"], (mail_before, AT_ONCE)).fetchall()))
    more = max(found) >= AT_ONCE
    return Expired(rows=sum(found), took_s=monotonic() - began, next=0 if more else None)


def highest_removed(connection: Connection) -> tuple[int, int]:
    """The highest numbers of a call and of a notice that were removed."""
    rows = connection.execute(SQL["removed_last"]).fetchall()
    return msgspec.convert(rows[0], tuple[int, int]) if rows else (0, 0)


def _remove_events(connection: Connection, call: int, limit: int) -> list[int]:
    """The sizes of the events that went."""
    base = call << codec.SEQ_BITS
    rows = connection.execute(_EVENTS, (base, base | codec.MAX_SEQ, limit)).fetchall()
    return [size for (size,) in msgspec.convert(rows, list[tuple[int]])]


def _left_events(connection: Connection) -> int:
    """Remove events that a removed call left; how many."""
    call = number(connection, SQL["next_rest"])
    if call is None:
        return 0
    gone = len(_remove_events(connection, call, AT_ONCE))
    if gone < AT_ONCE:
        connection.execute(SQL["drop_rest"], (call,)).fetchall()
        return max(gone, 1)
    return gone


def _opened_at(connection: Connection, call: int) -> int:
    rows = msgspec.convert(
        connection.execute(_OPENED, (call,)).fetchall(), list[tuple[int, bytes | None, bytes | None]]
    )
    if not rows:
        return 0
    _, doc, log = rows[0]
    if doc is not None:
        return codec.to_micros(codec.TASK.unpack(doc).created_at)
    return 0 if log is None else codec.to_micros(codec.LOG.unpack(log).task.created_at)


def _runs(looked_at: Sequence[int], gone: Set[int]) -> list[tuple[int, int]]:
    """The removed numbers as stretches in which no call is left."""
    runs: list[tuple[int, int]] = []
    going_on = False
    for each in looked_at:
        if each not in gone:
            going_on = False
        elif going_on:
            runs[-1] = (runs[-1][0], each)
        else:
            runs.append((each, each))
            going_on = True
    return runs
