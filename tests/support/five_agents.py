"""Five agents of different speed and failure rate, called by skill in virtual time: thousands of calls, one seed.

Router, figures and store are the hub's own; only the agents, their queues and the clock are played.
"""

import asyncio
import heapq
import itertools
import random
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.figures import Figures
from dragoman.hub.routing import Choice, Router
from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.ended import ended_call
from dragoman.model.errors import AgentError
from dragoman.model.operations import SendTask
from dragoman.model.route import explained
from dragoman.model.states import TaskState
from dragoman.ports.store import Registration
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent
from tests.unit.model.test_lifecycle import TASK

SKILL: Final = "translate"
CALLER: Final = Caller(tenant="acme", id="alice", scopes=frozenset({"a2a:call"}))


class Played(msgspec.Struct):
    """An agent: how long it takes, how often it fails, how many calls it has at once; and who has it now."""

    name: str
    ms: int
    fails: float
    at_once: int = 100
    running: int = 0
    waiting: int = 0


FIVE: Final = (
    Played("a-broken", 20, 0.5),
    Played("b-flaky", 40, 0.15),
    Played("c-slow", 900, 0.01),
    Played("d-good", 150, 0.01),
    Played("e-fair", 60, 0.06),
)


class World:
    """A router over played agents."""

    def __init__(self, folder: Path, seed: int, agents: tuple[Played, ...] = FIVE) -> None:
        self.chance = random.Random(seed)
        self.clock = ManualClock()
        self.agents = {each.name: msgspec.structs.replace(each) for each in agents}
        self.store = SqliteStore(folder / "hub.db", clock=self.clock, bus=LocalBus(), inline=True)
        self.written: list[asyncio.Task[None]] = []
        self.figures = Figures(store=self.store, clock=self.clock, spawn=self._spawn, changed=lambda _: None)
        self.router = Router(
            store=self.store,
            figures=self.figures,
            clock=self.clock,
            load=self._load,
            is_open=lambda _: False,
            chance=self.chance.random,
        )
        self.choices: list[Choice] = []
        self.succeeded = 0
        self.ended = 0
        self.took_ms: list[int] = []

    async def start(self) -> None:
        await self.store.start()
        for name in self.agents:
            await self.store.register(Registration(agent=new_agent(self.clock, name, skills=[SKILL])))

    async def calls(self, count: int, *, per_s: float) -> float:
        """Make so many calls, at random times; the share that succeeded of those that ended meanwhile."""
        succeeded, ended = self.succeeded, self.ended
        numbers = itertools.count()
        due: list[tuple[float, int, str]] = []  # when a call ends, and at which agent
        for _ in range(count):
            until = self.clock.monotonic() + self.chance.expovariate(per_s)
            while due and due[0][0] <= until:
                at, _, name = heapq.heappop(due)
                self._end(at, name)
                self._begin_waiting(due, numbers)
            self.clock.advance(max(until - self.clock.monotonic(), 0))
            await self._settled()
            choice = await self.router.choose(CALLER, SKILL, SendTask(message=TASK.asked.message))
            self.choices.append(choice)
            agent = self.agents[choice.route.chosen]
            agent.waiting += 1
            self._begin_waiting(due, numbers)
        return (self.succeeded - succeeded) / max(self.ended - ended, 1)

    def unexplained(self) -> list[Choice]:
        """Choices whose figures or reason are missing."""
        return [
            each
            for each in self.choices
            if each.route.chosen not in {one.agent for one in each.route.candidates} or not explained(each.route)
        ]

    def shares(self, last: int) -> dict[str, float]:
        """Who had which share of the last calls."""
        chosen = [each.route.chosen for each in self.choices[-last:]]
        return {name: chosen.count(name) / len(chosen) for name in self.agents}

    def _begin_waiting(self, due: list[tuple[float, int, str]], numbers: Iterator[int]) -> None:
        for agent in self.agents.values():
            while agent.waiting and agent.running < agent.at_once:
                agent.waiting -= 1
                agent.running += 1
                took_s = agent.ms / 1000 * self.chance.uniform(0.7, 1.3)
                heapq.heappush(due, (self.clock.monotonic() + took_s, next(numbers), agent.name))

    def _end(self, at: float, name: str) -> None:
        self.clock.advance(max(at - self.clock.monotonic(), 0))
        agent = self.agents[name]
        agent.running -= 1
        failed = self.chance.random() < agent.fails
        self.ended += 1
        self.succeeded += not failed
        self.took_ms.append(agent.ms)
        now = self.clock.now()
        task = msgspec.structs.replace(
            TASK,
            tenant="acme",
            agent_id=name,
            skill=SKILL,
            state=TaskState.FAILED if failed else TaskState.COMPLETED,
            failure=AgentError("It broke.").failure() if failed else None,
            created_at=now - timedelta(milliseconds=agent.ms),
            started_at=now - timedelta(milliseconds=agent.ms),
            ended_at=now,
        )
        self.figures.ended([ended_call(task)])

    def _load(self, agent: Agent) -> tuple[int, int]:
        played = self.agents[agent.id]
        return played.waiting, played.at_once

    def _spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.written.append(task)
        return task

    async def _settled(self) -> None:
        for task in self.written:
            await task
        self.written.clear()
