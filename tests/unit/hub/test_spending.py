"""Budgets are kept by the day and by the conversation, over midnights, restarts and kills."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.flow.ledger import WRITTEN_S
from dragoman.hub.flow.spending import Spending
from dragoman.model.budget import Budget
from dragoman.model.call import Caller
from dragoman.model.errors import RateLimited
from dragoman.model.events import StatusChanged, Usage
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task, opening, step
from tests.support.run import run

LATE = datetime(2026, 7, 1, 23, 59, 0, tzinfo=UTC)


class Life:
    """What a hub knows of spending, from one start to its end."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.clock = clock
        self.store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
        self.spawned: list[asyncio.Task[None]] = []
        self.spending = Spending(store=self.store, clock=clock, spawn=self.spawn, per_conversation=4)

    def spawn(self, work: Coroutine[None, None, None]) -> None:
        self.spawned.append(asyncio.get_running_loop().create_task(work))

    async def call(self, caller: Caller, usage: Usage | None = None, context: str | None = None) -> Task:
        """A call from its admission to its end. Raises RateLimited."""
        task = new_task(self.clock, caller=caller.id, context=context)
        await self.spending.look_up(caller, task.asked)
        self.spending.refuse(caller, task.asked)
        await self.store.open(opening(task))
        if context is not None:
            self.spending.opened(task)
        ended = step(task, StatusChanged(at=self.clock.now(), state=TaskState.COMPLETED, usage=usage))
        await self.store.append(ended)
        self.spending.ended(ended.task)
        return ended.task

    async def refused(self, caller: Caller, context: str | None = None) -> RateLimited:
        """The refusal of the next call."""
        with pytest.raises(RateLimited) as caught:
            await self.call(caller, context=context)
        return caught.value


@asynccontextmanager
async def life(folder: Path, clock: ManualClock, *, killed: bool = False) -> AsyncGenerator[Life]:
    lived = Life(folder, clock)
    await lived.store.start()
    await lived.spending.ledger.begin(clock.now())
    yield lived
    if not killed:
        await lived.spending.ledger.write()
    await lived.store.close()


def key(**budget: Any) -> Caller:
    return Caller(tenant="acme", id="alice", budget=Budget(**budget))


def costs(usd: float, tokens: int = 0) -> Usage:
    return Usage(cost_usd=usd, tokens=tokens)


def test_what_a_day_allows_is_spent_and_renewed_at_midnight(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = ManualClock(LATE)
        async with life(tmp_path, clock) as hub:
            alice = key(usd_per_day=0.3)
            for _ in range(3):
                await hub.call(alice, costs(0.1))
            refusal = await hub.refused(alice)
            assert (refusal.details["reason"], refusal.details["budget"]) == ("budget", "usd_per_day")
            assert (refusal.details["spent"], refusal.retry_after_s) == ("0.3", 60)
            await hub.call(Caller(tenant="acme", id="bob", budget=alice.budget))
            clock.advance(60)
            await hub.call(alice, costs(0.3))
            await hub.refused(alice)

    run(scenario())


def test_tokens_are_counted_too(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as hub:
            alice = key(tokens_per_day=10)
            await hub.call(alice, Usage(input_tokens=4, output_tokens=5))
            await hub.call(alice, Usage(tokens=1))
            assert (await hub.refused(alice)).details["spent"] == 10

    run(scenario())


@pytest.mark.parametrize("killed", [False, True])
def test_a_budget_is_kept_over_a_restart(tmp_path: Path, killed: bool) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        alice = key(usd_per_day=0.3)
        async with life(tmp_path, clock, killed=killed) as hub:
            await hub.call(alice, costs(0.1))
            clock.advance(WRITTEN_S + 1)
            await asyncio.gather(*hub.spawned)
            await hub.call(alice, costs(0.1))
        clock.advance(1)
        async with life(tmp_path, clock) as hub:
            await hub.call(alice, costs(0.1))
            assert (await hub.refused(alice)).details["spent"] == "0.3"
            assert (await hub.spending.ledger.spent("acme", "alice")).calls == 3

    run(scenario())


def test_a_refused_call_costs_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as hub:
            alice = key(tokens_per_day=1, calls_per_conversation=2)
            await hub.call(alice, Usage(tokens=1), "x")
            for _ in range(3):
                await hub.refused(alice, "x")
            assert (await hub.spending.ledger.spent("acme", "alice")).calls == 1
            await hub.call(key(calls_per_conversation=2), None, "x")

    run(scenario())


def test_a_conversation_has_a_budget_of_its_own_for_which_there_is_no_later(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        alice = key(usd_per_conversation=0.2)
        async with life(tmp_path, clock) as hub:
            await hub.call(alice, costs(0.1), "x")
            await hub.call(alice, costs(0.1), "x")
        clock.advance(3 * 86_400)
        async with life(tmp_path, clock) as hub:
            refusal = await hub.refused(alice, "x")
            assert (refusal.details["budget"], refusal.retry_after_s) == ("usd_per_conversation", None)
            assert not refusal.retryable
            await hub.call(alice, costs(0.1), "y")
            counted = key(calls_per_conversation=2)
            assert (await hub.refused(counted, "x")).details["spent"] == 2

    run(scenario())


def test_nobody_calls_more_often_in_one_conversation_than_all_may_in_a_day(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = ManualClock(LATE)
        callers = [Caller(tenant="acme", id=name) for name in ("alice", "bob")]
        async with life(tmp_path, clock) as hub:
            for caller in callers:
                await hub.call(caller, None, "x")
        async with life(tmp_path, clock) as hub:
            for caller in callers:
                await hub.call(caller, None, "x")
            refusal = await hub.refused(callers[0], "x")
            assert (refusal.details["reason"], refusal.retry_after_s) == ("conversation", 60)
            await hub.call(Caller(tenant="other", id="alice"), None, "x")
            clock.advance(60)
            await hub.call(callers[0], None, "x")

    run(scenario())


def test_whoever_has_no_budget_and_names_no_conversation_is_not_looked_up(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as hub:
            asked = SendTask(message=new_task(hub.clock).asked.message)
            waiting = hub.spending.look_up(Caller(tenant="acme", id="bob"), asked)
            with pytest.raises(StopIteration):
                waiting.send(None)

    run(scenario())


def test_sums_are_written_every_few_seconds_and_agents_cannot_make_them_without_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        async with life(tmp_path, clock) as hub:
            bob = Caller(tenant="acme", id="bob")
            task = await hub.call(bob, Usage(model="m"))
            for number in range(509):
                hub.spending.ended(msgspec.structs.replace(task, usage=Usage(model=f"m{number}")))
            clock.advance(WRITTEN_S)
            await asyncio.gather(*hub.spawned)
            spent = await hub.store.spent_on(hub.spending.ledger.day_of(task), "acme", "bob")
            assert spent.calls == 510
            late = msgspec.structs.replace(task, usage=Usage(model="one more"))
            hub.spending.ended(late)
            names = {of.model for of in hub.spending.ledger.waiting()}
            assert names == {"other"}

    run(scenario())
