"""Calls: opened, grown, read, replayed."""

import asyncio

import pytest

from dragoman.model.errors import Conflict, TaskNotFound
from dragoman.model.events import StatusChanged
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task
from dragoman.ports.store import CALLBACKS, CALLS, Duplicate, Growth, NewJob, Opened, Raced, Scope, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import (
    ALICE,
    BOB,
    EVERYONE,
    chunk,
    completed,
    moved,
    new_task,
    once,
    opening,
    sent,
    step,
)
from tests.support.run import run


async def written(store: Store, clock: ManualClock) -> None:
    """Time enough for what was held to be on disk: commits are made in order."""
    clock.advance(1.0)
    await store.put_sealed("barrier", b"")


@pytest.mark.parametrize("durable", [False, True])
def test_a_call_is_read_as_it_ended_also_after_a_restart(store: Running, clock: ManualClock, durable: bool) -> None:
    async def scenario() -> None:
        task = new_task(clock)
        growth = step(task, sent(clock), completed(clock))
        async with store() as running:
            assert await running.open(opening(task, durable=durable)) == Opened()
            assert await running.append(growth) is None
            assert await running.load(ALICE, task.id) == growth.task
        async with store() as running:
            assert await running.load(ALICE, task.id) == growth.task
            happened = await running.events(task.id, 0, 100)
            assert [item.seq for item in happened] == [1, 2, 3]
            assert happened[0].event == StatusChanged(at=task.created_at, state=TaskState.SUBMITTED)
            assert tuple(item.event for item in happened[1:]) == growth.events

    run(scenario())


