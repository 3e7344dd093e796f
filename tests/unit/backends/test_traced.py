"""Calls are found by their trace: in memory, in the runs of the index, over restarts, and no longer once removed."""

import asyncio
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from datetime import timedelta
from pathlib import Path

from dragoman.backends.sqlite import SqliteStore, schema
from dragoman.backends.sqlite.traced import AWAITED, RUN_BITS, TracedCalls
from dragoman.model.operations import ListTasks
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, BOB, EVERYONE, completed, new_task, opening, step
from tests.support.run import run
from tests.unit.backends.conftest import Running, Statements, look

RUN = 1 << RUN_BITS
AT_ONCE = 256


def spread(number: int) -> str:
    """A trace id; they come in no order."""
    return f"{number * 2_654_435_761 % (1 << 32):032x}"


async def ended(store: SqliteStore, clock: ManualClock, traces: Sequence[str], caller: str = "alice") -> list[Task]:
    """So many calls that ended at once, each with its trace."""
    tasks = [new_task(clock, trace=trace, caller=caller) for trace in traces]
    for first in range(0, len(tasks), AT_ONCE):
        for task in tasks[first : first + AT_ONCE]:
            await store.open(opening(task))
        await asyncio.gather(*(store.append(step(task, completed(clock))) for task in tasks[first : first + AT_ONCE]))
    return tasks


async def found(store: SqliteStore, trace: str) -> list[str]:
    """The ids of a trace's calls."""
    return sorted(task.id for task in (await store.list_tasks(EVERYONE, ListTasks(trace_id=trace, limit=1000))).tasks)


def runs_in(path: Path) -> set[int]:
    return {int(str(row[0])) for row in look(path, "SELECT DISTINCT run FROM traced")}


def test_a_call_is_found_by_its_trace_whether_its_run_is_written_or_not(
    store: Running, clock: ManualClock, path: Path
) -> None:
    async def scenario() -> None:
        async with store() as running:
            calls = await ended(running, clock, [spread(each) for each in range((AWAITED + 2) * RUN)])
            await ended(running, clock, ["f" * 32])
            assert runs_in(path) == {0, 1, 2}  # the numbers begin at 1
            for place in (0, RUN - 2, RUN - 1, 2 * RUN, len(calls) - 1):
                assert await found(running, spread(place)) == [calls[place].id]
            assert await found(running, "e" * 32) == []
        async with store() as again:
            for place in (0, RUN - 1, 3 * RUN, len(calls) - 1):
                assert await found(again, spread(place)) == [calls[place].id]

    run(scenario(), timeout_s=60)


def test_many_calls_of_one_trace_are_found_together_and_by_who_may_see_them(
    store: Running, clock: ManualClock, path: Path
) -> None:
    async def scenario() -> None:
        async with store() as running:
            ours = await ended(running, clock, ["a" * 32])
            theirs = await ended(running, clock, ["a" * 32], caller="bob")
            await ended(running, clock, [spread(each) for each in range((AWAITED + 1) * RUN)])
            ours += await ended(running, clock, ["a" * 32])
            assert 0 in runs_in(path)
            assert await found(running, "a" * 32) == sorted(task.id for task in [*ours, *theirs])
            for scope, own in ((ALICE, ours), (BOB, theirs)):
                page = await running.list_tasks(scope, ListTasks(trace_id="a" * 32))
                assert {task.id for task in page.tasks} == {task.id for task in own}
                assert page.total == len(own)

    run(scenario(), timeout_s=60)


def test_a_call_that_is_written_after_its_run_is_found(store: Running, clock: ManualClock, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            late = new_task(clock, trace="b" * 32)
            await running.open(opening(late))
            await ended(running, clock, [spread(each) for each in range((AWAITED + 1) * RUN)])
            assert runs_in(path) == {0}
            assert await running.append(step(late, completed(clock))) is None
            assert look(path, f"SELECT run FROM traced WHERE trace = '{'b' * 32}'") == [(0,)]
            assert await found(running, "b" * 32) == [late.id]

    run(scenario(), timeout_s=60)


def test_a_run_whose_commit_fails_is_written_with_the_next(
    store: Running, clock: ManualClock, path: Path, statements: Statements
) -> None:
    async def scenario() -> None:
        async with store() as running:
            calls = await ended(running, clock, [spread(each) for each in range(AWAITED * RUN)])
            assert runs_in(path) == set()
            statements.fails = "INTO traced"
            failed = await asyncio.gather(running.put_sealed("x", b""), return_exceptions=True)
            assert isinstance(failed[0], sqlite3.Error)
            assert await found(running, spread(0)) == [calls[0].id]
            statements.fails = None
            await running.put_sealed("x", b"")
            assert runs_in(path) == {0}
            assert await found(running, spread(0)) == [calls[0].id]

    run(scenario(), timeout_s=60)


def test_what_is_removed_leaves_nothing_in_the_index(store: Running, clock: ManualClock, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            await ended(running, clock, [spread(each) for each in range(RUN)])
            clock.advance(timedelta(days=40).total_seconds())
            await ended(running, clock, [spread(each) for each in range(RUN, (AWAITED + 1) * RUN)])
            assert runs_in(path) == {0}
            after: int | None = 0
            while after is not None:
                after = (await running.expire_calls(clock.now() - timedelta(days=30), after)).next
            assert look(path, "SELECT count(*) FROM traced WHERE number < 2048") == [(0,)]
            assert await found(running, spread(0)) == []
            # Those that are removed before their run is written never get there.
            clock.advance(timedelta(days=40).total_seconds())
            after = 0
            while after is not None:
                after = (await running.expire_calls(clock.now() - timedelta(days=30), after)).next
            await ended(running, clock, [spread(each) for each in range((AWAITED + 1) * RUN)])
            left = "SELECT count(*) FROM traced WHERE number NOT IN (SELECT number FROM task)"
            assert look(path, left) == [(0,)]
            assert look(path, "SELECT count(*) FROM traced")[0] != (0,)

    run(scenario(), timeout_s=120)


def test_what_is_written_is_kept_in_memory_no_longer() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        schema.migrate(connection, schema.migrations(), 0)
        traced = TracedCalls(connection)
        for number in range(1, AWAITED * RUN + 2):
            traced.write(connection, [(number, spread(number))], ())
            traced.committed([(number, spread(number))], ())
        last = AWAITED * RUN + 1
        assert traced.unwritten(spread(1)) == []
        assert [traced.unwritten(spread(number)) for number in (RUN, last)] == [[RUN], [last]]


def test_calls_of_before_are_in_the_index(tmp_path: Path, clock: ManualClock, store: Running, path: Path) -> None:
    async def scenario() -> None:
        async with store() as running:
            calls = await ended(running, clock, [spread(each) for each in range(3 * RUN)])
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("DROP TABLE traced")
        connection.execute("CREATE INDEX task_trace ON task (trace) WHERE trace <> ''")
        connection.execute("DELETE FROM schema_version WHERE version = 15")
        connection.close()
        async with store() as again:
            assert runs_in(path) == {0, 1, 2, 3}
            more = await ended(again, clock, ["d" * 32])
            for place in (0, RUN, 3 * RUN - 1):
                assert await found(again, spread(place)) == [calls[place].id]
            assert await found(again, "d" * 32) == [more[0].id]
        assert len(schema.migrations()) >= 15

    run(scenario(), timeout_s=60)
