"""Keys asked for in one turn make one trip, and each asker gets its own answer."""

import asyncio
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from dragoman.backends.sqlite import schema
from dragoman.backends.sqlite.connection import Connection, connect, prepare
from dragoman.backends.sqlite.lookups import Look, Looked, Lookups
from dragoman.backends.sqlite.once import Name
from dragoman.backends.sqlite.readers import Readers
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.errors import Overloaded
from tests.support.run import run

NOW: Final = 1000


def _name(key: str) -> Name:
    return ("acme", "alice", "request", key)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(connect(tmp_path / "hub.db")) as opened:
        prepare(opened, reads_only=False)
        schema.migrate(opened, schema.migrations(), NOW)
        for key, expires in (("a", NOW + 1), ("b", NOW + 1), ("old", NOW)):
            opened.execute(SQL["note_key"], (*_name(key), f"task-{key}", key.encode(), expires, NOW)).fetchall()
        yield opened


def test_keys_asked_for_in_one_turn_make_one_trip_and_each_asker_hears_of_its_own(connection: Connection) -> None:
    async def scenario() -> None:
        readers = Readers([connection], threads=False)
        trips = 0

        def counted(look: Look) -> Looked:
            nonlocal trips
            trips += 1
            return readers.ask(look)

        lookups = Lookups(counted, lambda: NOW)
        found = await asyncio.gather(*(lookups.find(_name(key)) for key in ("b", "none", "old", "a", "b")))
        assert found == [("task-b", b"b"), None, None, ("task-a", b"a"), ("task-b", b"b")]
        assert trips == 1
        assert await lookups.find(_name("a")) == ("task-a", b"a")
        assert trips == 2

    run(scenario())


def test_one_that_gave_up_does_not_keep_the_others_from_their_answer(connection: Connection) -> None:
    async def scenario() -> None:
        lookups = Lookups(Readers([connection], threads=False).ask, lambda: NOW)
        gone, stays = lookups.find(_name("a")), lookups.find(_name("b"))
        gone.cancel()
        assert await stays == ("task-b", b"b")

    run(scenario())


@pytest.mark.parametrize("when", ["at once", "later"])
def test_a_trip_that_fails_fails_for_everyone(when: str) -> None:
    def refusing(_: Look) -> Looked:
        if when == "at once":
            raise Overloaded("The store has too much to read.")
        future: Looked = asyncio.get_running_loop().create_future()
        future.set_exception(Overloaded("The store has too much to read."))
        return future

    async def scenario() -> None:
        lookups = Lookups(refusing, lambda: NOW)
        asked = [lookups.find(_name("a")), lookups.find(_name("b"))]
        outcomes = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(each) for each in outcomes] == [Overloaded, Overloaded]

    run(scenario())
