"""Which calls a trace has: an index that is written in runs, not call by call.

    a call is written ──► memory ──(when two runs more have begun)──► its run, sorted, in one commit
    a call that comes later than that ───────────────────────────────► its run, at once
    found ◄── memory, then the file's runs, the newest first

Trace ids come in no order. In an index that every call is put into by itself each has a page of its own changed, which
costs as much as the call's row; in a run that is written at once a hundred share one. What was in memory is read from
the calls again at the start.
"""

from collections.abc import Sequence
from typing import Final, final

import msgspec

from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.counted import ROW_BYTES
from dragoman.backends.sqlite.sql import SQL

RUN_BITS: Final = 11  # queries.sql has them, too
AWAITED: Final = 2  # runs that begin before one is written: until then most calls of it have come

_ADD: Final = SQL["add_traced"]
_LAST_RUN: Final = SQL["last_run"]
_UNWRITTEN: Final = SQL["untraced_calls"]

Traced = tuple[int, str]  # a call's number and its trace


@final
class TracedCalls:
    """The index of one file. All methods but `unwritten` belong to the writer's thread."""

    __slots__ = ("_due", "_gone", "_highest", "_runs", "_written")

    def __init__(self, connection: Connection) -> None:
        """Read what the file's runs lack."""
        last = number(connection, _LAST_RUN)
        self._written = -1 if last is None else last  # the last run that the file has
        self._highest = 0
        self._due: int | None = None  # the run that the open transaction writes
        self._gone: set[int] = set()  # calls that were removed before their run was written
        self._runs: dict[int, dict[str, list[int]]] = {}
        rows = connection.execute(_UNWRITTEN, ((self._written + 1) << RUN_BITS,)).fetchall()
        found = msgspec.convert(rows, list[Traced])
        if found and last is None:
            self._written = (found[0][0] >> RUN_BITS) - 1
        self.committed(found, ())

    def unwritten(self, trace: str) -> list[int]:
        """The calls of a trace that are in memory; from any thread. Look here first, then into the file."""
        return [each for run in list(self._runs.values()) for each in list(run.get(trace, ()))]

    def write(self, connection: Connection, calls: Sequence[Traced], removed: Sequence[int]) -> int:
        """Write what is due inside the open transaction, with these calls and without those; about how many bytes."""
        rows = [(each >> RUN_BITS, trace, each) for each, trace in calls if each >> RUN_BITS <= self._written]
        self._due = None
        due = self._written + 1
        if self._highest >> RUN_BITS >= due + AWAITED:
            self._due = due
            run, gone = self._runs.get(due, {}), self._gone.union(removed)
            for trace in sorted(run):
                rows += [(due, trace, each) for each in sorted(run[trace], reverse=True) if each not in gone]
        if rows:
            connection.executemany(_ADD, rows)
        return len(rows) * ROW_BYTES

    def committed(self, calls: Sequence[Traced], removed: Sequence[int]) -> None:
        """What the transaction wrote is on disk: these calls; those were removed."""
        written, runs = self._written, self._runs
        for each, trace in calls:
            run = each >> RUN_BITS
            if run > written:
                runs.setdefault(run, {}).setdefault(trace, []).append(each)
                self._highest = max(self._highest, each)
        self._gone.update(each for each in removed if each >> RUN_BITS > written)
        if self._due is not None:
            self._written = self._due
            runs.pop(self._due, None)
            self._gone = {each for each in self._gone if each >> RUN_BITS > self._due}
            self._due = None
