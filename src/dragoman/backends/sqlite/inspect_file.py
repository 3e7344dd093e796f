"""A look at the whole file, table by table, by a thread that gives way to everything else.

A look is one long read, and while it lasts the log cannot begin anew: where the log has grown to half of its limit
meanwhile, the look is broken off, for calls would have to wait for it. Ends within a moment when the store closes.
"""

import contextlib
import os
import sqlite3
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.retention import Inspected

STEPS: Final = 20_000  # of SQLite's machine between two looks at the log
MOST_WRONG: Final = 5  # of one table
QUICKLY: Final = "SELECT quick_check FROM pragma_quick_check(?1)"
WHOLLY: Final = "SELECT integrity_check FROM pragma_integrity_check(?1)"
_BROKEN_OFF: Final = (sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
LOWEST: Final = 19  # the niceness of a thread that works only where nobody else does


@final
class Inspector:
    """Looks at one file, once at a time."""

    __slots__ = ("_limit_bytes", "_log", "_looking", "_monotonic", "_path", "_stopping")

    def __init__(self, path: Path, *, limit_bytes: int, monotonic: Callable[[], float]) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._limit_bytes = limit_bytes // 2
        self._monotonic = monotonic
        self._looking = threading.Lock()
        self._stopping = False

    def look(self, *, quick: bool) -> Inspected:
        """What is wrong with the file; on the thread of whoever calls, which is the slowest from then on."""
        with self._looking:
            began = self._monotonic()
            _give_way()
            try:
                wrong = self._tables(quick=quick)
            except sqlite3.Error as error:
                if getattr(error, "sqlite_errorcode", None) in _BROKEN_OFF:
                    return Inspected(whole=None, took_s=self._monotonic() - began)
                wrong = [str(error)]
            return Inspected(whole=not wrong, wrong=tuple(wrong), took_s=self._monotonic() - began)

    def stop(self) -> None:
        """Break off a look, and return when it has ended."""
        self._stopping = True
        with self._looking:
            pass

    def _tables(self, *, quick: bool) -> list[str]:
        wrong: list[str] = []
        with closing(sqlite3.connect(self._path, isolation_level=None, timeout=1.0)) as database:
            database.execute("PRAGMA query_only=1").fetchall()
            database.set_progress_handler(self._too_much, STEPS)
            tables = msgspec.convert(database.execute(SQL["own_tables"]).fetchall(), list[tuple[str]])
            for (table,) in tables:
                found = database.execute(QUICKLY if quick else WHOLLY, (table,)).fetchmany(MOST_WRONG)
                wrong += [f"{table}: {each[0]}" for each in found if each[0] != "ok"]
        return wrong

    def _too_much(self) -> bool:
        if self._stopping:
            return True
        with contextlib.suppress(FileNotFoundError):
            return self._log.stat().st_size > self._limit_bytes
        return False


def _give_way() -> None:
    if sys.platform == "linux":
        # There a thread has a niceness of its own.
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), LOWEST)
