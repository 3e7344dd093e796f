"""What callers say of calls, and what it comes to for the agent."""

import asyncio

from dragoman.model.operations import Discover
from dragoman.ports.bus import AGENTS_CHANGED, Bus, Lost, Said
from dragoman.ports.store import Rating, Registration, Scope, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent
from tests.support.run import run


def said(clock: ManualClock, task_id: str, stars: int, agent_id: str = "weather", tenant: str = "acme") -> Rating:
    return Rating(tenant=tenant, agent_id=agent_id, task_id=task_id, stars=stars, rated_at=clock.now())


async def registered(store: Store, clock: ManualClock, *ids: str, tenant: str = "acme") -> None:
    for id in ids:
        await store.register(Registration(agent=new_agent(clock, id, tenant=tenant)))


async def rating(store: Store, agent_id: str = "weather", tenant: str = "acme") -> float:
    agent = await store.find_agent(tenant, agent_id)
    assert agent is not None
    return agent.figures.rating


def test_a_fresh_agent_has_four_and_a_half_and_words_move_it(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "weather", "other")
            assert await rating(running) == 4.5
            agent = await running.rate(said(clock, "t1", 1))
            assert agent is not None
            assert agent.figures.rating == await rating(running) == 4.2  # (45 + 1) / 11
            await running.rate(said(clock, "t2", 5))
            assert await rating(running) == 4.2  # (45 + 6) / 12
            assert await rating(running, "other") == 4.5
        async with store() as running:
            assert await rating(running) == 4.2

    run(scenario())


def test_a_later_word_on_the_same_call_takes_the_place_of_the_earlier(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "weather")
            for stars in (1, 2, 5):
                await running.rate(said(clock, "t1", stars))
            assert await rating(running) == 4.5  # (45 + 5) / 11

    run(scenario())


def test_only_the_newest_thousand_count(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "weather")
            for n in range(3):
                await running.rate(said(clock, f"old{n}", 1))
            clock.advance(1.0)
            await asyncio.gather(*[running.rate(said(clock, f"new{n}", 5)) for n in range(1000)])
            assert await rating(running) == 5.0

    run(scenario())


def test_a_search_goes_by_the_new_rating(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "a-first", "b-second")
            scope = Scope(tenant="acme", principal="key:1")
            await running.rate(said(clock, "t1", 1, agent_id="a-first"))
            found = await running.search(scope, Discover())
            assert [agent.id for agent in found.agents] == ["b-second", "a-first"]
            good = await running.search(scope, Discover(min_rating=4.3))
            assert [agent.id for agent in good.agents] == ["b-second"]

    run(scenario())


def test_an_agent_that_registers_again_keeps_its_rating(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "weather")
            await running.rate(said(clock, "t1", 1))
            await registered(running, clock, "weather")
            assert await rating(running) == 4.2

    run(scenario())


def test_tenants_do_not_rate_each_others_agents(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "weather")
            assert await running.rate(said(clock, "t1", 1, tenant="other")) is None
            assert await rating(running) == 4.5

    run(scenario())


def test_who_keeps_agents_in_memory_is_told_when_a_rating_moves(store: Running, clock: ManualClock, bus: Bus) -> None:
    told: list[bytes] = []

    def hear(said: Said | Lost) -> None:
        if isinstance(said, Said):
            told.append(said.data)

    async def scenario() -> None:
        async with store() as running:
            await registered(running, clock, "weather")
            leave = bus.listen(AGENTS_CHANGED, hear)
            await running.rate(said(clock, "t1", 1))
            await running.rate(said(clock, "t2", 4))  # 4.2 as before
            leave()

    run(scenario())
    assert told == [b"acme\nweather"]
