"""What calls used up: sums of days, and what the calls themselves tell."""

from datetime import timedelta

import msgspec

from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.usage import Sums
from dragoman.ports.clock import Clock
from dragoman.ports.store import Growth, Scope, Store
from dragoman.ports.usage import By, DayOf, UsageQuery
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import completed, moved, new_task, opening, sent, step
from tests.support.run import run

SOON = timedelta(seconds=1)
TODAY = 20_635  # 2026-07-01, where the clock stands
SOME = Sums(calls=1, tokens=7, cost_nano=5, estimated_nano=2)


def of(day: int, *, caller: str = "alice", target: str = "weather", model: str = "", tenant: str = "acme") -> DayOf:
    return DayOf(day=day, tenant=tenant, caller=caller, target=target, skill="s", model=model)


async def ended(store: Store, clock: Clock, task: Task) -> Task:
    """The task, opened and completed."""
    await store.open(opening(task))
    grown = step(task, sent(clock), completed(clock))
    await store.append(grown)
    return grown.task


def test_sums_are_added_to_and_found_by_what_is_known_of_them(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = [
                (of(TODAY), SOME),
                (of(TODAY + 1, caller="bob", model="m"), SOME),
                (of(TODAY, tenant="other"), SOME),
            ]
            await running.add_usage(first, clock.now())
            await running.add_usage([(of(TODAY), SOME), (of(TODAY + 1), SOME)], clock.now())
        async with store() as running:
            assert await running.spent_on(TODAY, "acme", "alice") == SOME + SOME
            assert await running.spent_on(TODAY, "acme", "nobody") == Sums()

            async def by(kind: By, caller: str | None = None, last: int = TODAY + 1) -> dict[str, int]:
                query = UsageQuery(by=kind, tenant="acme", caller=caller, first=TODAY, last=last)
                return {each.name: each.sums.calls for each in await running.usage_by(query)}

            assert await by(By.CALLER) == {"alice": 3, "bob": 1}
            assert await by(By.DAY) == {str(TODAY): 2, str(TODAY + 1): 2}
            assert await by(By.MODEL) == {"": 3, "m": 1}
            assert await by(By.TARGET, "bob") == {"weather": 1}
            assert await by(By.SKILL, "bob", last=TODAY) == {}
            assert await by(By.CONVERSATION) == {}

    run(scenario())


def test_what_is_old_is_dropped(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            today = int(clock.now().timestamp()) // 86_400
            await running.add_usage([(of(today - 401), SOME), (of(today - 400), SOME)], clock.now())
            assert (await running.spent_on(today - 401, "acme", "alice")).calls == 0
            assert (await running.spent_on(today - 400, "acme", "alice")).calls == 1

    run(scenario())


def test_calls_that_ended_after_the_last_adding_are_found_and_no_others(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            assert await running.uncounted(clock.now() + SOON) is None
            before = await ended(running, clock, new_task(clock))
            clock.advance(10)
            await running.add_usage((), clock.now())
            assert list(await running.uncounted(clock.now() + SOON) or ()) == []
            clock.advance(10)
            quick = await ended(running, clock, new_task(clock))
            slow = new_task(clock)
            await running.open(opening(slow, durable=True))
            grown = step(slow, moved(clock, TaskState.WORKING))
            await running.append(grown)
            await running.append(step(grown.task, completed(clock)))
            await running.open(opening(new_task(clock), durable=True))
            # A change of one that was counted before is no second end.
            await running.append(Growth(task=before, after=before.last_seq, events=()))
        async with store() as running:
            found = await running.uncounted(clock.now() + SOON)
            assert found is not None
            assert {task.id for task in found} == {quick.id, slow.id}
            assert list(await running.uncounted(clock.now()) or ()) == []

    run(scenario())


def test_a_conversation_tells_how_many_calls_it_has_had_and_what_they_cost(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for caller in ("alice", "alice", "bob"):
                await ended(running, clock, new_task(clock, caller=caller, context="x"))
            await ended(running, clock, new_task(clock, context="y"))
            await running.open(opening(new_task(clock, context="x")))  # held, not written

            async def calls(caller: str | None, most: int = 100, ago_s: float | None = None) -> int:
                since = None if ago_s is None else clock.now() - timedelta(seconds=ago_s)
                return await running.calls_in("acme", "x", caller=caller, since=since, most=most)

            assert (await calls(None), await calls("alice"), await calls("bob")) == (4, 3, 1)
            assert await calls("bob", ago_s=-1) == 0
            assert await running.calls_in("other", "x", caller=None, since=None, most=9) == 0
            assert (await running.spent_in("acme", "x", "alice")).tokens == 14
            assert (await running.spent_in("acme", "x", "nobody")).tokens == 0

    run(scenario())


def test_the_calls_below_one_are_found(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = await ended(running, clock, new_task(clock))
            quick = await ended(running, clock, msgspec.structs.replace(new_task(clock), parent_id=first.id))
            slow = msgspec.structs.replace(new_task(clock), parent_id=first.id)
            await running.open(opening(slow, durable=True))
            assert {task.id for task in await running.below(first.id, 10)} == {quick.id, slow.id}
            assert len(await running.below(first.id, 1)) == 1
            assert list(await running.below(quick.id, 10)) == []
            assert await running.load(Scope(tenant="acme", principal=None), quick.id) is not None

    run(scenario())
