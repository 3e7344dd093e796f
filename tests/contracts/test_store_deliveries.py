"""Notices to callbacks: one job per line, in the order of events; listed by their owners; kept over restarts."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import msgspec
import pytest

from dragoman.model.callbacks import Callback, Tells
from dragoman.model.errors import BadParams
from dragoman.model.task import Task
from dragoman.ports.deliveries import Delivery, DeliveryQuery, DeliveryState, NewNotice, Outcome
from dragoman.ports.store import CALLBACKS, CALLS, Job, NewJob, Opening, Scope, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, BOB, EVERYONE, chunk, completed, new_task, step
from tests.support.run import run

URL = "https://receiver.example/done"
OTHER_URL = "https://other.example/done"
ELSEWHERE = Scope(tenant="elsewhere", principal=None)
PENDING, PARKED = DeliveryState.PENDING, DeliveryState.PARKED
DISABLED, DELIVERED = DeliveryState.DISABLED, DeliveryState.DELIVERED


async def owe(
    store: Store, clock: ManualClock, *, url: str = URL, caller: str = "alice", events: int = 1, later: str = URL
) -> Task:
    """A call that ended with so many events, each owed to one callback: the first to `url`, the others to `later`."""
    callback = Callback(id="cb", dialect="platform", url=url, tells=Tells.EVENTS)
    task = msgspec.structs.replace(new_task(clock, caller=caller), callbacks=(callback,))
    await store.open(Opening(task=task, job=NewJob(queue=CALLS), durable=True))
    happened = [*(chunk(clock, "x") for _ in range(events - 1)), completed(clock)]
    notices = [NewNotice(callback_id="cb", seq=seq, url=url if seq == 2 else later) for seq in range(2, 2 + events)]
    growth = step(task, *happened, jobs=[NewJob(queue=CALLBACKS, notice=notice) for notice in notices])
    assert await store.append(growth) is None
    return growth.task


async def due(store: Store) -> Sequence[Job]:
    """What a new life claims."""
    return await store.lease([CALLBACKS], 100, await store.begin_epoch("r"))


async def numbers(store: Store, jobs: Sequence[Job]) -> list[int]:
    found = [await store.pending(job) for job in jobs]
    return [notice.seq for notice in found if notice is not None]


async def listed(store: Store, scope: Scope = EVERYONE, query: DeliveryQuery | None = None) -> list[Delivery]:
    return list((await store.list_deliveries(scope, query or DeliveryQuery(limit=1000))).deliveries)


async def states(store: Store) -> list[DeliveryState]:
    """How they stand, oldest first."""
    return [one.state for one in reversed(await listed(store))]


def came_to(clock: ManualClock, state: DeliveryState, url: str = URL) -> Outcome:
    return Outcome(state=state, at=clock.now(), url=url, answer="HTTP 500")


def test_only_the_first_of_a_line_is_claimed_and_it_hands_the_line_on(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock, events=3)
            await owe(running, clock, events=1)
            jobs = await due(running)
            assert await numbers(running, jobs) == [2, 2]
            assert await running.attempted(jobs[0], came_to(clock, DELIVERED))
            assert not await running.attempted(jobs[0], came_to(clock, DELIVERED))
        async with store() as running:
            jobs = await due(running)
            assert sorted(await numbers(running, jobs)) == [2, 3]
            assert await states(running) == [DELIVERED, PENDING, PENDING, PENDING]

    run(scenario())


@pytest.mark.parametrize("end", [DELIVERED, PARKED, DISABLED, None])
def test_whatever_ends_a_notice_lets_its_line_go_on(
    store: Running, clock: ManualClock, end: DeliveryState | None
) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock, events=2)
            (job,) = await due(running)
            assert await running.attempted(job, None if end is None else came_to(clock, end))
            assert await numbers(running, await due(running)) == [3]
            assert await states(running) == ([] if end is None else [end]) + [PENDING]

    run(scenario())


def test_a_notice_that_is_tried_again_keeps_its_place(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock, events=2)
            (job,) = await due(running)
            again_at = clock.now() + timedelta(minutes=5)
            outcome = msgspec.structs.replace(came_to(clock, PENDING), again_at=again_at)
            assert await running.attempted(job, outcome)
            assert await running.next_due(CALLBACKS) == again_at
            first = (await listed(running))[-1]
            assert (first.tries, first.answer, first.again_at) == (1, "HTTP 500", again_at)
        async with store() as running:
            assert await due(running) == []
            clock.advance(300)
            assert await numbers(running, await due(running)) == [2]

    run(scenario())


def test_an_old_life_notes_nothing(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock)
            (old,) = await due(running)
            (new,) = await due(running)
            assert not await running.attempted(old, came_to(clock, PARKED))
            assert await states(running) == [PENDING]
            assert await running.attempted(new, came_to(clock, DELIVERED))

    run(scenario())


def test_an_address_is_remembered_while_it_fails_and_forgotten_when_it_takes_something(
    store: Running, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with store() as running:
            began = clock.now()
            for _ in range(3):
                await owe(running, clock)
            first, second, third = await due(running)
            await running.attempted(first, came_to(clock, PARKED))
            clock.advance(60)
            await running.attempted(second, came_to(clock, PARKED))
        async with store() as running:
            known = await running.receiver("acme", URL)
            assert known is not None
            assert (known.failing_since, known.disabled_at) == (began, None)
            assert await running.receiver("elsewhere", URL) is None
            (third,) = await due(running)
            await running.attempted(third, came_to(clock, DELIVERED))
            assert await running.receiver("acme", URL) is None

    run(scenario())


def test_a_disabled_address_takes_all_that_waits_for_it_along(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock, events=2)
            await owe(running, clock)
            await owe(running, clock, url=OTHER_URL)
            (job, *_) = await due(running)
            # A new life: the others are held by nobody.
            (job, *_) = await running.lease([CALLBACKS], 1, await running.begin_epoch("r"))
            gone = msgspec.structs.replace(came_to(clock, DISABLED), disables="HTTP 410")
            await running.attempted(job, gone)
            assert await states(running) == [DISABLED, DISABLED, DISABLED, PENDING]
            assert await numbers(running, await due(running)) == [2]
            known = await running.receiver("acme", URL)
            assert known is not None
            assert (known.disabled_at, known.reason) == (clock.now(), "HTTP 410")

    run(scenario())


def test_a_line_goes_on_with_those_that_go_elsewhere(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock, events=2, later="")
            first = (await listed(running))[-1]
            await running.switch_receiver(ALICE, first.id, "a rest", clock.now())
            assert await states(running) == [DISABLED, PENDING]
            assert await numbers(running, await due(running)) == [3]

    run(scenario())


def test_a_replay_takes_its_place_in_its_line_again(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock, events=3)
            (job,) = await due(running)
            await running.attempted(job, came_to(clock, PARKED))
            (job,) = await due(running)
            later = msgspec.structs.replace(came_to(clock, PENDING), again_at=clock.now() + timedelta(hours=10))
            await running.attempted(job, later)
            parked = (await listed(running))[-1]
            (again,) = await running.replay(ALICE, [parked.id, parked.id, "dlv_77", "nonsense"])
            assert (again.id, again.state, again.tries, again.replays) == (parked.id, PENDING, 0, 1)
            (job,) = await due(running)
            notice = await running.pending(job)
            assert notice is not None
            assert (notice.id, notice.seq, notice.tries, notice.replays) == (parked.id, 2, 0, 1)
            await running.attempted(job, came_to(clock, DELIVERED))
            assert await numbers(running, await due(running)) == [3]

    run(scenario())


def test_a_pending_notice_is_hastened_by_a_replay(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock)
            (job,) = await due(running)
            later = msgspec.structs.replace(came_to(clock, PENDING), again_at=clock.now() + timedelta(hours=10))
            await running.attempted(job, later)
            (one,) = await listed(running)
            (hastened,) = await running.replay(EVERYONE, [one.id])
            assert (hastened.tries, hastened.again_at, hastened.replays) == (1, None, 0)
            assert len(await due(running)) == 1

    run(scenario())


def test_deliveries_are_listed_by_state_address_call_and_age(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = await owe(running, clock)
            clock.advance(60)
            since = clock.now()
            second = await owe(running, clock, caller="bob")
            third = await owe(running, clock, url=OTHER_URL)
            (job, *_) = await due(running)
            await running.attempted(job, came_to(clock, PARKED))

            async def calls(scope: Scope, query: DeliveryQuery | None = None) -> list[str]:
                return [one.task_id for one in await listed(running, scope, query)]

            assert await calls(EVERYONE) == [third.id, second.id, first.id]
            assert await calls(ALICE) == [third.id, first.id]
            assert await calls(BOB) == [second.id]
            assert await calls(ELSEWHERE) == []
            assert await calls(EVERYONE, DeliveryQuery(states=(PARKED,))) == [first.id]
            assert await calls(EVERYONE, DeliveryQuery(states=(DELIVERED,))) == []
            assert await calls(EVERYONE, DeliveryQuery(url=URL)) == [second.id, first.id]
            assert await calls(ALICE, DeliveryQuery(url=URL, states=(PENDING,))) == []
            assert await calls(EVERYONE, DeliveryQuery(task_id=second.id)) == [second.id]
            assert await calls(ALICE, DeliveryQuery(task_id=second.id)) == []
            assert await calls(EVERYONE, DeliveryQuery(task_id="nonsense")) == []
            assert await calls(EVERYONE, DeliveryQuery(since=since)) == [third.id, second.id]

    run(scenario())


def test_a_list_is_read_page_by_page_and_its_cursor_fits_no_other(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for _ in range(7):
                await owe(running, clock)
            everything = [one.id for one in await listed(running)]
            seen: list[str] = []
            query = DeliveryQuery(limit=3)
            while True:
                page = await running.list_deliveries(EVERYONE, query)
                seen += [one.id for one in page.deliveries]
                if page.cursor is None:
                    break
                query = msgspec.structs.replace(query, cursor=page.cursor)
            assert seen == everything
            for wrong in (msgspec.structs.replace(query, states=(PARKED,)), DeliveryQuery(cursor="x")):
                with pytest.raises(BadParams):
                    await running.list_deliveries(EVERYONE, wrong)
            with pytest.raises(BadParams):
                await running.list_deliveries(ALICE, query)

    run(scenario())


def test_of_those_that_arrived_only_the_newest_are_kept_and_no_number_is_given_twice(
    store: Running, clock: ManualClock
) -> None:
    async def scenario() -> None:
        async with store() as running:
            await asyncio.gather(*(owe(running, clock) for _ in range(1100)))
            owner = await running.begin_epoch("r")
            while jobs := await running.lease([CALLBACKS], 100, owner):
                await asyncio.gather(*(running.attempted(job, came_to(clock, DELIVERED)) for job in jobs))
            kept = await listed(running)
            assert len(kept) == 1000
        async with store() as running:
            await owe(running, clock)
            newest, *_ = await listed(running)
            assert newest.id not in {one.id for one in kept}

    run(scenario(), timeout_s=60)


def test_an_address_is_switched_by_those_who_may_see_the_delivery(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await owe(running, clock)
            (one,) = await listed(running)
            for stranger in (BOB, ELSEWHERE):
                assert await running.switch_receiver(stranger, one.id, "no", clock.now()) is None
                assert await running.replay(stranger, [one.id]) == []
            disabled = await running.switch_receiver(ALICE, one.id, "a rest", clock.now())
            assert disabled is not None
            assert (disabled.state, disabled.disabled) == (DISABLED, "a rest")
            assert await due(running) == []
            enabled = await running.switch_receiver(EVERYONE, one.id, None, clock.now())
            assert enabled is not None
            assert (enabled.state, enabled.disabled) == (DISABLED, None)

    run(scenario())
