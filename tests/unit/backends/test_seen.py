"""Request ids that the file cannot hold are known to be new; one that it may hold never is."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import pytest

from dragoman.backends.sqlite import codec, once, schema
from dragoman.backends.sqlite.connection import Connection, connect, prepare
from dragoman.backends.sqlite.once import Name
from dragoman.backends.sqlite.readers import Readers
from dragoman.backends.sqlite.seen import LOOKED_EVERY, READ_AT_ONCE, SeenIds
from dragoman.backends.sqlite.sql import SQL
from tests.contracts import samples
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.unit.backends.conftest import Running, Statements

NOW: Final = datetime(2026, 11, 16, tzinfo=UTC)
LATER: Final = NOW + timedelta(hours=24)
MANY: Final = 3 * READ_AT_ONCE + 1


def _name(key: str, scope: str = "request", tenant: str = "acme") -> Name:
    return (tenant, "alice", scope, key)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    with closing(connect(tmp_path / "hub.db")) as opened:
        prepare(opened, reads_only=False)
        schema.migrate(opened, schema.migrations(), 0)
        yield opened


def _write(connection: Connection, name: Name, expires_at: datetime = LATER) -> None:
    row = (*name, "task-1", b"", codec.to_micros(expires_at))
    connection.execute(SQL["note_key"], (*row, codec.to_micros(NOW))).fetchall()


async def _learned(connection: Connection, now: Callable[[], int] = lambda: codec.to_micros(NOW)) -> SeenIds:
    """What was seen, once all that the file holds is read."""
    seen = SeenIds(Readers([connection], threads=False).ask, now)
    assert not seen.is_new(_name("new")), "an id is called new before the file was read"
    await seen.read()
    for _ in range(MANY):
        if seen.is_new(_name("new")):
            return seen
        await asyncio.sleep(0)
    raise AssertionError("the file was not read to its end")


def test_every_id_that_the_file_holds_is_seen_and_hardly_any_other(connection: Connection) -> None:
    connection.execute("BEGIN")
    for number in range(MANY):
        _write(connection, _name(f"id-{number}", tenant=f"tenant-{number % 3}"))
    connection.execute("COMMIT")

    async def scenario() -> None:
        seen = await _learned(connection)
        held = [_name(f"id-{number}", tenant=f"tenant-{number % 3}") for number in range(MANY)]
        assert not any(seen.is_new(name) for name in held)
        others = [_name(f"other-{number}") for number in range(MANY)]
        assert sum(seen.is_new(name) for name in others) > 0.99 * MANY

    run(scenario())


def test_only_request_ids_that_have_not_expired_are_read(connection: Connection) -> None:
    _write(connection, _name("key", scope="key"))
    _write(connection, _name("expired"), expires_at=NOW)

    async def scenario() -> None:
        seen = await _learned(connection)
        assert seen.is_new(_name("key"))
        assert seen.is_new(_name("expired"))

    run(scenario())


def test_an_id_is_seen_until_it_expires_whatever_comes_after_it(connection: Connection) -> None:
    _write(connection, _name("stored"), expires_at=NOW + timedelta(hours=1))

    async def scenario() -> None:
        at = NOW
        seen = await _learned(connection, lambda: codec.to_micros(at))
        for hour in range(100):
            at = NOW + timedelta(hours=hour)
            for number in range(LOOKED_EVERY):
                seen.add(_name(f"id-{hour}-{number}"), at + timedelta(hours=24))
            for before in range(max(0, hour - 23), hour + 1):
                known = [_name(f"id-{before}-{number}") for number in range(LOOKED_EVERY)]
                assert not any(seen.is_new(name) for name in known), f"ids of hour {before} are forgotten at {hour}"
        assert seen.is_new(_name("stored")), "what has expired is never forgotten"
        assert seen.is_new(_name("id-1-1")), "what has expired is never forgotten"

    run(scenario())


def test_where_the_file_cannot_be_read_to_its_end_no_id_is_new(connection: Connection) -> None:
    connection.execute("BEGIN")
    for number in range(MANY):
        _write(connection, _name(f"id-{number}"))
    connection.execute("COMMIT")

    async def scenario() -> None:
        seen = SeenIds(Readers([connection], threads=False).ask, lambda: codec.to_micros(NOW))
        await seen.read()
        connection.close()
        for _ in range(MANY):
            await asyncio.sleep(0)
            assert not seen.is_new(_name("new"))

    run(scenario())


def test_a_new_id_is_not_looked_for_and_one_that_fell_out_of_memory_is_found(
    store: Running, clock: ManualClock, statements: Statements, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "RECENT", 1)

    async def scenario() -> None:
        async with store() as running:
            first, second = samples.new_task(clock), samples.new_task(clock)
            for task, key in ((first, "k-1"), (second, "k-2")):
                assert await running.find_once("acme", "alice", "request", key) is None
                await running.open(samples.opening(task, once=samples.once(clock, key, scope="request")))
                assert await running.append(samples.step(task, samples.completed(clock))) is None
            assert not [each for each in statements.run if each.startswith("SELECT task, digest FROM idem")]
            assert await running.find_once("acme", "alice", "request", "k-1") == (first.id, b"same body")

    run(scenario())
