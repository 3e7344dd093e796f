"""Work that must not be lost: claimed once, fenced, given back."""

from datetime import timedelta

from dragoman.ports.store import CALLBACKS, CALLS, NewJob, Owner, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import chunk, completed, new_task, opening, step
from tests.support.run import run


async def open_call(store: Store, clock: ManualClock, *, rank: float = 0.0, owner: Owner | None = None) -> str:
    task = new_task(clock)
    await store.open(opening(task, durable=True, rank=rank, owner=owner))
    return task.id


def test_jobs_are_claimed_once_by_rank_then_age(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            late = await open_call(running, clock, rank=5.0)
            first = await open_call(running, clock, rank=1.0)
            second = await open_call(running, clock, rank=1.0)
            assert await running.lease(["elsewhere"], 10, owner) == []
            claimed = await running.lease([CALLS, CALLBACKS], 2, owner)
            assert [(job.task_id, job.attempt, job.owner) for job in claimed] == [(first, 1, owner), (second, 1, owner)]
            assert [job.task_id for job in await running.lease([CALLS], 10, owner)] == [late]
            assert await running.lease([CALLS], 10, owner) == []

    run(scenario())


def test_a_finished_job_is_gone_and_finished_once(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            await open_call(running, clock)
            (job,) = await running.lease([CALLS], 10, owner)
            assert await running.finish(job)
            assert not await running.finish(job)
        async with store() as running:
            assert await running.lease([CALLS], 10, await running.begin_epoch("r")) == []

    run(scenario())


def test_a_job_given_back_comes_again_when_its_time_has_come(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            await open_call(running, clock)
            (job,) = await running.lease([CALLS], 10, owner)
            assert await running.retry(job, clock.now() + timedelta(seconds=5))
            assert not await running.retry(job, clock.now())
            clock.advance(4.9)
            assert await running.lease([CALLS], 10, owner) == []
            clock.advance(0.2)
            (again,) = await running.lease([CALLS], 10, owner)
            assert (again.id, again.attempt) == (job.id, 2)
            assert not await running.finish(job)
            assert await running.finish(again)

    run(scenario())


def test_a_job_due_later_waits_for_its_time(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            task = new_task(clock)
            await running.open(opening(task, durable=True))
            later = NewJob(queue=CALLBACKS, payload=b"later", run_at=clock.now() + timedelta(hours=1))
            await running.append(step(task, chunk(clock, "x"), jobs=[later]))
            assert await running.lease([CALLBACKS], 10, owner) == []
            clock.advance(3600)
            assert [job.payload for job in await running.lease([CALLBACKS], 10, owner)] == [b"later"]

    run(scenario())


def test_who_asks_for_one_queue_leaves_the_sleeping_jobs_of_the_others_to_those_who_wait_for_them(
    store: Running, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            task = new_task(clock)
            await running.open(opening(task, durable=True))
            due = clock.now() + timedelta(seconds=5)
            later = NewJob(queue=CALLBACKS, payload=b"later", run_at=due)
            await running.append(step(task, chunk(clock, "x"), jobs=[later]))
            clock.advance(5)
            await running.lease([CALLS], 10, owner)
            assert (await running.next_due(CALLBACKS), await running.next_due(CALLS)) == (due, None)
            assert [job.payload for job in await running.lease([CALLBACKS], 10, owner)] == [b"later"]
            assert await running.next_due(CALLBACKS) is None

    run(scenario())


def test_a_new_life_takes_over_and_the_old_one_changes_nothing_more(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            old = await running.begin_epoch("r")
            other = await running.begin_epoch("s")
            await open_call(running, clock)
            born_owned = await open_call(running, clock, owner=old)
            others = await open_call(running, clock, owner=other)
            (job,) = await running.lease([CALLS], 10, old)
        async with store() as running:
            new = await running.begin_epoch("r")
            assert new.epoch > old.epoch
            assert not await running.finish(job)
            assert not await running.retry(job, clock.now())
            assert await running.lease([CALLS], 10, old) == []
            late = await open_call(running, clock, owner=old)
            claimed = await running.lease([CALLS], 10, new)
            assert [(found.task_id, found.attempt) for found in claimed] == [
                (job.task_id, 2),
                (born_owned, 2),
                (late, 1),
            ]
            assert others not in {found.task_id for found in claimed}

    run(scenario())


def test_the_end_of_a_call_ends_its_job(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            owner = await running.begin_epoch("r")
            task = new_task(clock)
            await running.open(opening(task, durable=True))
            (job,) = await running.lease([CALLS], 10, owner)
            assert await running.append(step(task, completed(clock))) is None
            assert not await running.finish(job)
            assert await running.lease([CALLS], 10, await running.begin_epoch("r")) == []

    run(scenario())
