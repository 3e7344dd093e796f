"""One call carried out by its agent, and everything that was told of it: as a connection would, without one."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.work.work import Work

WAIT_S = 5.0


def call_of(skill: str | None, given: JsonObject | None = None, **more: Any) -> JsonObject:
    """A call as the hub sends it."""
    return {
        "call_id": "a2a_call_1",
        "caller_agent_id": "agt_caller",
        "target_agent_id": "agt_target",
        "skill": skill,
        "input": given if given is not None or "message" in more else {},
        "options": {"timeout_ms": 30_000, "priority": "high", "stream": True},
        "context": {"conversation_id": "conv_1", "call_chain": ["agt_caller"], "metadata": {"user_id": "u"}},
        **more,
    }


class Told:
    """A call that is carried out, and the events that were told of it."""

    def __init__(self, agent: Agent, call: JsonObject, clock: Clock) -> None:
        self.events: list[tuple[str, JsonObject]] = []
        self.work = Work(agent, call, emit=self._emit, clock=clock, client=None)
        self._news = asyncio.Event()

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]

    @property
    def last(self) -> tuple[str, JsonObject]:
        return self.events[-1]

    def all(self, name: str) -> list[JsonObject]:
        return [data for event, data in self.events if event == name]

    async def until(self, name: str, count: int = 1) -> JsonObject:
        """Wait until an event of that name was told so often; its data."""
        async with asyncio.timeout(WAIT_S):
            while len(self.all(name)) < count:
                self._news.clear()
                await self._news.wait()
        return self.all(name)[count - 1]

    async def _emit(self, event: str, data: JsonObject) -> None:
        self.events.append((event, data))
        self._news.set()


@asynccontextmanager
async def working(agent: Agent, call: JsonObject, clock: Clock | None = None) -> AsyncGenerator[Told]:
    """Carry a call out beside the test, and wait for its end."""
    told = Told(agent, call, clock or SystemClock())
    async with asyncio.timeout(WAIT_S), asyncio.TaskGroup() as group:
        group.create_task(told.work.run())
        yield told


async def worked(agent: Agent, call: JsonObject, clock: Clock | None = None) -> Told:
    """A call that was carried out to its end."""
    async with working(agent, call, clock) as told:
        pass
    return told
