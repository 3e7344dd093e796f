"""What calls used up: sums of days, added to; and the calls themselves, where days do not tell.

A killed hub had not added what it counted last. `usage_mark` says up to which commit all was added, the audit which
calls later commits wrote: so those are found, and nothing else has to be written for each call. Left out are at most
the calls whose commit and whose adding crossed in the very moment of the last adding.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite.audit import ENTRY_BYTES, NUMBER_BYTES, Noted
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.tasks import TaskRow, folded
from dragoman.model.task import Task
from dragoman.model.usage import NOTHING, Sums, sums_of
from dragoman.ports.usage import By, DayOf, UsageQuery, UsageSum

KEPT_DAYS: Final = 400
MOST_SUMS: Final = 10_000  # told in one answer
MOST_CALLS: Final = 5_000  # of one conversation, looked at for what they cost
MOST_UNCOUNTED: Final = 200_000
TOUCHED: Final = 5_000_000  # microseconds: who ended so long before the mark was counted, whatever was written later
ROWS: Final = 500

_ADD: Final = SQL["add_usage"]
_DROP: Final = SQL["drop_usage"]
_MARK: Final = SQL["set_usage_mark"]
_GET_MARK: Final = SQL["usage_mark"]
_SPENT: Final = SQL["usage_of_caller"]
_BY: Final = SQL["usage_by"]
_COVERED: Final = SQL["covered_after"]
_ENDED: Final = SQL["ended_between"]
_CALLS_IN: Final = SQL["calls_in_context"]
_TASKS_IN: Final = SQL["callers_tasks_in_context"]
_CHILDREN: Final = SQL["tasks_below"]


class _Mark(msgspec.Struct, frozen=True, array_like=True):
    audited: int
    at: int


class _Covered(msgspec.Struct, frozen=True, array_like=True):
    n: int
    covers: bytes


class _Sums(msgspec.Struct, frozen=True, array_like=True):
    calls: int | None
    tokens: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost: int | None
    estimated: int | None

    def told(self) -> Sums:
        """As the hub knows it; where there is nothing SQL has no number."""
        return Sums(
            calls=self.calls or 0,
            tokens=self.tokens or 0,
            input_tokens=self.input_tokens or 0,
            output_tokens=self.output_tokens or 0,
            cost_nano=self.cost or 0,
            estimated_nano=self.estimated or 0,
        )


class _Named(msgspec.Struct, frozen=True, array_like=True):
    name: str
    calls: int
    tokens: int
    input_tokens: int
    output_tokens: int
    cost: int
    estimated: int


def add(connection: Connection, noted: Noted, days: Sequence[tuple[DayOf, Sums]], at: int) -> None:
    """Add to the sums, and note that what was committed before is among them."""
    connection.executemany(
        _ADD,
        [
            (of.day, of.tenant, of.caller, of.target, of.skill, of.model, sums.calls, sums.tokens, sums.input_tokens,
             sums.output_tokens, sums.cost_nano, sums.estimated_nano)
            for of, sums in days
        ],
    )  # fmt: skip
    connection.execute(_MARK, (noted.n - 1, at)).fetchall()
    connection.execute(_DROP, (at // (86_400 * 1_000_000) - KEPT_DAYS,)).fetchall()


def uncounted(connection: Connection, before: int) -> Sequence[Task] | None:
    """The calls that commits after the mark ended, up to a time."""
    rows = connection.execute(_GET_MARK).fetchall()
    if not rows:
        return None
    mark = msgspec.convert(rows[0], _Mark)
    numbers: dict[int, None] = {}
    after = mark.audited
    while len(numbers) < MOST_UNCOUNTED:
        covered = msgspec.convert(connection.execute(_COVERED, (after, ROWS)).fetchall(), list[_Covered])
        for row in covered:
            starts = range(0, len(row.covers), ENTRY_BYTES)
            numbers |= {int.from_bytes(row.covers[start : start + NUMBER_BYTES]): None for start in starts}
        if len(covered) < ROWS:
            break
        after = covered[-1].n
    rows = (connection.execute(_ENDED, (number, mark.at - TOUCHED, before)).fetchall() for number in numbers)
    return [folded(connection, msgspec.convert(row[0], TaskRow)) for row in rows if row]


def spent_on(connection: Connection, day: int, tenant: str, caller: str) -> Sums:
    """What one caller used up on a day."""
    return msgspec.convert(connection.execute(_SPENT, (day, tenant, caller)).fetchall()[0], _Sums).told()


def by(connection: Connection, query: UsageQuery) -> Sequence[UsageSum]:
    """Sums by one of the things that days know."""
    if query.by is By.CONVERSATION:
        return ()
    days = msgspec.json.encode(list(range(query.first, query.last + 1))).decode()
    asked = {"days": days, "tenant": query.tenant, "caller": query.caller, "by": query.by.value, "limit": MOST_SUMS}
    found = msgspec.convert(connection.execute(_BY, asked).fetchall(), list[_Named])
    return [
        UsageSum(
            name=row.name,
            sums=_Sums(row.calls, row.tokens, row.input_tokens, row.output_tokens, row.cost, row.estimated).told(),
        )
        for row in found
    ]


def calls_in(connection: Connection, tenant: str, context: str, caller: str | None, since: int, most: int) -> int:
    """How many calls a conversation has had, up to a number."""
    found = connection.execute(_CALLS_IN, (tenant, context, since, caller, most)).fetchall()
    return msgspec.convert(found[0], tuple[int])[0]


def spent_in(connection: Connection, tenant: str, context: str, caller: str) -> Sums:
    """What a caller's newest calls in a conversation used up; steps are counted, not the workflow that they are of."""
    rows = connection.execute(_TASKS_IN, (tenant, context, caller, MOST_CALLS)).fetchall()
    spent = NOTHING
    for row in msgspec.convert(rows, list[TaskRow]):
        task = folded(connection, row)
        if task.ended and not task.asked.then:
            spent += sums_of(task.usage)
    return spent


def children(connection: Connection, task_id: str, most: int) -> Sequence[Task]:
    """The calls that name this one as the call they belong to."""
    rows = connection.execute(_CHILDREN, (task_id, most)).fetchall()
    return [folded(connection, row) for row in msgspec.convert(rows, list[TaskRow])]
