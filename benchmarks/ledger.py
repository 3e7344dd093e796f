"""The count at the end: every answer has its row, events have no gap, the file is whole.

Requests that were in flight when wrk stopped may or may not have reached the disk; nothing else may differ.
"""

import contextlib
import re
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from benchmarks.place import Void

# The control: tasks whose events are not 1..n, or that have none.
NAIVE_GAPS: Final = """
SELECT count(*) FROM task LEFT JOIN
  (SELECT task_id, count(*) = 2 AND min(seq) = 1 AND max(seq) = 2 AS whole FROM event GROUP BY task_id) ON task_id = id
WHERE whole IS NOT 1
"""
# The hub, calls with rows of their own: an event's key is the task's number and, in the last 20 bits, its own.
HUB_GAPS: Final = """
SELECT count(*) FROM task WHERE log IS NULL AND last_seq <>
  (SELECT CASE WHEN min(key & 1048575) = 1 AND max(key & 1048575) = count(*) THEN count(*) ELSE -1 END
   FROM event WHERE key > number << 20 AND key <= number << 20 | 1048575)
"""
HUB_COMPLETED: Final = 4
REQUEST_ID: Final = re.compile(rb"trace_[0-9a-f]{32}")


class Answers(NamedTuple):
    """Right answers that a server gave, and what it called the calls, where it says so."""

    count: int
    names: Sequence[str] = ()


class Ledger:
    """What one server answered, by number and name, and how many requests it may have been left with."""

    def __init__(self) -> None:
        self.answered = 0
        self.cut_off = 0
        self.names: set[str] = set()

    def add(self, answers: Answers, cut_off: int = 0) -> None:
        """One more round; Void when two answers bear one name."""
        before = len(self.names)
        self.names.update(answers.names)
        if len(self.names) != before + len(answers.names):
            raise Void("Two requests were answered as one call.")
        self.answered += answers.count
        self.cut_off += cut_off


def check_naive(file: Path, ledger: Ledger) -> dict[str, Any]:
    """The control's database: rows and events against the ledger, else Void."""
    with _opened(file) as db:
        completed = _number(db, "SELECT count(*) FROM task WHERE state = 'completed'")
        rows = _number(db, "SELECT count(*) FROM task")
        return _settled(db, ledger, completed=completed, rows=rows, gaps=_number(db, NAIVE_GAPS))


def check_hub(file: Path, ledger: Ledger) -> dict[str, Any]:
    """The hub's database: rows and events against the ledger, else Void."""
    with _opened(file) as db:
        completed = _number(db, "SELECT count(*) FROM task WHERE state = ?", HUB_COMPLETED)
        rows = _number(db, "SELECT count(*) FROM task")
        gaps = _number(db, HUB_GAPS)
        # A call that ended at once is one row: its opening, which is event 1, and the events after it.
        for last, log in db.execute("SELECT last_seq, log FROM task WHERE log IS NOT NULL"):
            _, events = msgspec.msgpack.decode(log)
            gaps += last != 1 + len(events)
        return _settled(db, ledger, completed=completed, rows=rows, gaps=gaps)


def check_carried(file: Path) -> int:
    """How many accepted calls the hub has carried out: all of them, each with the answer to itself, else Void."""
    known: set[bytes] = set()
    with _opened(file) as db:
        left = _number(db, "SELECT count(*) FROM job")
        for id_, state, doc in db.execute("SELECT id, state, doc FROM task WHERE doc IS NOT NULL AND state <> 6"):
            # What was asked, where the call went and what came back all have the request's id in them.
            ids = set(REQUEST_ID.findall(doc))
            if state != HUB_COMPLETED or len(ids) != 1 or not ids.isdisjoint(known):
                raise Void(f"{id_} was accepted and ended in state {state}, with the ids {ids}")
            known |= ids
    if left:
        raise Void(f"{left} accepted calls are still in the queue")
    return len(known)


def left_hub(file: Path) -> int:
    """How many calls the hub has in its queue, or at work."""
    with _opened(file) as db:
        return _number(db, "SELECT count(*) FROM job")


def left_naive(file: Path) -> int:
    """How many calls the control has accepted and not carried out."""
    with _opened(file) as db:
        return _number(db, "SELECT count(*) FROM task WHERE state <> 'completed'")


def _settled(db: sqlite3.Connection, ledger: Ledger, *, completed: int, rows: int, gaps: int) -> dict[str, Any]:
    intact = db.execute("PRAGMA integrity_check").fetchone()[0]
    found = {"answered": ledger.answered, "cut_off": ledger.cut_off, "completed": completed, "rows": rows}
    found |= {"gaps": gaps, "integrity": intact}
    missing = ledger.names.difference(name for (name,) in db.execute("SELECT id FROM task"))
    if missing:
        raise Void(f"{len(missing)} answered calls are not in the database, {min(missing)} for one: {found}")
    if completed < ledger.answered or rows > ledger.answered + ledger.cut_off or gaps or intact != "ok":
        raise Void(f"The database does not agree with the answers: {found}")
    return found


def _opened(file: Path) -> contextlib.closing[sqlite3.Connection]:
    return contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True))


def _number(db: sqlite3.Connection, query: str, *values: int) -> int:
    return int(db.execute(query, values).fetchone()[0])
