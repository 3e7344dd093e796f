"""Lists of tasks, page by page."""

from typing import Any

import msgspec
import pytest

from dragoman.model.errors import BadParams
from dragoman.model.operations import ListTasks
from dragoman.model.states import TaskState
from dragoman.ports.store import Scope, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, BOB, EVERYONE, chunk, completed, moved, new_task, opening, step
from tests.support.run import run


async def pages(store: Store, scope: Scope, query: ListTasks) -> list[list[str]]:
    found: list[list[str]] = []
    cursor: str | None = None
    while True:
        page = await store.list_tasks(scope, msgspec.structs.replace(query, cursor=cursor))
        found.append([task.id for task in page.tasks])
        cursor = page.cursor
        if cursor is None:
            return found


def test_tasks_are_listed_newest_status_first_each_exactly_once(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            alices: list[str] = []
            for number in range(70):
                clock.advance(1)
                task = new_task(clock, caller="bob" if number % 10 == 0 else "alice")
                await running.open(opening(task, durable=number % 3 == 0))
                if number % 2:
                    await running.append(step(task, completed(clock)))
                if number % 10:
                    alices.append(task.id)
            newest_first = list(reversed(alices))
            listed = await pages(running, ALICE, ListTasks(limit=20))
            assert [len(page) for page in listed] == [20, 20, 20, 3]
            assert [task for page in listed for task in page] == newest_first
            assert (await running.list_tasks(ALICE, ListTasks(limit=1))).total == 63
            everyones = [task for page in await pages(running, EVERYONE, ListTasks(limit=9)) for task in page]
            assert len(everyones) == len(set(everyones)) == 70
            assert [task for task in everyones if task in set(alices)] == newest_first

    run(scenario())


def test_a_task_that_was_just_opened_is_listed(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task, bobs = new_task(clock), new_task(clock, caller="bob")
            await running.open(opening(task))
            await running.open(opening(bobs))
            assert (await running.list_tasks(ALICE, ListTasks())).tasks == (task,)
            assert await running.append(step(task, completed(clock))) is None
            assert {found.id for found in (await running.list_tasks(EVERYONE, ListTasks())).tasks} == {task.id, bobs.id}

    run(scenario())


def test_a_status_change_moves_a_task_to_the_front_and_a_chunk_does_not(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first, second = new_task(clock), new_task(clock)
            await running.open(opening(first, durable=True))
            clock.advance(1)
            await running.open(opening(second, durable=True))
            clock.advance(1)
            grown = step(first, chunk(clock, "word"))
            await running.append(grown)
            page = await running.list_tasks(ALICE, ListTasks())
            assert [task.id for task in page.tasks] == [second.id, first.id]
            await running.append(step(grown.task, moved(clock, TaskState.WORKING)))
            page = await running.list_tasks(ALICE, ListTasks())
            assert [task.id for task in page.tasks] == [first.id, second.id]

    run(scenario())


def test_a_list_keeps_to_its_filters(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            by_state: dict[TaskState, str] = {}
            for state in TaskState:
                clock.advance(1)
                task = new_task(clock, context="talk" if state in (TaskState.WORKING, TaskState.FAILED) else None)
                await running.open(opening(task))
                if state is not TaskState.SUBMITTED:
                    await running.append(step(task, moved(clock, state)))
                by_state[state] = task.id
            for scope in (ALICE, EVERYONE):
                for state, task_id in by_state.items():
                    assert await pages(running, scope, ListTasks(state=state)) == [[task_id]]
                talk = [[by_state[TaskState.FAILED], by_state[TaskState.WORKING]]]
                assert await pages(running, scope, ListTasks(context_id="talk")) == talk
                both = ListTasks(context_id="talk", state=TaskState.FAILED)
                assert await pages(running, scope, both) == [[by_state[TaskState.FAILED]]]
                assert await pages(running, scope, ListTasks(after=clock.now())) == [[by_state[list(TaskState)[-1]]]]
            assert await pages(running, BOB, ListTasks(context_id="talk")) == [[]]

    run(scenario())


def test_a_conversation_the_hub_began_is_listed_from_its_first_task_on(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = new_task(clock)
            await running.open(opening(first))
            await running.append(step(first, completed(clock)))
            clock.advance(1)
            second = new_task(clock, context=first.context_id)
            await running.open(opening(second))
            await running.append(step(second, completed(clock)))
            assert await pages(running, ALICE, ListTasks(context_id=first.context_id)) == [[second.id, first.id]]

    run(scenario())


def test_a_cursor_of_another_list_or_of_none_is_refused(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for _ in range(3):
                await running.open(opening(new_task(clock), durable=True))
            cursor = (await running.list_tasks(ALICE, ListTasks(limit=1))).cursor
            assert cursor is not None
            for query in (
                ListTasks(cursor=cursor, state=TaskState.WORKING),
                ListTasks(cursor="?"),
                ListTasks(cursor="e30"),
                ListTasks(cursor="ä"),
            ):
                with pytest.raises(BadParams):
                    await running.list_tasks(ALICE, query)
            with pytest.raises(BadParams):
                await running.list_tasks(BOB, ListTasks(cursor=cursor))

    run(scenario())


async def made(store: Store, clock: ManualClock) -> dict[str, str]:
    """Calls of two callers that differ in what they are found by; half of them are written before they end."""
    ids: dict[str, str] = {}
    kinds = (
        ("bobs", "bob", "sum", "a2a-1.0", "aa"),
        ("first", "alice", "sum", "platform", "aa"),
        ("second", "alice", "sum", "dotted", "bb"),
        ("third", "alice", "plan", "platform", "aa"),
    )
    for number, (name, caller, skill, dialect, trace) in enumerate(kinds):
        clock.advance(1)
        task = new_task(clock, caller=caller, skill=skill, dialect=dialect, trace=trace * 16, context="talk")
        await store.open(opening(task, durable=number % 2 == 0))
        await store.append(step(task, completed(clock)))
        ids[name] = task.id
    return ids


@pytest.mark.parametrize("context", [None, "talk"])
def test_a_list_is_of_one_skill_one_dialect_one_caller(store: Running, clock: ManualClock, context: str | None) -> None:
    async def scenario() -> None:
        async with store() as running:
            ids = await made(running, clock)

            async def found(scope: Scope, **filters: Any) -> list[str]:
                listed = await pages(running, scope, ListTasks(context_id=context, limit=2, **filters))
                return [task for page in listed for task in page]

            assert await found(ALICE, skill="sum") == [ids["second"], ids["first"]]
            assert await found(EVERYONE, skill="sum") == [ids["second"], ids["first"], ids["bobs"]]
            assert await found(EVERYONE, skill="sum", dialect="a2a-1.0") == [ids["bobs"]]
            assert await found(ALICE, dialect="platform") == [ids["third"], ids["first"]]
            assert await found(EVERYONE, caller="bob") == [ids["bobs"]]
            assert await found(ALICE, caller="alice", skill="plan") == [ids["third"]]
            assert await found(ALICE, caller="bob") == [], "nobody else's, whoever is named"
            assert await found(ALICE, skill="su") == []

    run(scenario())


def test_calls_are_found_by_their_trace(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            ids = await made(running, clock)
            trace = "aa" * 16
            everyones = await pages(running, EVERYONE, ListTasks(trace_id=trace, limit=2))
            assert everyones == [[ids["third"], ids["first"]], [ids["bobs"]]]
            assert await pages(running, ALICE, ListTasks(trace_id=trace)) == [[ids["third"], ids["first"]]]
            assert await pages(running, ALICE, ListTasks(trace_id=trace, skill="plan")) == [[ids["third"]]]
            assert await pages(running, ALICE, ListTasks(trace_id=trace, prefix=ids["first"])) == [[ids["first"]]]
            assert await pages(running, EVERYONE, ListTasks(trace_id="cc" * 16)) == [[]]
            assert (await running.list_tasks(EVERYONE, ListTasks(trace_id=trace, limit=1))).total == 3

    run(scenario())


def test_calls_are_found_by_how_their_ids_begin(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            ids = await made(running, clock)
            newest_first = [ids["third"], ids["second"], ids["first"], ids["bobs"]]
            assert await pages(running, EVERYONE, ListTasks(prefix="call_", limit=3)) == [
                newest_first[:3],
                newest_first[3:],
            ]
            assert await pages(running, ALICE, ListTasks(prefix="call_")) == [newest_first[:3]]
            assert await pages(running, ALICE, ListTasks(prefix="call_", skill="plan")) == [[ids["third"]]]
            assert await pages(running, ALICE, ListTasks(prefix=ids["first"])) == [[ids["first"]]]
            assert await pages(running, ALICE, ListTasks(prefix=ids["bobs"])) == [[]]
            assert await pages(running, EVERYONE, ListTasks(prefix="call%")) == [[]]

    run(scenario())
