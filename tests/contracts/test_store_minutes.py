"""Statistics by the minute, and how agents stand by them."""

import msgspec

from dragoman.model.figures import BUCKETS, Counted, Outcome
from dragoman.model.operations import Discover
from dragoman.ports.minutes import Measured, Minute, MinuteQuery
from dragoman.ports.store import Registration, Scope, Store
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent
from tests.support.run import run


def counted(
    minute: int,
    count: int,
    outcome: Outcome = Outcome.COMPLETED,
    *,
    agent: str = "weather",
    skill: str = "s",
    tenant: str = "acme",
) -> Minute:
    buckets = (0, count, *[0] * (BUCKETS - 2))
    sums = Counted(outcome=outcome, count=count, sum_ms=count, buckets=buckets)
    return Minute(tenant=tenant, agent_id=agent, skill=skill, minute=minute, counted=sums)


def measured(calls: int = 0, failures: int = 0, p95_ms: int = 0, availability: float = 1.0) -> Measured:
    return Measured(
        tenant="acme",
        agent_id="weather",
        calls=calls,
        failures=failures,
        p95_ms=p95_ms,
        availability=availability,
    )


async def sums(store: Store, **query: str | int | None) -> list[tuple[int, str, str, int]]:
    asked = msgspec.convert({"since": 0, "until": 1000, "by": 1, "tenant": "acme", **query}, MinuteQuery)
    return [(row.minute, row.skill, row.counted.outcome.value, row.counted.count) for row in await store.minutes(asked)]


def test_what_is_written_twice_is_added_over_a_restart_too(store: Running) -> None:
    async def scenario() -> None:
        async with store() as running:
            await running.add_minutes([counted(60, 2), counted(61, 1), counted(60, 4, Outcome.FAILED)], [])
        async with store() as running:
            await running.add_minutes([counted(60, 3)], [])
            found = await running.minutes(
                MinuteQuery(since=60, until=61, by=1, tenant="acme", agent_id="weather", skill="s")
            )
            first = found[0].counted
            assert (first.outcome, first.count, first.sum_ms, first.buckets[1]) == (Outcome.COMPLETED, 5, 5, 5)
            assert await sums(running, agent_id="weather", by=60) == [
                (60, "s", "completed", 6),
                (60, "s", "failed", 4),
            ]

    run(scenario())


def test_sums_are_of_one_tenant_one_agent_one_skill_or_of_all(store: Running) -> None:
    async def scenario() -> None:
        async with store() as running:
            rows = [counted(1, 1), counted(1, 2, skill="t"), counted(2, 4, agent="other"), counted(1, 8, tenant="b")]
            await running.add_minutes(rows, [])
            assert await sums(running, agent_id="weather") == [(1, "s", "completed", 1), (1, "t", "completed", 2)]
            assert await sums(running, agent_id="weather", skill="t") == [(1, "t", "completed", 2)]
            assert await sums(running) == [(1, "", "completed", 3), (2, "", "completed", 4)]
            assert await sums(running, tenant=None) == [(1, "", "completed", 11), (2, "", "completed", 4)]
            assert await sums(running, since=2) == [(2, "", "completed", 4)]
            assert await sums(running, until=2) == [(1, "", "completed", 3)]

    run(scenario())


def test_an_agent_stands_by_what_was_measured_and_searches_go_by_it(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for agent_id in ("weather", "other"):
                await running.register(Registration(agent=new_agent(clock, agent_id, tenant="acme")))
            seen = clock.now()
            bad = measured(calls=1000, failures=1000, p95_ms=900, availability=0.5)
            (agent,) = await running.add_minutes([], [bad])
            assert (agent.figures.rating, agent.figures.p95_ms, agent.figures.availability) == (1.3, 900, 0.5)
            assert await running.add_minutes([], [bad]) == []  # It stands there already.
            scope = Scope(tenant="acme", principal=None)
            for query in (Discover(min_rating=2), Discover(max_p95_ms=899), Discover(min_availability=0.6)):
                assert [each.id for each in (await running.search(scope, query)).agents] == ["other"]
            assert [each.id for each in (await running.search(scope, Discover())).agents] == ["other", "weather"]
            late = Measured(
                tenant="acme", agent_id="weather", calls=1000, failures=1000, p95_ms=1, availability=1.0, seen_at=seen
            )
            (agent,) = await running.add_minutes([], [late])
            assert (agent.figures.p95_ms, agent.figures.seen_at) == (1, seen)
            assert await running.add_minutes([], [measured(calls=9), measured()])
        async with store() as running:
            found = await running.find_agent("acme", "weather")
            assert found is not None
            assert found.figures.seen_at == seen
            assert found.figures.rating == 4.5

    run(scenario())


def test_agents_to_check_are_those_of_all_tenants_that_may_be_called(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            for tenant, agent_id in (("a", "one"), ("b", "two"), ("b", "three")):
                await running.register(Registration(agent=new_agent(clock, agent_id, tenant=tenant)))
            first = await running.agents_to_check(0, 2)
            assert [agent.id for _, agent in first] == ["one", "two"]
            assert [agent.id for _, agent in await running.agents_to_check(first[-1][0], 2)] == ["three"]

    run(scenario())
