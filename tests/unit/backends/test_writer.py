"""The write lane: batches, failures, its bound, and the size of the log."""

import asyncio
import shutil
import sqlite3
import threading
import time
from itertools import count
from pathlib import Path

import pytest

from dragoman.backends.sqlite import SqliteStore
from dragoman.backends.sqlite.writer import GATHER_S, SEVERAL
from dragoman.model.errors import Overloaded
from dragoman.ports.store import Registration, StoredKey
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, chunk, completed, new_agent, new_task, opening, step
from tests.support.run import run
from tests.unit.backends.conftest import Running, Statements, look

MIB = 1024 * 1024


def a_key(clock: ManualClock, key_id: str) -> StoredKey:
    return StoredKey(
        key_id=key_id, digest=b"", tenant="acme", principal="alice", name="", scopes=(), created_at=clock.now()
    )


@pytest.mark.parametrize("inline", [False, True])
def test_a_bad_command_fails_alone(store: Running, clock: ManualClock, path: Path, inline: bool) -> None:
    async def scenario() -> None:
        async with store(inline=inline) as running:
            await running.add_key(a_key(clock, "taken"))
            tasks = [new_task(clock) for _ in range(60)]
            for task in tasks:
                await running.open(opening(task))
            outcomes = await asyncio.gather(
                *(running.append(step(task, completed(clock))) for task in tasks[:30]),
                running.add_key(a_key(clock, "taken")),
                running.add_key(a_key(clock, "free")),
                *(running.append(step(task, chunk(clock, "x"))) for task in tasks[30:]),
                return_exceptions=True,
            )
            failed = [outcome for outcome in outcomes if outcome is not None]
            assert len(failed) == 1
            assert "UNIQUE" in str(failed[0])
            assert look(path, "SELECT count(*) FROM task") == [(60,)]
            assert len(await running.list_keys(None)) == 2

    run(scenario())


