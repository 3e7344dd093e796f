"""When agents are checked, and what is made of their silence: on a clock that the test moves."""

import asyncio
from collections.abc import Callable, Coroutine
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.figures import Figures
from dragoman.hub.health import Health
from dragoman.model.agent import Agent, AgentStatus, Endpoint, Via
from dragoman.model.call import AdmittedCall
from dragoman.model.ended import ended_call
from dragoman.model.operations import SendTask
from dragoman.ports.store import Registration
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent
from tests.support.run import run
from tests.unit.model.test_lifecycle import TASK


class World:
    """Checks of agents that are there or not, as the test says."""

    def __init__(self, folder: Path, per_s: float) -> None:
        self.clock = ManualClock()
        self.store = SqliteStore(folder / "hub.db", clock=self.clock, bus=LocalBus(), inline=True)
        self.asked: list[tuple[float, str]] = []
        self.gone: set[str] = set()
        self.changed: list[str] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.figures = Figures(store=self.store, clock=self.clock, spawn=self.spawn, changed=lambda _: None)
        self.health = Health(
            store=self.store,
            changed=self.changed.append,
            figures=self.figures,
            problem=self._problem,
            clock=self.clock,
            spawn=self.spawn,
            every_s=30,
            longest_s=300,
            per_s=per_s,
        )

    async def add(self, name: str, via: Via = Via.HTTP, url: str | None = "http://agent.test/", **more: Any) -> Agent:
        agent = new_agent(self.clock, name, **more)
        card = msgspec.structs.replace(agent.card, endpoints=(Endpoint(dialect="platform", via=via, url=url),))
        agent = msgspec.structs.replace(agent, card=card)
        await self.store.register(Registration(agent=agent))
        return agent

    async def status(self, name: str) -> AgentStatus:
        found = await self.store.find_agent("acme", name)
        assert found is not None
        return found.status

    async def pass_time(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1)
            await self.settle()

    async def settle(self) -> None:
        for _ in range(30):
            await asyncio.sleep(0)

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _problem(self, agent: Agent, _url: str) -> str | None:
        self.asked.append((self.clock.monotonic(), agent.id))
        return "not reachable" if agent.id in self.gone else None


def checked(folder: Path, scenario: Callable[[World], Coroutine[Any, Any, None]], per_s: float = 50) -> None:
    async def whole() -> None:
        world = World(folder, per_s)
        await world.store.start()
        running: asyncio.Task[None] | None = None
        try:
            running = world.spawn(world.health.run())
            await scenario(world)
        finally:
            if running is not None:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)
            await world.store.close()

    run(whole())


def attempt(agent: Agent) -> AdmittedCall:
    return AdmittedCall(
        caller=None,  # pyright: ignore[reportArgumentType] - nobody looks at it here
        operation=SendTask(message=TASK.asked.message),
        agent=agent,
        endpoint=agent.card.endpoints[0],
        skill=None,
        message=TASK.asked.message,
        task=TASK,
        timeout_s=1,
        deadline=1,
    )


@pytest.mark.req("P-10")
def test_two_checks_without_an_answer_mark_an_agent_and_one_answer_takes_it_back(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.add("one")
        await world.pass_time(90)
        assert len(world.asked) in (2, 3)
        world.gone.add("one")
        await world.pass_time(35)
        assert await world.status("one") is AgentStatus.ACTIVE  # Once is nothing.
        await world.pass_time(35)
        assert await world.status("one") is AgentStatus.UNREACHABLE
        assert world.changed == ["one"]
        world.gone.clear()
        await world.pass_time(35)
        assert await world.status("one") is AgentStatus.ACTIVE
        assert world.changed == ["one", "one"]

    checked(tmp_path, scenario)


@pytest.mark.req("P-10")
def test_an_agent_that_stays_away_is_asked_ever_more_rarely_up_to_five_minutes(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.gone.add("one")
        await world.add("one")
        await world.pass_time(3000)
        times = [at for at, _ in world.asked]
        waits = [round(later - earlier) for earlier, later in pairwise(times)]
        assert waits[0] in range(24, 37)
        assert all(earlier <= later + 31 for earlier, later in pairwise(waits)), waits
        assert waits[2] < waits[3] < waits[4]
        assert all(240 <= wait <= 330 for wait in waits[-4:]), waits

    checked(tmp_path, scenario)


def test_only_agents_with_a_url_that_may_be_called_are_asked(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.add("asked")
        await world.add("connects", via=Via.CONNECTED, url=None)
        await world.add("mailbox", url=None)
        for status in (AgentStatus.PAUSED, AgentStatus.QUARANTINED, AgentStatus.REMOVED):
            await world.add(status.value, status=status)
        await world.pass_time(100)
        assert {name for _, name in world.asked} == {"asked"}

    checked(tmp_path, scenario)


def test_an_agent_that_was_heard_of_is_not_asked(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.add("busy")
        for _ in range(20):
            ended = msgspec.structs.replace(TASK, tenant="acme", agent_id="busy", state="completed")
            world.figures.ended([ended_call(ended)])
            await world.pass_time(10)
        assert world.asked == []

    checked(tmp_path, scenario)


@pytest.mark.req("P-10")
def test_a_call_that_cannot_connect_brings_the_check_forward(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.gone.add("one")
        agent = await world.add("one")
        begun = world.clock.monotonic()
        for _ in range(50):
            world.health.unreached(attempt(agent))
            await world.pass_time(1)
            if await world.status("one") is AgentStatus.UNREACHABLE:
                break
        assert world.clock.monotonic() - begun < 10
        assert len(world.asked) == 2  # Not one for each call.

    checked(tmp_path, scenario)


def test_with_many_agents_the_interval_grows_instead_of_the_load(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        for number in range(100):
            await world.add(f"agent-{number:03}")
        await world.pass_time(150)
        in_a_minute = [name for at, name in world.asked if 60 <= at < 120]
        assert 50 <= len(in_a_minute) <= 66
        assert len(set(in_a_minute)) == len(in_a_minute)

    checked(tmp_path, scenario, per_s=1)


def test_an_owner_who_pauses_an_agent_meanwhile_is_not_overruled(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        world.gone.add("one")
        await world.add("one")
        await world.pass_time(35)
        await world.store.change_agent("acme", "one", AgentStatus.PAUSED, open_=None, private=None)
        await world.pass_time(100)
        assert await world.status("one") is AgentStatus.PAUSED

    checked(tmp_path, scenario)
