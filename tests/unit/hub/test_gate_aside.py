"""A call between two tries: others have its permit meanwhile, it gets one again in turn, and none is lost over it."""

import asyncio

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.hub.flow.queue import WAITED_FOR, Permit
from dragoman.model.agent import RateLimits
from dragoman.model.call import OpenedCall
from dragoman.model.errors import AgentTimeout, CircuitOpen
from dragoman.model.operations import Priority
from dragoman.ports.attempts import AttemptOutcome
from tests.support.run import run
from tests.unit.hub.flow_parts import World, agent, caller
from tests.unit.hub.test_gate import entered, turn, waits

ONE = agent(RateLimits(concurrent_requests=1))


async def pauses(world: World, opened: OpenedCall, seconds: float = 4.0) -> asyncio.Task[None]:
    """A call that waits for its next try."""
    paused = asyncio.ensure_future(world.breakers.pause(opened.call, seconds, aside=True))
    await turn()
    return paused


@pytest.mark.req("P-30", "P-32")
def test_while_a_call_waits_for_its_next_try_another_has_its_permit() -> None:
    async def scenario() -> None:
        world = World()
        first = world.opened(ONE)
        permit = entered(world, first)
        second = await waits(world, world.opened(ONE))
        paused = await pauses(world, first)
        assert second.done()
        assert world.gate.running() == {"weather": 1}
        world.clock.advance(4.1)
        await turn()
        assert not paused.done(), "the other is still there"
        assert world.gate.waiting() == {"weather": 1}
        (await second).give_back()
        await paused
        assert world.gate.running() == {"weather": 1}
        permit.give_back()
        assert (world.gate.running(), world.gate.waiting(), world.clock.timers) == ({}, {}, 0)

    run(scenario())


def test_its_next_try_is_in_turn_by_its_own_rank() -> None:
    async def scenario() -> None:
        world = World()
        first = world.opened(ONE)
        permit = entered(world, first)
        world.clock.advance(1)
        running = await waits(world, world.opened(ONE))
        paused = await pauses(world, first)
        urgent = await waits(world, world.opened(ONE, priority=Priority.URGENT))
        later = await waits(world, world.opened(ONE))
        world.clock.advance(4.1)
        await turn()
        (await running).give_back()
        await turn()
        assert (urgent.done(), paused.done(), later.done()) == (True, False, False)
        (await urgent).give_back()
        await turn()
        assert (paused.done(), later.done()) == (True, False)
        permit.give_back()
        (await later).give_back()
        assert world.gate.running() == {}

    run(scenario())


@pytest.mark.parametrize("asleep", [True, False], ids=["asleep", "in the queue"])
@pytest.mark.parametrize("how", ["late", "cancelled", "left alone"])
def test_however_its_wait_ends_it_has_its_permit_and_no_place(how: str, asleep: bool) -> None:
    async def scenario() -> None:
        world = World()
        first = world.opened(ONE, timeout_s=10)
        permit = entered(world, first)
        other = await waits(world, world.opened(ONE, timeout_s=100))
        paused = await pauses(world, first)
        if not asleep:
            world.clock.advance(4.1)
            await turn()
        if how == "cancelled":
            paused.cancel()
        elif how == "left alone":
            for _ in range(5):
                world.breakers.ended(first.call, AttemptOutcome.BROKEN, 0.1, will_retry=False)
        else:
            world.clock.advance(11)
        await turn()
        if how == "late" and asleep:
            world.clock.advance(11)  # It came to the queue only now.
            await turn()
        assert paused.done()
        if how == "cancelled":
            assert paused.cancelled()
        elif how == "late":
            assert isinstance(paused.exception(), AgentTimeout)
        else:
            with pytest.raises(CircuitOpen):
                world.breakers.begin(first.call)
        assert world.gate.running() == {"weather": 2}, "until it is given back, it counts"
        permit.give_back()
        (await other).give_back()
        assert (world.gate.running(), world.gate.waiting()) == ({}, {})
        assert permit.idle

    run(scenario())