def test_a_commit_that_fails_is_told_and_the_store_goes_on(
    store: Running, clock: ManualClock, path: Path, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store() as running:
            statements.fails = "COMMIT"
            outcomes = await asyncio.gather(
                *(running.put_sealed(str(number), b"") for number in range(20)), return_exceptions=True
            )
            assert all(isinstance(outcome, Exception) for outcome in outcomes)
            assert not await running.check()
            statements.fails = None
            await running.put_sealed("after", b"")
            assert look(path, "SELECT name FROM sealed") == [("after",)]
            assert await running.check()

    run(scenario())


def test_after_a_batch_of_several_one_pause_is_for_those_that_follow(
    store: Running, clock: ManualClock, statements: Statements
) -> None:
    async def begun_after_s(running: SqliteStore, commands: int) -> float:
        """How long after they were handed over their transaction began."""
        begun: list[float] = []
        statements.on("BEGIN", lambda _: begun.append(time.perf_counter()))
        since = time.perf_counter()
        await asyncio.gather(*(running.open(opening(new_task(clock), durable=True)) for _ in range(commands)))
        return begun[0] - since

    async def scenario() -> None:
        async with store() as running:
            await begun_after_s(running, 1)
            assert min([await begun_after_s(running, 1) for _ in range(50)]) < GATHER_S, "who is alone waits for nobody"
            await begun_after_s(running, SEVERAL)
            assert await begun_after_s(running, 1) >= GATHER_S
            assert min([await begun_after_s(running, 1) for _ in range(50)]) < GATHER_S

    run(scenario())


def test_more_than_ten_thousand_waiting_commands_are_refused(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store(inline=True) as running:
            task = new_task(clock)
            await running.open(opening(task))
            async with asyncio.TaskGroup() as group:
                for number in range(10_000):
                    group.create_task(running.put_sealed(str(number), b""))
                group.create_task(refused(running, clock))
            assert await running.append(step(task, completed(clock))) is None
            assert await running.get_sealed("9999") == b""

    async def refused(running: SqliteStore, clock: ManualClock) -> None:
        for attempt in (
            lambda: running.open(opening(new_task(clock))),
            lambda: running.open(opening(new_task(clock), durable=True)),
            lambda: running.append(step(new_task(clock), completed(clock))),
            lambda: running.put_sealed("too much", b""),
        ):
            with pytest.raises(Overloaded):
                await attempt()

    run(scenario())


@pytest.mark.parametrize("inline", [False, True])
def test_the_log_stays_bounded_under_load(store: Running, clock: ManualClock, path: Path, inline: bool) -> None:
    log = path.with_name("hub.db-wal")
    sizes: list[int] = []
    numbers = count()

    async def caller(running: SqliteStore) -> None:
        for _ in range(60):
            task = new_task(clock, said={"text": "x" * 20_000, "number": next(numbers)})
            await running.open(opening(task))
            await running.append(step(task, completed(clock)))
            sizes.append(log.stat().st_size)

    async def scenario() -> None:
        async with store(inline=inline, wal_mib=4) as running, asyncio.TaskGroup() as group:
            for _ in range(16):
                group.create_task(caller(running))
        assert not log.exists() or log.stat().st_size == 0

    run(scenario(), timeout_s=60)
    assert path.stat().st_size > 16 * MIB
    # The limit, a quarter of it that the estimate may not have seen, and one batch.
    assert max(sizes) < 6 * MIB
    assert look(path, "SELECT count(*) FROM task") == [(960,)]
    assert look(path, "PRAGMA integrity_check") == [("ok",)]


def test_the_log_is_copied_beside_the_writer_then_its_rest_between_two_batches(
    store: Running, statements: Statements
) -> None:
    passive = "PRAGMA wal_checkpoint(PASSIVE)"

    async def scenario() -> None:
        async with store(wal_mib=32) as running:
            numbers = count()
            while len(statements.checkpoints) < 4:
                names = [str(next(numbers)) for _ in range(40)]
                await asyncio.gather(*(running.put_sealed(name, b"x" * 20_000) for name in names))
            assert statements.checkpoints[:4] == [("checkpoints", passive), ("store-writer", passive)] * 2

    run(scenario(), timeout_s=60)


def test_the_writer_cuts_the_log_itself_when_the_copying_beside_it_hangs(
    store: Running, path: Path, statements: Statements
) -> None:
    log = path.with_name("hub.db-wal")
    released = threading.Event()

    async def scenario() -> None:
        async with store(wal_mib=4) as running:
            statements.on("wal_checkpoint(PASSIVE)", lambda _: released.wait(30))
            try:
                for number in range(40):
                    # New names: the same value written again would not touch a page.
                    names = [f"{number} {each}" for each in range(20)]
                    await asyncio.gather(*(running.put_sealed(name, b"x" * 20_000) for name in names))
                    assert log.stat().st_size < 5 * MIB
            finally:
                released.set()
            assert ("store-writer", "PRAGMA wal_checkpoint(TRUNCATE)") in statements.checkpoints

    run(scenario(), timeout_s=60)


def test_large_rows_that_no_estimate_foresaw_are_bounded_too(store: Running, clock: ManualClock, path: Path) -> None:
    log = path.with_name("hub.db-wal")

    async def scenario() -> None:
        async with store(wal_mib=2) as running:
            for number in range(40):
                description = f"{number} " + "word " * 50_000
                await running.register(Registration(agent=new_agent(clock, f"a{number}", description=description)))
                await running.put_sealed("barrier", b"")
                # The limit, a quarter of it that the estimate may not have seen, and one batch: a merge of the text
                # index makes a single registration 2.75 MiB of log.
                assert log.stat().st_size <= 5.25 * MIB

    run(scenario(), timeout_s=60)


def test_an_idle_store_copies_its_log_by_itself(store: Running, statements: Statements) -> None:
    async def scenario() -> None:
        async with store() as running:
            loop = asyncio.get_running_loop()
            idle: asyncio.Future[None] = loop.create_future()
            for number in range(200):
                await running.put_sealed(str(number), b"x" * 10_000)
            statements.on("wal_checkpoint(PASSIVE)", lambda _: loop.call_soon_threadsafe(idle.set_result, None))
            await idle

    run(scenario())


def test_what_was_acknowledged_is_in_the_file_without_a_tidy_end(
    path: Path, clock: ManualClock, store: Running
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            growth = step(task, completed(clock))
            await running.append(growth)
            copy = path.with_name("copy.db")
            shutil.copyfile(path, copy)
            shutil.copyfile(path.with_name("hub.db-wal"), path.with_name("copy.db-wal"))
            assert look(copy, "SELECT id, state FROM task") == [(task.id, 4)]
            assert await running.load(ALICE, task.id) == growth.task

    run(scenario())


def test_nobody_waits_for_a_reader_that_holds_the_log(store: Running, statements: Statements, path: Path) -> None:
    async def scenario() -> None:
        async with store(wal_mib=0.25) as running:
            await running.put_sealed("before", b"x")
            reader = sqlite3.connect(path, isolation_level=None)
            try:
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM sealed").fetchall()
                for number in range(60):
                    await running.put_sealed(f"n{number}", bytes(20_000))
                cuts = sum("TRUNCATE" in sql for _, sql in statements.checkpoints)
                assert cuts <= 1, f"the writer waited {cuts} times for the reader to go"
            finally:
                reader.close()
            for number in range(60):
                await running.put_sealed(f"m{number}", bytes(20_000))
            assert path.with_name("hub.db-wal").stat().st_size < 2 * 1024 * 1024

    run(scenario())
