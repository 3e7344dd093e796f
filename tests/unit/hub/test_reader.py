"""One reader of a task: nothing missed, nothing twice, whatever is on disk and whatever comes meanwhile."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
import pytest

from dragoman.hub.reader import MOST_EVENTS, Reader
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem
from tests.contracts.samples import chunk, completed, opening, sent, step
from tests.support.growing import world
from tests.support.run import run

PATIENCE_S: Final = 10.0


async def rest(reader: Reader) -> list[StreamItem]:
    """Everything up to the end."""
    items: list[StreamItem] = []
    async with asyncio.timeout(PATIENCE_S):
        async for some in reader:
            items += some
    return items


async def some(reader: Reader) -> Sequence[StreamItem]:
    async with asyncio.timeout(PATIENCE_S):
        return await anext(reader)


def numbers(items: Sequence[StreamItem]) -> list[int]:
    return [item.task.last_seq if isinstance(item, Snapshot) else item.seq for item in items]


def test_a_new_task_is_shown_when_it_is_on_disk_and_not_before(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            opened = w.task
            reader = Reader(opened, store=w.store, bus=w.bus, unwritten=True)
            await w.store.open(opening(opened))  # held in memory
            first = asyncio.ensure_future(anext(reader))
            await asyncio.sleep(0)
            assert not first.done()
            growth = step(opened, sent(w.clock), chunk(w.clock, "a"), completed(w.clock))
            await w.store.append(growth)
            items = await first
            assert items[0] == Snapshot(task=opened)
            assert numbers(items) == [1, 2, 3, 4]
            assert isinstance(items[-1], Ended)
            assert items[-1].task == growth.task
            with pytest.raises(StopAsyncIteration):
                await anext(reader)

    run(scenario())


def test_the_task_as_it_is_then_live_to_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            await w.words("a", "b")
            reader = w.reader()
            assert await some(reader) == [Snapshot(task=w.task)]
            await w.words("c")
            assert numbers(await some(reader)) == [4]
            await w.end()
            items = await rest(reader)
            assert numbers(items) == [5]
            assert isinstance(items[0], Ended)

    run(scenario())


@pytest.mark.req("P-21")
@pytest.mark.parametrize("after", range(6))
def test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice(tmp_path: Path, after: int) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            await w.words("a", "b", "c")
            reader = w.reader(after=min(after, 4))
            await w.words("d")  # between listening and reading the store
            reading = asyncio.ensure_future(rest(reader))
            await asyncio.sleep(0)
            await w.words("e")
            await w.end()
            assert numbers(await reading) == list(range(min(after, 4) + 1, 8))

    run(scenario())


def test_who_had_seen_the_end_gets_nothing_more(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            await w.end()
            assert await rest(w.reader(after=w.task.last_seq)) == []

    run(scenario())


def test_a_number_that_never_was_gets_the_task_as_it_is(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            await w.words("a")
            assert await some(w.reader(after=999)) == [Snapshot(task=w.task)]

    run(scenario())


def test_more_than_a_page_is_read_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            for _ in range(6):
                growth = step(w.task, *(chunk(w.clock, "x") for _ in range(100)))
                await w.store.append(growth)
                w.task = growth.task
            await w.end()
            assert numbers(await rest(w.reader(after=0))) == list(range(1, 603))

    run(scenario())


def test_an_ended_task_is_one_item(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            await w.words("a")
            await w.end()
            assert await rest(w.reader()) == [Snapshot(task=w.task)]

    run(scenario())


def test_a_question_ends_the_stream_unless_it_is_to_go_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            short, long = w.reader(after=0), w.reader(after=0, past_questions=True)
            await w.ask()
            items = await rest(short)
            assert isinstance(items[-1], Ended)
            assert items[-1].task.state is TaskState.INPUT_REQUIRED
            await w.ask(TaskState.WORKING)
            await w.end()
            assert numbers(await rest(long)) == [1, 2, 3, 4]
            assert numbers(await rest(w.reader(after=0))) == [1, 2, 3, 4]  # the question was answered since

    run(scenario())


@pytest.mark.req("P-22")
def test_a_reader_that_takes_nothing_is_cut_and_holds_up_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            slow, quick = w.reader(after=0), w.reader(after=0)
            assert numbers(await some(slow)) == numbers(await some(quick)) == [1]
            seen: list[int] = []
            for _ in range(MOST_EVENTS + 2):
                await w.words("x")
                seen += numbers(await some(quick))
            assert seen == list(range(2, MOST_EVENTS + 4))
            assert slow.cut
            assert not quick.cut
            assert await rest(slow) == []
            await w.end()
            assert numbers(await rest(w.reader(after=1))) == list(range(2, MOST_EVENTS + 5))

    run(scenario())


def test_large_events_count_by_their_size(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            reader = w.reader(after=1)
            waiting = asyncio.ensure_future(anext(reader))
            await w.words("small")
            await waiting
            await w.words("x" * 700_000)
            assert not reader.cut  # one may wait, however large it is
            await w.words("x" * 700_000)
            assert reader.cut

    run(scenario())


def test_one_large_step_cuts_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            reader = w.reader(after=1)
            many = step(w.task, *(chunk(w.clock, "x") for _ in range(MOST_EVENTS * 3)), completed(w.clock))
            await w.store.append(many)
            assert numbers(await rest(reader)) == list(range(2, MOST_EVENTS * 3 + 3))

    run(scenario())


def test_leaving_wakes_who_waits_and_is_told_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            left: list[str] = []
            reader = w.reader(after=1)
            reader.when_left(lambda: left.append("left"))
            waiting = asyncio.ensure_future(rest(reader))
            await asyncio.sleep(0)
            reader.close()
            assert await waiting == []
            reader.close()
            assert left == ["left"]
            assert not w.bus.wants(f"ev.{w.task.id}")

    run(scenario())


def test_a_stream_that_ends_by_itself_was_not_left(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            left: list[str] = []
            reader = w.reader(after=1)
            reader.when_left(lambda: left.append("left"))
            await w.end()
            await rest(reader)
            reader.close()
            stopped = w.reader(after=1)
            stopped.when_left(lambda: left.append("stopped"))
            stopped.stop()
            assert left == []
            assert not w.bus.wants(f"ev.{w.task.id}")

    run(scenario())


def test_many_readers_see_the_same_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            first = msgspec.structs.replace(w.task)
            readings = [asyncio.ensure_future(rest(w.reader(after=0))) for _ in range(5)]
            await w.words("a", "b")
            readings += [asyncio.ensure_future(rest(w.reader(after=0, task=first))) for _ in range(5)]
            await w.words("c")
            await w.end()
            seen = [await reading for reading in readings]
            assert all(each == seen[0] for each in seen)
            assert numbers(seen[0]) == [1, 2, 3, 4, 5]

    run(scenario())
