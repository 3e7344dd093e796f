"""A book of calls and acts, and what somebody with access to the file might do to it."""

import asyncio
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import audit_rows
from dragoman.backends.sqlite.audit_check import check
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.model.json import JsonObject
from dragoman.model.states import TaskState
from dragoman.ports.audit import Act, Checked, Window
from dragoman.ports.clock import SystemClock
from dragoman.security.audit_heads import sign_head, signed_up_to
from dragoman.security.tokens import new_signing_key, public_jwks
from tests.contracts.samples import ALICE, chunk, completed, moved, new_task, opening, sent, step
from tests.support.run import run

# Where somebody may change something, and what a row is known by.
PLACES: Final = {"audit": "n", "task": "number", "event": "key"}
QUICK: Final = 40
LONG: Final = 8

Value = None | int | str | bytes


class Book:
    """A whole file in memory, which every change is made to anew."""

    def __init__(self, image: bytes, jwks: JsonObject) -> None:
        self._image = image
        self._jwks = jwks
        self.connection = sqlite3.connect(":memory:", isolation_level=None)

    def restore(self) -> None:
        """Undo every change."""
        self.connection.deserialize(self._image)

    def checked(self) -> Checked:
        """All of it, checked; what adds up is added up."""
        found = whole(self.connection)
        by_heads = signed_up_to(audit_rows.signed_heads(self.connection, 10), self._jwks)[1]
        return msgspec.structs.replace(found, broken=found.broken or by_heads)


def whole(connection: Connection) -> Checked:
    """All of an audit, checked, without a look at signatures; what adds up is added up."""
    window, done = Window(), Checked(done=0, total=0)
    while True:
        piece = check(connection, window)
        done = Checked(
            done=piece.done,
            total=piece.total,
            acts=done.acts + piece.acts,
            calls=done.calls + piece.calls,
            unvouched=done.unvouched + piece.unvouched,
            since=piece.since,
            broken=piece.broken,
        )
        if piece.cursor is None or done.broken is not None:
            return done
        window = Window(cursor=piece.cursor)


