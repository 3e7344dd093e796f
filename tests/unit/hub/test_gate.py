"""The gate before an agent: never more at once than it takes, the most urgent first, and nobody waits for ever."""

import asyncio
from collections.abc import Awaitable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.hub.flow.queue import WAITED_FOR, Permit
from dragoman.model.agent import RateLimits, Via
from dragoman.model.call import OpenedCall
from dragoman.model.errors import AgentTimeout, RateLimited
from dragoman.model.operations import Priority, Wait
from tests.support.run import run
from tests.unit.hub.flow_parts import ACCEPTED, World, agent, caller


def entered(world: World, opened: OpenedCall) -> Permit:
    """The permit that a call gets without waiting."""
    permit = world.flow.enter(opened)
    assert isinstance(permit, Permit)
    return permit


async def waits(world: World, opened: OpenedCall) -> asyncio.Task[Permit]:
    """A call that waits for its turn."""
    permit = world.flow.enter(opened)
    assert isinstance(permit, Awaitable)

    async def awaited() -> Permit:
        return await permit

    waiting = asyncio.ensure_future(awaited())
    await asyncio.sleep(0)
    return waiting


async def turn() -> None:
    """Let the others go on."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.req("P-30")
def test_beyond_the_number_calls_wait_and_go_on_as_others_end() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=2))
        first, second = (entered(world, world.opened(target)) for _ in range(2))
        third, fourth = [await waits(world, world.opened(target)) for _ in range(2)]
        await turn()
        assert (world.gate.running(), world.gate.waiting()) == ({"weather": 2}, {"weather": 2})
        first.give_back()
        await turn()
        assert third.done()
        assert not fourth.done()
        second.give_back()
        (await third).give_back()
        (await fourth).give_back()
        assert (world.gate.running(), world.gate.waiting()) == ({}, {})

    run(scenario())


@pytest.mark.req("P-18", "E-27")
def test_the_most_urgent_goes_first_and_equals_in_the_order_they_came() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        permit = entered(world, world.opened(target))
        order: list[str] = []

        async def go(name: str, priority: Priority) -> None:
            held = world.flow.enter(world.opened(target, priority=priority))
            assert isinstance(held, Awaitable)
            held = await held
            order.append(name)
            held.give_back()

        async with asyncio.TaskGroup() as group:
            for name in ("low", "normal", "high", "urgent", "normal again", "urgent again"):
                group.create_task(go(name, Priority[name.partition(" ")[0].upper()]))
                await turn()
                world.clock.advance(0.001)
            permit.give_back()
        assert order == ["urgent", "urgent again", "high", "normal", "normal again", "low"]

    run(scenario())


@pytest.mark.req("P-18", "E-27")
def test_a_class_is_worth_a_minute_so_that_the_lowest_is_not_starved() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        permit = entered(world, world.opened(target))
        low = await waits(world, world.opened(target, priority=Priority.LOW, timeout_s=3600))
        urgent, served = low, 0
        while not low.done():
            urgent = await waits(world, world.opened(target, priority=Priority.URGENT, timeout_s=3600))
            permit.give_back()
            await turn()
            served += 1
            if urgent.done():
                permit = await urgent
                world.clock.advance(10)
        assert served == 19, "urgent ones go before it for 180 s, one each 10 s, and no longer"
        assert not urgent.done()
        urgent.cancel()

    run(scenario())


@pytest.mark.req("P-30")
def test_who_runs_out_of_time_while_it_waits_is_told_so_and_leaves_the_queue() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        permit = entered(world, world.opened(target))
        late = await waits(world, world.opened(target, timeout_s=5))
        patient = await waits(world, world.opened(target, timeout_s=50))
        world.clock.advance(5.1)
        with pytest.raises(AgentTimeout) as told:
            await late
        assert told.value.details == {"timeout_ms": 5000, "agent_id": "weather", "reason": "queued"}
        assert world.gate.waiting() == {"weather": 1}
        permit.give_back()
        (await patient).give_back()
        assert world.gate.running() == {}
        assert world.clock.timers == 0

    run(scenario())


@pytest.mark.parametrize("handed", [False, True])
def test_who_is_cancelled_leaves_the_queue_and_keeps_no_permit(handed: bool) -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        permit = entered(world, world.opened(target))
        cancelled, next_one = await waits(world, world.opened(target)), await waits(world, world.opened(target))
        await turn()
        if handed:
            permit.give_back()  # It has the permit, and does not know it yet.
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        if not handed:
            permit.give_back()
        (await next_one).give_back()
        assert (world.gate.running(), world.gate.waiting()) == ({}, {})
        assert world.clock.timers == 0

    run(scenario())


@pytest.mark.req("P-30")
def test_places_are_bounded_and_one_caller_has_at_most_half() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        entered(world, world.opened(target))
        waiting = [await waits(world, world.opened(target, by=caller("alice"))) for _ in range(WAITED_FOR // 2)]
        with pytest.raises(RateLimited) as refused:
            world.opened(target, by=caller("alice"))
        assert refused.value.details["reason"] == "queue_full"
        assert refused.value.details["retry_after"] == 1
        waiting += [await waits(world, world.opened(target, by=caller(f"c{n}"))) for n in range(WAITED_FOR // 2)]
        with pytest.raises(RateLimited):
            world.opened(target, by=caller("bob"))
        accepted = [world.opened(target, wait=Wait.NONE, by=caller("alice")) for _ in range(ACCEPTED // 2)]
        with pytest.raises(RateLimited):
            world.opened(target, wait=Wait.NONE, by=caller("alice"))
        world.opened(target, wait=Wait.NONE, by=caller("bob"))
        world.flow.ended(accepted[0].task)
        world.opened(target, wait=Wait.NONE, by=caller("alice"))
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert world.gate.waiting() == {}

    run(scenario())


def test_the_administrator_alone_may_fill_the_queue() -> None:
    async def scenario() -> None:
        world, target, admin = World(), agent(RateLimits(concurrent_requests=1)), caller("admin", admin=True)
        entered(world, world.opened(target, by=admin))
        waiting = [await waits(world, world.opened(target, by=admin)) for _ in range(WAITED_FOR)]
        with pytest.raises(RateLimited):
            world.opened(target, by=admin)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(scenario())


def test_calls_that_wait_for_the_disk_have_their_places_before_they_come() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        entered(world, world.opened(target))
        coming = [world.opened(target, key=f"k{n}", by=caller(f"c{n}")) for n in range(WAITED_FOR)]
        with pytest.raises(RateLimited):
            world.opened(target, by=caller("bob"))
        world.flow.given_up(coming[0].call)
        world.opened(target, by=caller("bob"), key="k")
        with pytest.raises(RateLimited):
            world.opened(target, by=caller("bob"))

    run(scenario())


@pytest.mark.req("P-30")
def test_a_call_that_could_not_begin_in_time_is_refused_at_once() -> None:
    async def scenario() -> None:
        world, target = World(usual_ms=4000), agent(RateLimits(concurrent_requests=2))
        for _ in range(2):
            entered(world, world.opened(target))
        waiting = [await waits(world, world.opened(target)) for _ in range(10)]
        with pytest.raises(RateLimited) as refused:
            world.opened(target, timeout_s=19.9)
        assert refused.value.details["retry_after"] == 20, "ten before it, four seconds each, two at once"
        world.opened(target, timeout_s=20.1)
        world.opened(target, timeout_s=1, priority=Priority.URGENT)
        world.opened(target, timeout_s=1, wait=Wait.NONE)
        world.usual_ms = None
        world.opened(target, timeout_s=1)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    run(scenario())


def test_agents_that_connect_have_no_number_but_their_cards() -> None:
    async def scenario() -> None:
        world = World(per_agent=1)
        for _ in range(3):
            assert world.flow.enter(world.opened(agent(), via=Via.CONNECTED)) is None
        limited = agent(RateLimits(concurrent_requests=1))
        permit = entered(world, world.opened(limited, via=Via.CONNECTED))
        assert permit.to_the_end
        waiting = await waits(world, world.opened(limited, via=Via.CONNECTED))
        permit.give_back()
        await waiting

    run(scenario())


def test_a_call_that_its_agent_has_already_counts_beyond_the_number() -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=1))
        kept = [world.flow.enter(world.opened(target, admit=False), sent=True) for _ in range(2)]
        assert world.gate.running() == {"weather": 2}
        waiting = await waits(world, world.opened(target))
        for each in kept:
            assert isinstance(each, Permit)
            assert not waiting.done()
            each.give_back()
            await turn()
        assert waiting.done()
        assert world.flow.enter(world.opened(agent(uuid="u2"), admit=False), sent=True) is None

    run(scenario())


def test_a_higher_number_lets_those_go_that_wait() -> None:
    async def scenario() -> None:
        world = World()
        entered(world, world.opened(agent(RateLimits(concurrent_requests=1))))
        first = await waits(world, world.opened(agent(RateLimits(concurrent_requests=1))))
        second = await waits(world, world.opened(agent(RateLimits(concurrent_requests=3))))
        await turn()
        assert first.done()
        assert second.done()

    run(scenario())


@given(st.lists(st.sampled_from(["enter", "end", "cancel", "late"]), max_size=60), st.integers(1, 3))
def test_whatever_happens_no_permit_is_lost_or_given_twice(steps: list[str], most: int) -> None:
    async def scenario() -> None:
        world, target = World(), agent(RateLimits(concurrent_requests=most))
        running: list[Permit] = []
        waiting: list[asyncio.Task[Permit]] = []
        for step in steps:
            if step == "enter":
                permit = world.flow.enter(world.opened(target, timeout_s=10))
                if isinstance(permit, Permit):
                    running.append(permit)
                elif permit is not None:
                    waiting.append(asyncio.ensure_future(permit))
                    await asyncio.sleep(0)
            elif step == "end" and running:
                running.pop().give_back()
            elif step == "cancel" and waiting:
                waiting[len(waiting) // 2].cancel()
            elif step == "late":
                world.clock.advance(4)
            if len(steps) % 2:
                await turn()
            running += [each.result() for each in waiting if each.done() and _succeeded(each)]
            waiting = [each for each in waiting if not each.done()]
        await turn()
        running += [each.result() for each in waiting if each.done() and _succeeded(each)]
        waiting = [each for each in waiting if not each.done()]
        assert len(running) <= most
        assert sum(world.gate.running().values()) == len(running)
        assert sum(world.gate.waiting().values()) == len(waiting)
        assert not waiting or len(running) == most
        for each in running:
            each.give_back()
        while waiting:
            (await waiting.pop(0)).give_back()
        assert (world.gate.running(), world.gate.waiting(), world.clock.timers) == ({}, {}, 0)

    run(scenario())


def _succeeded(task: asyncio.Task[Permit]) -> bool:
    return not task.cancelled() and task.exception() is None
