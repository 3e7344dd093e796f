"""A call that ends at once is one row; what takes longer is written as it goes."""

import asyncio
from pathlib import Path

import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.bus import Lost, Said, task_topic
from dragoman.ports.store import Opened
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, chunk, completed, moved, new_task, once, opening, sent, step
from tests.support.run import run
from tests.unit.backends.conftest import Running, Statements, look

COUNTS = "SELECT (SELECT count(*) FROM task), (SELECT count(*) FROM event), (SELECT count(*) FROM job)"
SHAPE = "SELECT state, last_seq, doc IS NULL, log IS NULL FROM task"


async def barrier(store: SqliteStore) -> None:
    await store.put_sealed("barrier", b"")


def test_a_quick_call_is_exactly_one_row(store: Running, clock: ManualClock, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            await running.append(step(task, sent(clock), completed(clock)))
            assert look(path, COUNTS) == [(1, 0, 0)]
            assert look(path, SHAPE) == [(4, 3, 1, 0)]

    run(scenario())


def test_a_quick_call_costs_one_commit_and_no_sql_on_the_loop(
    store: Running, clock: ManualClock, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            assert statements.run == []
            await running.append(step(task, completed(clock)))
            assert statements.commits == 1
            assert len(statements.run) == 4  # begin, the call, its row of the audit, commit
            assert statements.threads == {"store-writer"}

    run(scenario())


def test_calls_that_end_together_share_a_commit(store: Running, clock: ManualClock, statements: Statements) -> None:
    async def scenario() -> None:
        async with store(inline=True) as running:
            tasks = [new_task(clock) for _ in range(50)]
            for task in tasks:
                await running.open(opening(task))
            await asyncio.gather(*(running.append(step(task, completed(clock))) for task in tasks))
            assert statements.commits == 1

    run(scenario())


def test_a_request_id_is_written_with_the_quick_row(store: Running, clock: ManualClock, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task, once=once(clock, "r-1", scope="request")))
            assert look(path, COUNTS) == [(0, 0, 0)]
            await running.append(step(task, completed(clock)))
            assert look(path, COUNTS) == [(1, 0, 0)]
            assert look(path, "SELECT scope, key, task FROM idem") == [("request", "r-1", task.id)]

    run(scenario())


def test_an_opening_held_long_enough_is_written_with_its_job(store: Running, clock: ManualClock, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            clock.advance(0.09)
            await barrier(running)
            assert look(path, COUNTS) == [(0, 0, 0)]
            clock.advance(0.02)
            await barrier(running)
            assert look(path, COUNTS) == [(1, 1, 1)]
            await running.append(step(task, sent(clock), completed(clock)))
            assert look(path, COUNTS) == [(1, 3, 0)]
            assert look(path, SHAPE) == [(4, 3, 0, 1)]

    run(scenario())


def test_a_step_that_is_not_the_end_takes_the_opening_along_in_one_commit(
    store: Running, clock: ManualClock, path: Path, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            await running.append(step(task, chunk(clock, "first words")))
            assert statements.commits == 1
            assert look(path, COUNTS) == [(1, 2, 1)]

    run(scenario())


def test_an_awaited_opening_is_on_disk_when_it_returns(store: Running, clock: ManualClock, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.open(opening(new_task(clock), durable=True))
            assert look(path, COUNTS) == [(1, 1, 1)]
            await running.open(opening(new_task(clock), once=once(clock, "k")))
            assert look(path, COUNTS) == [(2, 2, 2)]

    run(scenario())


def test_one_timer_serves_all_that_is_held_and_none_runs_without(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            assert clock.timers == 0
            for number in range(100):
                await running.open(opening(new_task(clock)))
                clock.advance(0.0005)
                assert clock.timers == 1, number
            clock.advance(0.06)
            assert clock.timers == 1
            clock.advance(0.2)
            await barrier(running)
            clock.advance(10)
            assert clock.timers == 0

    run(scenario())


def test_an_opening_that_is_being_written_is_not_written_again(
    store: Running, clock: ManualClock, path: Path, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store(inline=True) as running:
            for _ in range(2):
                await running.open(opening(new_task(clock)))
                clock.advance(0.2)  # the commit comes in a later turn of the loop
            await barrier(running)
            assert look(path, COUNTS) == [(2, 2, 2)]
            assert "ROLLBACK" not in statements.run

    run(scenario())


def test_a_long_task_is_stored_anew_so_that_readers_fold_few_events(
    store: Running, clock: ManualClock, path: Path
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            for _ in range(6):
                growth = step(task, *(chunk(clock, "word ") for _ in range(100)))
                await running.append(growth)
                task = growth.task
                ((doc,),) = look(path, "SELECT doc FROM task")
                assert isinstance(doc, bytes)
                assert task.last_seq - msgspec.msgpack.decode(doc, type=Task).last_seq <= 256

    run(scenario())


def test_what_is_held_is_not_shown_as_an_event(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            assert list(await running.events(task.id, 0, 10)) == []
            clock.advance(1)
            await barrier(running)
            assert [happened.seq for happened in await running.events(task.id, 0, 10)] == [1]

    run(scenario())


def test_an_outcome_is_not_shown_before_its_commit(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store(inline=True) as running:
            task = new_task(clock)
            await running.open(opening(task))
            appending = running.append(step(task, completed(clock)))
            # The step is taken, and committed in the next turn of the loop.
            await check_still_open(running, task.id)
            assert await appending is None
            ended = await running.load(ALICE, task.id)
            assert ended is not None
            assert ended.state is TaskState.COMPLETED

    async def check_still_open(running: SqliteStore, task_id: str) -> None:
        found = await running.load(ALICE, task_id)
        assert found is not None
        assert found.state is TaskState.SUBMITTED

    run(scenario())


def test_an_opening_that_could_not_be_written_is_held_on(
    store: Running, clock: ManualClock, path: Path, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store(inline=True) as running:
            task = new_task(clock)
            await running.open(opening(task))
            statements.fails = "INSERT INTO task"
            clock.advance(0.2)
            await running.put_sealed("barrier", b"")
            assert await running.load(ALICE, task.id) == task
            statements.fails = None
            clock.advance(0.2)
            await barrier(running)
            assert look(path, COUNTS) == [(1, 1, 1)]

    run(scenario())


def test_an_outcome_that_could_not_be_written_can_be_tried_again(
    store: Running, clock: ManualClock, path: Path, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            statements.fails = "COMMIT"
            growth = step(task, completed(clock))
            (failed,) = await asyncio.gather(running.append(growth), return_exceptions=True)
            assert isinstance(failed, Exception)
            statements.fails = None
            assert await running.append(growth) is None
            assert look(path, SHAPE) == [(4, 2, 1, 0)]

    run(scenario())


def test_a_key_is_free_again_when_its_opening_could_not_be_written(
    store: Running, clock: ManualClock, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store() as running:
            for scope in ("key", "request"):
                key = once(clock, "k", scope=scope)
                statements.fails = "COMMIT"
                (failed,) = await asyncio.gather(
                    running.open(opening(new_task(clock), durable=True, once=key)), return_exceptions=True
                )
                assert isinstance(failed, Exception)
                statements.fails = None
                assert await running.find_once("acme", "alice", scope, "k") is None
                assert await running.open(opening(new_task(clock), durable=True, once=key)) == Opened()

    run(scenario())


def test_listeners_get_the_events_of_each_commit_with_their_numbers(
    store: Running, clock: ManualClock, bus: LocalBus
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            async with bus.subscribe(task_topic(task.id)) as told:
                assert await anext(told) is Lost.LOST
                growing = step(task, moved(clock, TaskState.WORKING), chunk(clock, "words"))
                await running.append(growing)
                said = await anext(told)
                assert isinstance(said, Said)
                assert said.grown is not None
                assert said.grown.task == growing.task
                assert list(said.grown.happened) == list(await running.events(task.id, 0, 10))
                ended = step(growing.task, completed(clock, {"huge": 10**30}))
                await running.append(ended)
                last = await anext(told)
                assert isinstance(last, Said)
                assert last.grown is not None
                assert last.grown.task == ended.task
                assert [item.seq for item in last.grown.happened] == [ended.task.last_seq]

    run(scenario())


def test_listeners_are_told_of_an_opening_that_was_written_later(
    store: Running, clock: ManualClock, bus: LocalBus
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            async with bus.subscribe(task_topic(task.id)) as told:
                assert await anext(told) is Lost.LOST
                await running.open(opening(task))
                clock.advance(1)
                said = await asyncio.wait_for(anext(told), 5)
                assert isinstance(said, Said)
                assert said.grown is not None
                assert [item.seq for item in said.grown.happened] == [1]

    run(scenario())