def written(folder: Path) -> Book:
    """A book with calls of all kinds, acts among them, some of it forgotten; signed in its middle and at its end."""
    path = folder / "hub.db"
    key = new_signing_key()

    async def write() -> None:
        clock = SystemClock()
        store = SqliteStore(path, clock=clock, bus=LocalBus())
        await store.start()

        async def quick(number: int) -> str:
            task = new_task(clock, said={"number": number})
            await store.open(opening(task))
            await store.append(step(task, sent(clock), completed(clock, {"number": number})))
            return task.id

        async def long(number: int) -> str:
            task = new_task(clock, said={"number": number})
            await store.open(opening(task, durable=True))
            for event in (sent(clock), moved(clock, TaskState.WORKING), chunk(clock, "words"), completed(clock)):
                growth = step(task, event)
                await store.append(growth)
                task = growth.task
            return task.id

        async def noted(number: int) -> None:
            await store.note(
                Act(
                    tenant="acme", principal="alice", key_id="k", action="key.created", object=f"k{number}",
                    request_id="r", digest=bytes([number]) * 32,
                )
            )  # fmt: skip

        async def signed() -> None:
            head = await store.audit_head()
            await store.keep_head(sign_head(key, head, issuer="http://hub.example", now=clock.now()))

        first = await asyncio.gather(*[quick(number) for number in range(QUICK // 2)])
        slow = [await long(number) for number in range(LONG)]
        await noted(1)
        await signed()
        await store.forget(ALICE, [first[0], slow[0]], Act(tenant="acme", principal="a", action="f", object="x"))
        for number in range(QUICK // 2):
            await quick(number)
            if number % 5 == 0:
                await noted(number)
        await store.open(opening(new_task(clock), durable=True))
        await signed()
        await store.close()

    run(write())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode=DELETE").fetchall()  # An image in memory has no log beside it.
        return Book(connection.serialize(), public_jwks([key]))


class Edit:
    """One change to a book, at random; says what it did."""

    def __init__(self, book: Book, chance: random.Random) -> None:
        self._connection = book.connection
        self._chance = chance

    def any(self) -> str:
        """One of all of them; those that the file itself refuses are tried again elsewhere."""
        often = (self._changed, self._changed, self._changed)
        kinds = (*often, self._deleted, self._swapped, self._inserted, self._cut)
        while True:
            place = self._chance.choice([*PLACES])
            try:
                return self._chance.choice(kinds)(place)
            except sqlite3.IntegrityError:
                continue

    def _rows(self, table: str) -> list[int]:
        return [row[0] for row in self._connection.execute(f"SELECT {PLACES[table]} FROM {table} ORDER BY 1")]

    def _columns(self, table: str) -> list[str]:
        return [row[1] for row in self._connection.execute(f"PRAGMA table_info({table})")]

    def _changed(self, table: str) -> str:
        row = self._chance.choice(self._rows(table))
        column = self._chance.choice(self._columns(table))
        key = PLACES[table]
        (before,) = self._connection.execute(f"SELECT {column} FROM {table} WHERE {key} = ?", (row,)).fetchone()
        after = self._other(before)
        self._connection.execute(f"UPDATE {table} SET {column} = ? WHERE {key} = ?", (after, row))
        return f"{table} {row}: {column} from {before!r} to {after!r}"

    def _other(self, value: Value) -> Value:
        chance = self._chance
        match value:
            case None:
                return chance.choice([1, "x", b"x"])
            case int():
                return value ^ 1 << chance.randrange(20)
            case str() if value:
                at = chance.randrange(len(value))
                return value[:at] + chr(ord(value[at]) ^ 1) + value[at + 1 :]
            case bytes() if value:
                at = chance.randrange(len(value))
                return value[:at] + bytes([value[at] ^ 1 << chance.randrange(8)]) + value[at + 1 :]
            case _:
                return "x"

    def _deleted(self, table: str) -> str:
        row = self._chance.choice(self._rows(table))
        self._connection.execute(f"DELETE FROM {table} WHERE {PLACES[table]} = ?", (row,))
        return f"{table} {row} deleted"

    def _swapped(self, table: str) -> str:
        one, other = self._chance.sample(self._rows(table), 2)
        key = PLACES[table]
        for before, after in ((one, -1), (other, one), (-1, other)):
            self._connection.execute(f"UPDATE {table} SET {key} = ? WHERE {key} = ?", (after, before))
        return f"{table} {one} and {other} swapped"

    def _inserted(self, table: str) -> str:
        row, key = self._chance.choice(self._rows(table)), PLACES[table]
        if table == "event":
            return self._changed(table)  # An event beside those of no call shows nowhere.
        columns = [name for name in self._columns(table) if name not in (key, "id")]
        new = max(self._rows(table)) + 1
        more = {"id": f"'forged_{new}'"} if table == "task" else {}
        into = ", ".join([key, *more, *columns])
        values = ", ".join([str(new), *more.values(), *columns])
        self._connection.execute(f"INSERT INTO {table} ({into}) SELECT {values} FROM {table} WHERE {key} = ?", (row,))
        return f"{table} {row} copied to {new}"

    def _cut(self, _: str) -> str:
        rows = self._rows("audit")
        last = self._chance.choice(rows[:-1])
        self._connection.execute("DELETE FROM audit WHERE n > ?", (last,))
        if self._chance.random() < 0.5:
            # With the calls: only what was signed, or an act after it, tells.
            self._connection.execute("DELETE FROM task WHERE covered_by > ?", (last,))
        return f"audit cut after {last}"


def columns_of(book: Book, table: str) -> list[Any]:
    """The columns of a table."""
    return [row[1] for row in book.connection.execute(f"PRAGMA table_info({table})")]
