"""The registry: who owns which name, and which card was when."""

import pytest

from dragoman.model.agent import Agent, AgentFigures, AgentStatus
from dragoman.model.operations import Discover
from dragoman.ports.bus import AGENTS_CHANGED, Bus, Lost, Said
from dragoman.ports.store import Registration, Store, StoredAgent, Taken
from tests.contracts.conftest import Running
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import EVERYONE, new_agent
from tests.support.run import run


async def put(store: Store, agent: Agent) -> Agent:
    stored = await store.register(Registration(agent=agent))
    assert isinstance(stored, StoredAgent)
    return stored.agent


def test_an_agent_is_found_by_id_alias_and_uuid_also_after_a_restart(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        agent = new_agent(clock, "weather", aliases=["acme/weather"], uuid="u-1", skills=["forecast"], tags=["sky"])
        async with store() as running:
            assert await running.register(Registration(agent=agent)) == StoredAgent(agent=agent, created=True)
        async with store() as running:
            for name in ("weather", "acme/weather", "u-1"):
                assert await running.find_agent("acme", name) == agent
            assert await running.find_agent("other", "weather") is None
            assert await running.find_agent("acme", "unknown") is None

    run(scenario())


@pytest.mark.parametrize(
    ("open_", "private", "found"), [(False, False, False), (True, True, False), (True, False, True)]
)
def test_a_uuid_names_an_agent_of_another_tenant_only_if_anyone_may_see_it(
    store: Running, clock: ManualClock, open_: bool, private: bool, found: bool
) -> None:
    async def scenario() -> None:
        async with store() as running:
            await put(running, new_agent(clock, "weather", uuid="u-1", open_=open_, private=private))
            assert (await running.find_agent("other", "u-1") is not None) is found

    run(scenario())


def test_a_new_card_replaces_the_old_one_and_both_stay_readable(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = await put(running, new_agent(clock, "weather", skills=["old"], rating=4.9, uuid="u-1"))
            clock.advance(60)
            again = new_agent(clock, "weather", skills=["new"], version="2.0.0", uuid="u-2")
            stored = await running.register(Registration(agent=again))
            assert isinstance(stored, StoredAgent)
            assert not stored.created
            assert stored.agent.uuid == "u-1"
            assert stored.agent.registered_at == first.registered_at
            assert stored.agent.updated_at == again.updated_at
            assert stored.agent.figures == AgentFigures(rating=4.9)
            assert await running.find_agent("acme", "weather") == stored.agent
            assert list(await running.versions("acme", "weather")) == ["2.0.0", "1.0.0"]
            pinned = await running.find_agent("acme", "weather", "1.0.0")
            assert pinned is not None
            assert pinned.card == first.card
            assert await running.find_agent("acme", "weather", "3.0.0") is None
            assert list(await running.versions("acme", "unknown")) == []
            found = await running.search(EVERYONE, Discover(skills=("old",)))
            assert found.agents == ()

    run(scenario())


def test_no_name_of_an_agent_goes_to_somebody_else(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            first = await put(running, new_agent(clock, "weather", aliases=["acme/weather"], uuid="u-1"))
            for name, other in (
                ("weather", new_agent(clock, "weather", owner="bob")),
                ("acme/weather", new_agent(clock, "acme/weather", owner="bob")),
                ("acme/weather", new_agent(clock, "acme/weather")),
                ("weather", new_agent(clock, "storm", owner="bob", aliases=["weather"])),
                ("acme/weather", new_agent(clock, "storm", owner="bob", aliases=["x", "acme/weather"])),
                ("u-1", new_agent(clock, "storm", owner="bob", uuid="u-1")),
                ("u-1", new_agent(clock, "storm", owner="bob", aliases=["u-1"])),
            ):
                assert await running.register(Registration(agent=other)) == Taken(name=name)
            assert await running.find_agent("acme", "weather") == first
            assert await running.find_agent("acme", "storm") is None
            elsewhere = new_agent(clock, "weather", tenant="other", owner="bob")
            assert isinstance(await running.register(Registration(agent=elsewhere)), StoredAgent)

    run(scenario())


def test_a_dropped_alias_names_nobody_and_stays_reserved(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await put(running, new_agent(clock, "weather", aliases=["sky"]))
            await put(running, new_agent(clock, "weather"))
            assert await running.find_agent("acme", "sky") is None
            other = new_agent(clock, "sky", owner="bob")
            assert await running.register(Registration(agent=other)) == Taken(name="sky")

    run(scenario())


def test_a_removed_agent_leaves_a_tombstone_that_only_its_owner_revives(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await put(running, new_agent(clock, "weather", uuid="u-1"))
            removed = await running.change_agent("acme", "weather", AgentStatus.REMOVED, None, None)
            assert removed is not None
            assert removed.status is AgentStatus.REMOVED
            for name in ("weather", "u-1"):
                assert await running.find_agent("acme", name) is None
            assert await running.change_agent("acme", "weather", AgentStatus.ACTIVE, None, None) is None
            assert (await running.search(EVERYONE, Discover())).agents == ()
            assert (await running.search(EVERYONE, Discover(status=AgentStatus.REMOVED))).agents == ()
            stranger = new_agent(clock, "weather", owner="bob")
            assert await running.register(Registration(agent=stranger)) == Taken(name="weather")
            revived = await running.register(Registration(agent=new_agent(clock, "weather")))
            assert isinstance(revived, StoredAgent)
            assert not revived.created
            assert revived.agent.uuid == "u-1"
            assert (await running.search(EVERYONE, Discover())).agents == (revived.agent,)

    run(scenario())


def test_an_agent_is_changed_only_in_what_was_asked(store: Running, clock: ManualClock) -> None:
    async def scenario() -> None:
        async with store() as running:
            await put(running, new_agent(clock, "weather", aliases=["sky"]))
            assert await running.change_agent("acme", "unknown", AgentStatus.PAUSED, None, None) is None
            assert await running.change_agent("acme", "sky", AgentStatus.PAUSED, None, None) is None
            await running.change_agent("acme", "weather", None, True, None)
            changed = await running.change_agent("acme", "weather", AgentStatus.PAUSED, None, True)
            assert changed is not None
            assert (changed.status, changed.open, changed.private) == (AgentStatus.PAUSED, True, True)
            assert await running.find_agent("acme", "weather") == changed

    run(scenario())


def test_everyone_is_told_of_a_change_after_it_is_on_disk(store: Running, clock: ManualClock, bus: Bus) -> None:
    async def scenario() -> None:
        async with store() as running, bus.subscribe(AGENTS_CHANGED) as told:
            assert await anext(told) is Lost.LOST
            await put(running, new_agent(clock, "weather"))
            assert await anext(told) == Said(topic=AGENTS_CHANGED, data=b"acme\nweather")
            await running.change_agent("acme", "weather", AgentStatus.PAUSED, None, None)
            assert await anext(told) == Said(topic=AGENTS_CHANGED, data=b"acme\nweather")

    run(scenario())
