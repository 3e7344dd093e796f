"""Which calls a trace has: an index that is written in runs, not call by call.

    a call is written ──► memory ──(when two runs more have begun)──► its run, sorted, in one commit
    a call that comes later than that ───────────────────────────────► its run, at once
    found ◄── memory, then the file's runs, the newest first

Trace ids come in no order. In an index that every call is put into by itself each has a page of its own changed; in a
run that is written at once many share one. What was in memory is read from the calls again after the start, beside
everything else: until then no run is written, and look-ups wait.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, final

import msgspec

from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.counted import ROW_BYTES
from dragoman.backends.sqlite.seen import Ask
from dragoman.backends.sqlite.sql import SQL

RUN_BITS: Final = 11  # queries.sql has them, too
AWAITED: Final = 2  # runs that begin before one is written: until then most calls of it have come

_ADD: Final = SQL["add_traced"]
_LAST_RUN: Final = SQL["last_run"]
_LAST_CALL: Final = SQL["last_task_number"]
_UNWRITTEN: Final = SQL["untraced_calls"]

_LOG: Final = logging.getLogger(__name__)

Traced = tuple[int, str]  # a call's number and its trace


@final
class TracedCalls:
    """The index of one file. What has to do with commits belongs to the writer's thread."""

    __slots__ = ("_due", "_gone", "_highest", "_is_whole", "_last_call", "_reading", "_runs", "_written")

    def __init__(self, connection: Connection) -> None:
        last_run = number(connection, _LAST_RUN)
        self._written = -1 if last_run is None else last_run  # the last run that the file has
        self._last_call = number(connection, _LAST_CALL) or 0  # of those that were there at the start
        self._highest = 0
        self._due: int | None = None  # the run that the open transaction writes
        self._gone: set[int] = set()  # calls that were removed before their run was written
        self._runs: dict[int, dict[str, list[int]]] = {}
        self._is_whole = self._last_call < (self._written + 1) << RUN_BITS or not self._last_call
        self._reading: asyncio.Future[None] | None = None

    def read(self, ask: Ask) -> None:
        """Have the calls read that the file's runs lack, on a reader's thread."""
        if not self._is_whole:
            self._reading = ask(self._read)
            self._reading.add_done_callback(self._was_read)

    async def wait(self) -> None:
        """Until all is there that can be found."""
        if not self._is_whole and self._reading is not None:
            await asyncio.wait([self._reading])

    def unwritten(self, trace: str) -> list[int]:
        """The calls of a trace that are in memory; from any thread. Look here first, then into the file."""
        return [each for run in list(self._runs.values()) for each in list(run.get(trace, ()))]

    def write(self, connection: Connection, calls: Sequence[Traced], removed: Sequence[int]) -> int:
        """Write what is due inside the open transaction, with these calls and without those; about how many bytes."""
        rows = [(each >> RUN_BITS, trace, each) for each, trace in calls if each >> RUN_BITS <= self._written]
        self._due = None
        due = self._written + 1
        if self._is_whole and self._highest >> RUN_BITS >= due + AWAITED:
            self._due = due
            run, gone = self._runs.get(due, {}), self._gone.union(removed)
            for trace in sorted(run):
                rows += [(due, trace, each) for each in sorted(run[trace], reverse=True) if each not in gone]
        if rows:
            connection.executemany(_ADD, rows)
        return len(rows) * ROW_BYTES

    def committed(self, calls: Sequence[Traced], removed: Sequence[int]) -> None:
        """What the transaction wrote is on disk: these calls; those were removed."""
        self._keep(calls)
        self._gone.update(each for each in removed if each >> RUN_BITS > self._written)
        if self._due is not None:
            self._written = self._due
            self._runs.pop(self._due, None)
            self._gone = {each for each in self._gone if each >> RUN_BITS > self._due}
            self._due = None

    def _keep(self, calls: Sequence[Traced]) -> None:
        written, runs = self._written, self._runs
        for each, trace in calls:
            run = each >> RUN_BITS
            if run > written:
                runs.setdefault(run, {}).setdefault(trace, []).append(each)
                self._highest = max(self._highest, each)

    def _read(self, connection: Connection) -> None:
        first = (self._written + 1) << RUN_BITS
        found = msgspec.convert(connection.execute(_UNWRITTEN, (first, self._last_call)).fetchall(), list[Traced])
        if found and self._written < 0:
            self._written = (found[0][0] >> RUN_BITS) - 1  # What was before is gone.
        self._keep(found)

    def _was_read(self, reading: asyncio.Future[None]) -> None:
        if not reading.cancelled() and reading.exception() is not None:
            _LOG.warning("calls could not be read: some are not found by their trace", exc_info=reading.exception())
        self._is_whole = True
