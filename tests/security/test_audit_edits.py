"""Every change to the audit, and to what it covers, is found."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from unittest import mock

import msgspec
import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.audit import Row
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.model.states import TaskState
from dragoman.ports.clock import SystemClock
from tests.contracts.samples import ALICE, completed, moved, new_task, opening, step
from tests.security.audit_edits import Book, Edit, columns_of, whole, written
from tests.support.run import run
from tests.support.security_figures import Figures

EDITS = 1000


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Book]:
    made = written(tmp_path_factory.mktemp("audit"))
    yield made
    made.connection.close()


def unseen(book: Book, edits: int, seed: int) -> list[str]:
    """The changes of so many that a check does not find."""
    chance = random.Random(seed)
    missed: list[str] = []
    for _ in range(edits):
        book.restore()
        done = Edit(book, chance).any()
        if book.checked().broken is None:
            missed.append(done)
    return missed


def test_a_book_that_nobody_touched_is_whole(book: Book) -> None:
    book.restore()
    found = book.checked()
    assert found.broken is None
    assert found.calls > 50
    assert found.acts > 5


@pytest.mark.req("E-24")
def test_every_one_of_a_thousand_changes_is_found(book: Book, figures: Figures) -> None:
    seed = random.SystemRandom().randrange(10**6)
    missed = unseen(book, EDITS, seed)
    figures("S7", edits=EDITS, unseen=len(missed))
    assert missed == [], f"seed {seed}"


@pytest.mark.parametrize("table", ["audit", "task", "event"])
def test_there_is_no_column_whose_change_goes_unseen(book: Book, table: str) -> None:
    key = {"audit": "n", "task": "number", "event": "key"}[table]
    for column in columns_of(book, table):
        book.restore()
        row, kind = book.connection.execute(
            f"SELECT {key}, typeof({column}) FROM {table} ORDER BY {key} LIMIT 1 OFFSET 3"
        ).fetchone()
        new = {"null": "'x'", "integer": f"{column} + 4096", "text": f"{column} || 'x'"}.get(kind, f"{column} || x'00'")
        book.connection.execute(f"UPDATE {table} SET {column} = {new} WHERE {key} = {row}")
        assert book.checked().broken is not None, f"{table}.{column}"


def test_a_chain_that_skips_a_column_would_be_noticed(book: Book) -> None:
    hashed = Row.hash_after

    def skipping(self: Row, before: bytes) -> bytes:
        return hashed(msgspec.structs.replace(self, principal=""), before)

    with mock.patch.object(Row, "hash_after", skipping):
        book.restore()
        before = b"\x00" * 32
        for values in book.connection.execute("SELECT * FROM audit ORDER BY n").fetchall():
            before = _rewritten(book, values, before)
        book.connection.execute("UPDATE audit_tip SET hash = (SELECT hash FROM audit WHERE audit.n = audit_tip.n)")
        book.connection.execute("DELETE FROM audit_head")
        assert book.checked().broken is None
        book.connection.execute("UPDATE audit SET principal = 'somebody else' WHERE n = 5")
        assert book.checked().broken is None  # So this is what a chain that skips a column lets pass,
    book.restore()
    book.connection.execute("UPDATE audit SET principal = 'somebody else' WHERE n = 5")
    assert book.checked().broken is not None  # and ours does not.


def _rewritten(book: Book, values: tuple[object, ...], before: bytes) -> bytes:
    names = [row[1] for row in book.connection.execute("PRAGMA table_info(audit)")]
    row = dict(zip(names, values, strict=True))
    digest = row["digest"]
    shown = {name: row[name] for name in ("action", "at", "key", "n", "object", "outcome", "principal", "request")}
    hash_ = msgspec.convert(
        {**shown, "tenant": row["tenant"], "digest": digest.hex() if isinstance(digest, bytes) else None}, Row
    ).hash_after(before)
    book.connection.execute("UPDATE audit SET hash = ? WHERE n = ?", (hash_, row["n"]))
    return hash_


def test_a_call_that_is_put_back_to_an_earlier_state_is_found(tmp_path: Path) -> None:
    clock, path = SystemClock(), tmp_path / "hub.db"
    task = new_task(clock)
    working = step(task, moved(clock, TaskState.WORKING))
    before: list[list[tuple[object, ...]]] = []

    async def write() -> None:
        store = SqliteStore(path, clock=clock, bus=LocalBus())
        await store.start()
        await store.open(opening(task, durable=True))
        await store.append(working)
        with closing(sqlite3.connect(path)) as file:
            before.extend(file.execute(f"SELECT * FROM {table}").fetchall() for table in ("task", "event"))
        await store.append(step(working.task, completed(clock)))
        await store.close()

    run(write())
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        assert whole(file).broken is None
        for table, rows in zip(("task", "event"), before, strict=True):
            file.execute(f"DELETE FROM {table}")
            marks = ", ".join("?" * len(rows[0]))
            file.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
        broken = whole(file).broken
    assert broken is not None
    assert broken.call_id == task.id


def test_a_call_that_was_changed_still_shows_when_its_words_are_forgotten(tmp_path: Path) -> None:
    clock, path = SystemClock(), tmp_path / "hub.db"

    async def write() -> None:
        store = SqliteStore(path, clock=clock, bus=LocalBus())
        await store.start()
        task = new_task(clock)
        await store.open(opening(task))
        await store.append(step(task, completed(clock)))
        with closing(sqlite3.connect(path)) as file, file:
            file.execute("UPDATE task SET context = 'another'")
        await store.forget(ALICE, [task.id])
        await store.close()

    run(write())
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        assert whole(file).broken is not None


def test_acts_that_are_cut_off_after_the_last_signature_are_missed(book: Book) -> None:
    book.restore()
    book.connection.execute("DELETE FROM audit_head")
    (last,) = book.connection.execute("SELECT n FROM audit_tip").fetchone()
    book.connection.execute("DELETE FROM audit WHERE n >= ?", (last,))
    book.connection.execute("DELETE FROM task WHERE covered_by >= ?", (last,))
    broken = book.checked().broken
    assert broken is not None
    assert broken.row == last


def test_the_first_bad_row_is_named(book: Book) -> None:
    book.restore()
    book.connection.execute("UPDATE audit SET object = 'other' WHERE n IN (9, 14)")
    broken = book.checked().broken
    assert broken is not None
    assert broken.row == 9
