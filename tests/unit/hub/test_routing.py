"""The choice of an agent by skill, in virtual time: nearly as good as always taking the best, and always explained."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.model.agent import AgentStatus, Endpoint, Via
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound, AgentUnavailable
from dragoman.model.operations import SendTask, Wait
from dragoman.model.route import Candidate, RouteReason, explained, order_of
from dragoman.ports.store import Registration
from tests.contracts.samples import new_agent
from tests.support.five_agents import CALLER, FIVE, SKILL, Played, World
from tests.support.run import run
from tests.unit.model.test_lifecycle import TASK

ASKED = SendTask(message=TASK.asked.message)
BEST = min(each.fails for each in FIVE)


def played(folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]], *agents: Played) -> None:
    async def whole() -> None:
        world = World(folder, seed=7, agents=agents or FIVE)
        await world.start()
        try:
            await scenario(world)
        finally:
            await world.store.close()

    run(whole())


@pytest.mark.req("P-12")
def test_calls_by_skill_succeed_nearly_as_often_as_with_the_best_agent(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        success = await world.calls(3000, per_s=20)
        assert success >= 1 - BEST - 0.02, f"{success:.3f} of the calls succeeded"
        assert world.unexplained() == []
        # Of the two that fail least the quicker one has nearly all.
        assert world.shares(1000)["d-good"] > 0.9
        assert sum(world.took_ms) / len(world.took_ms) < 200

    played(tmp_path, scenario)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_the_same_with_other_seeds_and_many_more_calls(tmp_path: Path, seed: int) -> None:
    async def scenario() -> None:
        world = World(tmp_path, seed=seed)
        await world.start()
        try:
            assert await world.calls(20_000, per_s=20) >= 1 - BEST - 0.02
            assert world.unexplained() == []
        finally:
            await world.store.close()

    run(scenario())


@pytest.mark.req("P-12")
def test_an_agent_that_starts_to_fail_loses_its_calls_and_gets_them_back(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.calls(400, per_s=20)
        assert world.shares(100)["d-good"] > 0.8
        world.agents["d-good"].fails = 1.0
        await world.calls(600, per_s=20)
        assert world.shares(100)["d-good"] < 0.1
        world.agents["d-good"].fails = 0.0
        world.clock.advance(3600)
        await world.calls(400, per_s=20)
        assert world.shares(100)["d-good"] > 0.8

    played(tmp_path, scenario)


@pytest.mark.req("P-12")
def test_where_calls_wait_they_are_spread_over_those_about_as_good(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        # Together they can take 20 a second, the quickest alone 10.
        success = await world.calls(1500, per_s=15)
        shares = world.shares(500)
        assert shares["quick"] < 0.8
        assert shares["other"] > 0.15
        assert shares["bad"] < 0.1
        assert success > 0.95
        assert sum(each.waiting for each in world.agents.values()) < 50
        assert RouteReason.DRAWN in {each.route.reason for each in world.choices[-500:]}
        assert world.unexplained() == []

    agents = (Played("quick", 100, 0.0, at_once=1), Played("other", 110, 0.0, at_once=1), Played("bad", 10, 0.4))
    played(tmp_path, scenario, *agents)


def test_a_newcomer_gets_some_calls_to_show_what_it_can(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.calls(300, per_s=20)
        world.agents["new"] = Played("new", 15, 0.0)
        await world.store.register(Registration(agent=new_agent(world.clock, "new", skills=[SKILL], rating=1.0)))
        await world.calls(1000, per_s=20)
        assert world.shares(200)["new"] > 0.9

    played(tmp_path, scenario, Played("old", 100, 0.0))


def test_the_order_is_success_by_steps_then_time_then_rating_then_price() -> None:
    base = Candidate(agent="a", version="1", success=0.985, calls=10**6, expected_ms=100, rating=4.0, price_usd=1.0)
    better = (
        {"success": 1.0, "expected_ms": 900},
        {"success": 0.981, "expected_ms": 99},  # the same step
        {"rating": 4.1, "price_usd": 9.0},
        {"price_usd": 0.5},
        {"success": 0.0, "calls": 0},  # Nobody knows it yet.
        {"success": 0.5, "calls": 2, "expected_ms": 99},  # One failure is not yet a step.
    )
    for changes in better:
        assert order_of(msgspec.structs.replace(base, **changes)) < order_of(base), changes
    for changes in ({"success": 0.979, "expected_ms": 1}, {"success": 0.5, "calls": 4, "expected_ms": 1}):
        assert order_of(msgspec.structs.replace(base, **changes)) > order_of(base), changes


def test_a_conversation_stays_with_an_agent_that_remembers(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        forgetful, remembers = [await stored(world, name, memory=name == "remembers") for name in ("f", "remembers")]
        world.router.forget()
        turn = msgspec.structs.replace(ASKED, context_id="talk")
        first = await world.router.choose(CALLER, SKILL, turn)
        assert first.route.reason is not RouteReason.CONVERSATION
        world.router.keep(CALLER, SKILL, "talk", forgetful)
        assert (await world.router.choose(CALLER, SKILL, turn)).route.reason is not RouteReason.CONVERSATION
        world.router.keep(CALLER, SKILL, "talk", remembers)
        kept = await world.router.choose(CALLER, SKILL, turn)
        assert (kept.agents[0].id, kept.route.reason) == ("remembers", RouteReason.CONVERSATION)
        assert "remembers has the conversation in its memory" in explained(kept.route)
        other = msgspec.structs.replace(CALLER, id="bob")
        assert (await world.router.choose(other, SKILL, turn)).route.reason is not RouteReason.CONVERSATION
        await world.store.change_agent("acme", "remembers", AgentStatus.PAUSED, open_=None, private=None)
        world.router.forget()
        assert (await world.router.choose(CALLER, SKILL, turn)).agents[0].id != "remembers"

    async def stored(world: World, name: str, *, memory: bool) -> Any:
        agent = new_agent(world.clock, name, skills=[SKILL])
        world.agents[name] = Played(name, 10, 0.0)
        agent = msgspec.structs.replace(agent, card=msgspec.structs.replace(agent.card, memory=memory))
        await world.store.register(Registration(agent=agent))
        return agent

    played(tmp_path, scenario, Played("first", 10, 0.0))


def test_only_who_can_be_called_and_may_be_used_is_a_candidate(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        async def chosen(caller: Caller = CALLER, asked: SendTask = ASKED) -> list[str]:
            world.router.forget()
            return sorted(agent.id for agent in (await world.router.choose(caller, SKILL, asked)).agents)

        assert await chosen() == ["one", "three", "two"]
        assert await chosen(msgspec.structs.replace(CALLER, allow=("two:*",))) == ["two"]
        for name, status in (("one", AgentStatus.UNREACHABLE), ("two", AgentStatus.PAUSED)):
            await world.store.change_agent("acme", name, status, open_=None, private=None)
        assert await chosen() == ["three"]
        await world.store.change_agent("acme", "three", AgentStatus.UNREACHABLE, open_=None, private=None)
        with pytest.raises(AgentUnavailable, match="one is unreachable, three is unreachable"):
            await chosen()
        with pytest.raises(AgentUnavailable):
            await chosen(asked=msgspec.structs.replace(ASKED, wait=Wait.NONE))
        world.agents["connects"] = Played("connects", 10, 0.0)
        agent = new_agent(world.clock, "connects", skills=[SKILL], status=AgentStatus.UNREACHABLE)
        endpoint = Endpoint(dialect="platform", via=Via.CONNECTED)
        card = msgspec.structs.replace(agent.card, endpoints=(endpoint,))
        await world.store.register(Registration(agent=msgspec.structs.replace(agent, card=card)))
        # One that connects may come back: what nobody waits for can wait for that.
        assert await chosen(asked=msgspec.structs.replace(ASKED, wait=Wait.NONE)) == ["connects"]
        with pytest.raises(AgentNotFound):
            await world.router.choose(CALLER, "unheard-of", ASKED)

    played(tmp_path, scenario, *[Played(name, 10, 0.0) for name in ("one", "two", "three")])


def test_a_warm_choice_asks_the_store_for_nothing(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.router.choose(CALLER, SKILL, ASKED)
        await world.store.close()  # Whatever looked there now would fail.
        first, second = [await world.router.choose(CALLER, SKILL, ASKED) for _ in range(2)]
        assert first is second
        await world.store.start()

    played(tmp_path, scenario)


def test_many_that_choose_at_once_look_once(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.router.choose(CALLER, SKILL, ASKED)
        world.clock.advance(1.5)
        choices = await asyncio.gather(*[world.router.choose(CALLER, SKILL, ASKED) for _ in range(50)])
        assert len({choice.route.chosen for choice in choices}) <= 2

    played(tmp_path, scenario)
