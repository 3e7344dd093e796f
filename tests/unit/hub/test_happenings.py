"""Who watches a hub is told what changes for it and nothing else; who watches nothing costs nothing."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from dragoman.hub.happenings import MOST, Happenings
from dragoman.model.agent import AgentStatus
from dragoman.model.answers import Items
from dragoman.model.call import Caller
from dragoman.model.changes import AgentChanged, Change, TaskChanged
from dragoman.model.operations import WatchChanges
from dragoman.model.states import TaskState
from dragoman.ports.bus import AGENTS_CHANGED, task_topic
from dragoman.ports.store import Registration
from tests.contracts.samples import chunk, completed, moved, new_agent, new_task, opening, sent, step
from tests.support.growing import World, world
from tests.support.run import run

PATIENCE_S: Final = 10.0
ALICE: Final = Caller(tenant="acme", id="alice")
BOB: Final = Caller(tenant="acme", id="bob")
STRANGER: Final = Caller(tenant="other", id="alice")
BOSS: Final = Caller(tenant="acme", id="boss", admin=True)
TASKS: Final = WatchChanges(agents=False)
AGENTS: Final = WatchChanges(tasks=False)


def watching(w: World) -> Happenings:
    return Happenings(store=w.store, bus=w.bus, clock=w.clock)


async def some(items: Items[Change]) -> Sequence[Change]:
    async with asyncio.timeout(PATIENCE_S):
        return await anext(items)


def states(changes: Sequence[Change]) -> list[TaskState]:
    return [change.task.state for change in changes if isinstance(change, TaskChanged)]


def agents(changes: Sequence[Change]) -> list[tuple[str, bool]]:
    return [(each.agent_id, each.agent is not None) for each in changes if isinstance(each, AgentChanged)]


async def grown(w: World, caller: str) -> None:
    """One task of a caller's, to its end: opened, sent, completed."""
    task = new_task(w.clock, caller=caller)
    await w.store.open(opening(task, durable=True))
    working = step(task, sent(w.clock), moved(w.clock, TaskState.WORKING))
    await w.store.append(working)
    await w.store.append(step(working.task, completed(w.clock)))


def test_a_caller_is_told_of_its_own_tasks_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            happenings = watching(w)
            alice, bob, boss, stranger = (
                happenings.watch(caller, TASKS).items for caller in (ALICE, BOB, BOSS, STRANGER)
            )
            await grown(w, "alice")
            await grown(w, "bob")
            whole = [TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED]
            assert states(await some(alice)) == whole
            assert states(await some(bob)) == whole
            assert states(await some(boss)) == whole + whole
            waiting = asyncio.ensure_future(anext(stranger))
            await asyncio.sleep(0)
            assert not waiting.done()
            stranger.close()
            with pytest.raises(StopAsyncIteration):
                await waiting

    run(scenario())


def test_what_nobody_would_see_is_not_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            items = watching(w).watch(ALICE, TASKS).items
            growth = step(w.task, sent(w.clock))
            await w.store.append(growth)
            await w.store.append(step(growth.task, chunk(w.clock, "a")))
            (change,) = await some(items)
            assert isinstance(change, TaskChanged)
            assert change.task.artifacts

    run(scenario())


def test_agents_of_the_tenant_come_and_go(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            happenings = watching(w)
            items, foreign = happenings.watch(ALICE, AGENTS).items, happenings.watch(STRANGER, AGENTS).items
            await w.store.register(Registration(agent=new_agent(w.clock, "weather", owner="bob")))
            assert agents(await some(items)) == [("weather", True)]
            for status in (AgentStatus.PAUSED, AgentStatus.ACTIVE, AgentStatus.REMOVED):
                await w.store.change_agent("acme", "weather", status, open_=None, private=None)
                assert agents(await some(items)) == [("weather", status is AgentStatus.ACTIVE)]
            await w.store.register(Registration(agent=new_agent(w.clock, "theirs", tenant="other")))
            assert agents(await some(foreign)) == [("theirs", True)]

    run(scenario())


def test_a_hub_that_nobody_watches_makes_no_message_for_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            happenings = watching(w)
            assert not w.bus.wants(task_topic("any"))
            first, second = happenings.watch(ALICE, TASKS).items, happenings.watch(BOB, WatchChanges()).items
            assert w.bus.wants(task_topic("any"))
            assert w.bus.wants(AGENTS_CHANGED)
            first.close()
            first.close()
            assert w.bus.wants(task_topic("any"))
            second.close()
            assert not w.bus.wants(task_topic("any"))
            assert not w.bus.wants(AGENTS_CHANGED)

    run(scenario())


def test_a_watcher_that_is_too_slow_is_cut_and_holds_up_nobody(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            happenings = watching(w)
            await w.open()
            slow, other = happenings.watch(ALICE, TASKS).items, happenings.watch(BOSS, TASKS).items
            for number in range(MOST + 1):
                await w.words(str(number))
                assert len(await some(other)) == 1
            assert slow.cut
            assert not other.cut
            with pytest.raises(StopAsyncIteration):
                await anext(slow)

    run(scenario())


def test_a_watcher_that_lies_on_much_is_cut(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            await w.open()
            items = watching(w).watch(ALICE, TASKS).items
            await w.words("x" * 700_000)
            assert not items.cut
            await w.words("x" * 700_000)
            assert items.cut

    run(scenario())


def test_who_comes_back_is_told_how_things_stand_that_changed_since(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            happenings = watching(w)
            await w.store.register(Registration(agent=new_agent(w.clock, "old")))
            await grown(w, "alice")
            w.clock.advance(60)
            since = w.clock.now()
            w.clock.advance(60)
            await grown(w, "alice")
            await grown(w, "bob")
            w.clock.advance(1)
            await w.store.register(Registration(agent=new_agent(w.clock, "new")))
            items = happenings.watch(ALICE, WatchChanges(since=since)).items
            missed = await some(items)
            assert states(missed) == [TaskState.COMPLETED]
            assert agents(missed) == [("new", True)]
            assert isinstance(missed[0], TaskChanged)
            # A change that was on its way at that time is told again rather than lost.
            again = happenings.watch(ALICE, WatchChanges(since=w.clock.now() + timedelta(seconds=3), tasks=False)).items
            assert agents(await some(again)) == [("new", True)]

    run(scenario())


def test_a_stop_of_the_hub_ends_a_watch(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with world(tmp_path) as w:
            items = watching(w).watch(ALICE, WatchChanges()).items
            waiting = asyncio.ensure_future(anext(items))
            await asyncio.sleep(0)
            assert not items.carried
            items.stop()
            with pytest.raises(StopAsyncIteration):
                await waiting
            assert not items.cut

    run(scenario())