def test_a_call_is_found_before_anything_of_it_is_written(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        task = new_task(clock)
        async with store() as running:
            await running.open(opening(task))
            assert await running.load(ALICE, task.id) == task
            assert await running.load(BOB, task.id) is None

    run(scenario())


def test_an_opening_nobody_ends_survives_a_restart(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        task = new_task(clock)
        async with store() as running:
            await running.open(opening(task))
        async with store() as running:
            assert await running.load(ALICE, task.id) == task
            assert [item.seq for item in await running.events(task.id, 0, 10)] == [1]

    run(scenario())


@pytest.mark.parametrize("waits", [False, True])
def test_a_task_that_grows_slowly_is_the_fold_of_its_events(store: Running, clock: ManualClock, waits: bool) -> None:
    async def scenario() -> None:
        opened = task = new_task(clock)
        async with store() as running:
            await running.open(opening(task))
            if waits:
                await written(running, clock)
            for number in range(300):
                clock.advance(0.001)
                growth = step(task, chunk(clock, f"word {number} "))
                assert await running.append(growth) is None
                task = growth.task
                if number % 100 == 0:
                    assert await running.load(ALICE, task.id) == task
            growth = step(task, completed(clock))
            assert await running.append(growth) is None
            assert await running.load(ALICE, opened.id) == growth.task
            seqs = [item.seq for item in await running.events(opened.id, 0, 1000)]
            assert seqs == list(range(1, 303))
            assert [item.seq for item in await running.events(opened.id, 297, 3)] == [298, 299, 300]

    run(scenario())


def test_a_finished_task_never_moves(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for state in sorted(FINAL):
                for slow in (False, True):
                    task = new_task(clock)
                    await running.open(opening(task))
                    if slow:
                        await written(running, clock)
                    ended = step(task, moved(clock, state))
                    assert await running.append(ended) is None
                    late = Growth(task=task, after=2, events=(moved(clock, TaskState.WORKING),))
                    assert await running.append(late) == Raced(task=ended.task)
                    assert await running.load(ALICE, task.id) == ended.task
                    assert len(await running.events(task.id, 0, 10)) == 2

    run(scenario())


@pytest.mark.parametrize("slow", [False, True])
def test_of_two_who_write_at_once_one_wins_and_the_other_learns_what_came_first(
    store: Running, clock: ManualClock, slow: bool
) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task))
            if slow:
                await written(running, clock)
            first = step(task, completed(clock))
            second = step(task, moved(clock, TaskState.CANCELED))
            outcomes = await asyncio.gather(running.append(first), running.append(second))
            assert outcomes == [None, Raced(task=first.task)]
            assert await running.load(ALICE, task.id) == first.task

    run(scenario())


def test_a_step_from_a_wrong_number_changes_nothing(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for slow in (False, True):
                task = new_task(clock)
                await running.open(opening(task))
                if slow:
                    await written(running, clock)
                astray = Growth(task=task, after=5, events=(completed(clock),))
                assert await running.append(astray) == Raced(task=task)
                assert await running.append(step(task, completed(clock))) is None

    run(scenario())


def test_steps_of_many_tasks_at_once_leave_no_gap_and_lose_no_task(store: Running, clock: ManualClock) -> None:
    async def one(running: Store, number: int) -> Task:
        task = new_task(clock, said={"number": number})
        await running.open(opening(task, durable=number % 3 == 0))
        for word in range(number % 4):
            growth = step(task, chunk(clock, str(word)))
            assert await running.append(growth) is None
            task = growth.task
        growth = step(task, completed(clock))
        assert await running.append(growth) is None
        return growth.task

    async def scenario() -> None:
        async with store() as running:
            tasks = await asyncio.gather(*(one(running, number) for number in range(400)))
        async with store() as running:
            for task in tasks:
                assert await running.load(ALICE, task.id) == task
                seqs = [item.seq for item in await running.events(task.id, 0, 100)]
                assert seqs == list(range(1, task.last_seq + 1))

    run(scenario())


def test_another_callers_task_is_as_unknown_as_one_that_never_was(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task, durable=True))
            assert await running.load(BOB, task.id) is None
            assert await running.load(Scope(tenant="other", principal=None), task.id) is None
            assert await running.load(Scope(tenant="other", principal="alice"), task.id) is None
            assert await running.load(EVERYONE, task.id) == task
            assert await running.load(ALICE, "call_unknown") is None
            assert list(await running.events("call_unknown", 0, 10)) == []
            with pytest.raises(TaskNotFound):
                await running.append(step(new_task(clock), completed(clock)))

    run(scenario())


def test_numbers_that_only_json_can_hold_are_kept(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        big = {"huge": 10**30, "deep": [{"small": -(2**70)}]}
        async with store() as running:
            for slow in (False, True):
                task = new_task(clock, said=big)
                await running.open(opening(task, durable=slow))
                growth = step(task, chunk(clock, "…"), completed(clock, big))
                assert await running.append(growth) is None
                assert await running.load(ALICE, task.id) == growth.task
                assert (await running.events(task.id, 2, 1))[0].event == growth.events[-1]

    run(scenario())


def test_a_change_without_events_is_kept(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            await running.open(opening(task, durable=True))
            named = Task(**{name: getattr(task, name) for name in task.__struct_fields__ if name != "skill"}, skill="s")
            assert await running.append(Growth(task=named, after=1, events=())) is None
            assert await running.load(ALICE, task.id) == named
            growth = step(named, chunk(clock, "x"))
            assert await running.append(growth) is None
            assert await running.load(ALICE, task.id) == growth.task

    run(scenario())


def test_a_task_has_no_more_events_than_its_numbers_allow(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            task = new_task(clock)
            with pytest.raises(Conflict):
                await running.append(Growth(task=task, after=1_048_575, events=(completed(clock),)))

    run(scenario())


@pytest.mark.parametrize("scope", ["key", "request", "from"])
def test_the_same_key_names_the_same_task(store: Running, clock: ManualClock, scope: str) -> None:
    async def scenario() -> None:
        async with store() as running:
            first, second = new_task(clock), new_task(clock)
            key = once(clock, "k-1", scope=scope)
            other_body = once(clock, "k-1", scope=scope, digest=b"other body")
            assert await running.open(opening(first, once=key)) == Opened()
            assert await running.open(opening(second, once=key)) == Duplicate(task_id=first.id, same=True)
            assert await running.open(opening(second, once=other_body)) == Duplicate(task_id=first.id, same=False)
            assert await running.load(ALICE, second.id) is None
            assert await running.find_once("acme", "alice", scope, "k-1") == (first.id, b"same body")
            assert await running.find_once("acme", "bob", scope, "k-1") is None
            assert await running.append(step(first, completed(clock))) is None
        async with store() as running:
            assert await running.find_once("acme", "alice", scope, "k-1") == (first.id, b"same body")

    run(scenario())


def test_of_many_calls_under_one_key_exactly_one_is_opened(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            key = once(clock, "k-1")
            tasks = [new_task(clock) for _ in range(50)]
            outcomes = await asyncio.gather(*(running.open(opening(task, once=key)) for task in tasks))
            assert outcomes[0] == Opened()
            assert set(outcomes[1:]) == {Duplicate(task_id=tasks[0].id, same=True)}

    run(scenario())


@pytest.mark.parametrize("durable", [False, True])
def test_a_repeated_request_is_joined_to_the_call_that_is_just_being_opened(
    store: Running, clock: ManualClock, durable: bool
) -> None:
    async def scenario() -> None:
        async with store() as running:
            key = once(clock, "r-1", scope="request")
            tasks = [new_task(clock) for _ in range(5)]
            openings = [opening(task, durable=durable, once=key) for task in tasks]
            outcomes = await asyncio.gather(*(running.open(each) for each in openings))
            assert outcomes == [Opened(), *[Duplicate(task_id=tasks[0].id, same=True)] * 4]

    run(scenario())


@pytest.mark.parametrize("restarted", [False, True])
def test_a_key_holds_over_a_restart_and_is_free_again_when_it_expires(
    store: Running, clock: ManualClock, restarted: bool
) -> None:
    async def scenario() -> None:
        first, second, third = (new_task(clock) for _ in range(3))
        async with store() as running:
            assert await running.open(opening(first, once=once(clock, "k-1", hours=1))) == Opened()
            clock.advance(3599)
            if not restarted:
                assert await running.open(opening(second, once=once(clock, "k-1"))) == Duplicate(
                    task_id=first.id, same=True
                )
                clock.advance(2)
                assert await running.find_once("acme", "alice", "key", "k-1") is None
                assert await running.open(opening(third, once=once(clock, "k-1"))) == Opened()
        async with store() as running:
            if restarted:
                assert await running.open(opening(second, once=once(clock, "k-1"))) == Duplicate(
                    task_id=first.id, same=True
                )
                clock.advance(2)
                assert await running.open(opening(third, once=once(clock, "k-1"))) == Opened()
            assert await running.find_once("acme", "alice", "key", "k-1") == (third.id, b"same body")

    run(scenario())


def test_jobs_are_born_with_the_step_that_made_them_due(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            for durable in (False, True):
                task = new_task(clock)
                await running.open(opening(task, durable=durable))
                callback = NewJob(queue=CALLBACKS, payload=task.id.encode())
                assert await running.append(step(task, completed(clock), jobs=[callback])) is None
                assert await running.lease([CALLS], 10, owner) == []
                leased = await running.lease([CALLBACKS], 10, owner)
                assert [(job.task_id, job.payload) for job in leased] == [(task.id, task.id.encode())]

    run(scenario())
