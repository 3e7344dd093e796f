"""An agent whose handlers are known, on a link that does as a test says."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from dragoman import Agent, Context
from dragoman.errors import HubUnreachable
from dragoman.sdk.connect.unacked import HELD_EVENTS
from tests.support.run import run
from tests.support.scripted_link import Scripted, connected

Told = Callable[[Scripted], Coroutine[Any, Any, None]]
AWAY: Final = HubUnreachable("No hub answers at http://127.0.0.1:1")


class Worker:
    """An agent, and what its handlers did."""

    def __init__(self, concurrency: int = 10) -> None:
        self.agent = Agent("Test", concurrency=concurrency)
        self.ran: list[str] = []
        self.cancelled: list[str] = []
        self.go_on = asyncio.Event()
        agent = self.agent

        @agent.skill
        async def echo(ctx: Context) -> dict[str, str]:
            self.ran.append(ctx.call_id)
            return {"was": ctx.call_id}

        @agent.skill
        async def wait(ctx: Context) -> str:
            self.ran.append(ctx.call_id)
            await ctx.progress(0.5)
            try:
                await self.go_on.wait()
            except asyncio.CancelledError:
                self.cancelled.append(ctx.call_id)
                raise
            return "done"

        @agent.skill
        async def talk(ctx: Context) -> None:
            for number in range(3 * HELD_EVENTS):
                await ctx.stream(f"{number} ")
                self.ran.append(str(number))

        @agent.skill
        async def ask(ctx: Context) -> str:
            self.ran.append(ctx.call_id)
            first = await ctx.ask("first?")
            second = await ctx.ask("second?")
            return f"{first}, {second}"

        assert [echo, wait, talk, ask]


def played(worker: Worker, told: Told) -> None:
    async def play() -> None:
        with connected(worker.agent) as scripted:
            await scripted.until(scripted.connection.opened.is_set)
            await told(scripted)

    run(play())