@pytest.mark.req("P-30")
def test_calls_between_two_tries_have_places_and_so_a_bound() -> None:
    async def scenario() -> None:
        world, by, most = World(), caller("alice"), WAITED_FOR // 2
        permits: list[Permit] = []
        paused: list[asyncio.Task[None]] = []
        for _ in range(most + 1):
            opened = world.opened(ONE, by=by)
            permits.append(entered(world, opened))
            paused.append(asyncio.ensure_future(world.gate.aside(opened.call, 4.0)))
            await asyncio.sleep(0)
        assert world.gate.running() == {"weather": 1}, "for the last there was no place: it keeps its permit"
        assert len(permits[0].waited_for) == most
        for each in paused:
            each.cancel()
        await asyncio.gather(*paused, return_exceptions=True)
        assert world.gate.running() == {"weather": most + 1}
        for permit in permits:
            permit.give_back()
        assert permits[0].idle

    run(scenario())


def test_a_further_message_of_a_task_gives_nobodys_permit_away() -> None:
    async def scenario() -> None:
        world = World()
        first = world.opened(ONE)
        entered(world, first)
        asked = msgspec.structs.replace(first.call.operation, continues=first.task.id)
        further = OpenedCall(call=msgspec.structs.replace(first.call, operation=asked), task=first.task)
        paused = await pauses(world, further)
        other = await waits(world, world.opened(ONE))
        assert not other.done()
        world.clock.advance(4.1)
        await paused
        assert world.gate.running() == {"weather": 1}
        other.cancel()

    run(scenario())


class Crowd:
    """Calls of one agent that come, fail, wait for their next try, and end."""

    def __init__(self, most: int) -> None:
        self.world = World()
        self.target = agent(RateLimits(concurrent_requests=most))
        self.waiting: list[tuple[OpenedCall, asyncio.Task[Permit]]] = []
        self.running: list[tuple[OpenedCall, Permit]] = []
        self.paused: list[tuple[OpenedCall, Permit, asyncio.Task[None]]] = []
        self.over = 0  # those whose wait ended while others had their permit

    async def go(self, step: str) -> None:
        """Let one thing happen."""
        if step == "enter":
            opened = self.world.opened(self.target, timeout_s=1e6)
            permit = self.world.flow.enter(opened)
            if isinstance(permit, Permit):
                self.running.append((opened, permit))
            elif permit is not None:
                self.waiting.append((opened, asyncio.ensure_future(permit)))
        elif step == "end" and self.running:
            self.running.pop()[1].give_back()
        elif step == "aside" and self.running:
            opened, permit = self.running.pop(0)
            self.paused.append((opened, permit, await pauses(self.world, opened)))
        elif step == "cancel" and self.paused:
            self.over += 1
            self.paused[0][2].cancel()
        elif step == "advance":
            self.world.clock.advance(3)
        await turn()
        self.running += [(opened, each.result()) for opened, each in self.waiting if each.done()]
        self.running += [(opened, permit) for opened, permit, each in self.paused if each.done()]
        self.waiting = [entry for entry in self.waiting if not entry[1].done()]
        self.paused = [entry for entry in self.paused if not entry[2].done()]


@given(st.lists(st.sampled_from(["enter", "end", "aside", "cancel", "advance"]), max_size=60), st.integers(1, 3))
def test_whatever_happens_between_two_tries_no_permit_is_lost_or_given_twice(steps: list[str], most: int) -> None:
    async def scenario() -> None:
        crowd = Crowd(most)
        gate, clock = crowd.world.gate, crowd.world.clock
        for step in steps:
            await crowd.go(step)
            assert len(crowd.running) <= most + crowd.over
            assert sum(gate.running().values()) == len(crowd.running)
        while crowd.waiting or crowd.paused or crowd.running:
            await crowd.go("end" if crowd.running else "advance")
        clock.advance(5)  # A sleep that was broken off leaves its timer to pass by itself.
        assert (gate.running(), gate.waiting(), clock.timers) == ({}, {}, 0)

    run(scenario())
