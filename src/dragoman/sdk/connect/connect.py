"""Connecting out: `agent.start()` until a signal, `await agent.connect()` in the loop that runs, `agent.stop()`.

An agent is connected at most once at a time. What it does while it is, is in `connection.py`.
"""

import asyncio
import contextlib
import logging
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, final

from dragoman.model.errors import DragomanError
from dragoman.ports.clock import SystemClock
from dragoman.sdk.agent.agent import hidden_of
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.connect.connection import Connection
from dragoman.sdk.connect.http_link import HttpLink
from dragoman.sdk.connect.signals import exit_at_once, stopping_by

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent

_log = logging.getLogger("dragoman.agent")


def start(agent: "Agent") -> None:
    """Connect and work until SIGINT, SIGTERM or `stop`; then finish what runs and return.

    Waits for a hub that is away. Raises the error of one that refuses: the token, the id, or the card.
    """
    if _loop_runs():
        raise RuntimeError("agent.start() blocks. Inside a running loop use: await agent.connect()")
    with asyncio.Runner() as runner:
        runner.run(_work_until_stopped(agent))


async def connect(agent: "Agent") -> None:
    """Connect, and work in the running loop until `stop`; returns when the hub has taken the agent.

    Waits for a hub that is away. Raises the error of one that refuses: the token, the id, or the card.
    """
    running = _begin(agent)
    try:
        await running.opened()
    except asyncio.CancelledError:
        running.stop()
        raise
    running.note_failure()


def stop(agent: "Agent") -> "Stopping":
    """Take no new calls, finish what runs within 30 s, leave; from any thread. Await it to see the end of that."""
    running = hidden_of(agent).connection
    if isinstance(running, Running):
        running.stop()
        return Stopping(running)
    return Stopping(None)


@final
class Stopping:
    """An agent that is being stopped. Awaiting it waits for the end, and raises what ended it before."""

    def __init__(self, running: "Running | None") -> None:
        self._running = running

    def __await__(self) -> Generator[Any, None, None]:
        return self._waited().__await__()

    async def _waited(self) -> None:
        if self._running is not None:
            await self._running.ended()


@final
class Running:
    """An agent that is connected, and the loop in which it is."""

    def __init__(self, agent: "Agent") -> None:
        clock = SystemClock()
        http = HubHttp(agent.hub, agent.api_key, clock=clock)
        acting = HubHttp(agent.hub, agent.api_key, clock=clock)
        self.url = http.url
        self.connection = Connection(agent, HttpLink(http, acting), clock=clock, client=A2AClient(http=acting))
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self.connection.run(), name=f"dragoman {agent.id}")

    @property
    def over(self) -> bool:
        """Whether it works no more."""
        return self._task.done() or self._loop.is_closed()

    def note_failure(self) -> None:
        """Have it said on the log what ends it: perhaps nobody awaits it."""
        self._task.add_done_callback(_note_failure)

    def stop(self) -> None:
        """Ask it to stop; from any thread."""
        with contextlib.suppress(RuntimeError):  # of a loop that has been closed meanwhile
            self._loop.call_soon_threadsafe(self.connection.stop)

    async def opened(self) -> None:
        """Wait until the hub has taken the agent; raises what ended it before."""
        waiting = self._loop.create_task(self.connection.opened.wait())
        try:
            await asyncio.wait({waiting, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
        if self._task.done():
            self._task.result()

    async def ended(self) -> None:
        """Wait until it works no more; raises what ended it."""
        if asyncio.get_running_loop() is self._loop:
            await asyncio.shield(self._task)
        elif not self.over:
            # Asked from another loop: wait there, have it watched here.
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self.ended(), self._loop))


async def _work_until_stopped(agent: "Agent") -> None:
    running = _begin(agent)
    with stopping_by(running.stop):
        try:
            await running.opened()
            if not running.over:
                sys.stderr.write(f'{agent.id} is connected to {running.url} as "{agent.name}"\n')
                sys.stderr.flush()
            await running.ended()
        finally:
            if running.connection.stuck:
                # Threads of handlers that do not look whether they were cancelled would be waited for.
                exit_at_once(0)


def _begin(agent: "Agent") -> Running:
    hidden = hidden_of(agent)
    before = hidden.connection
    if isinstance(before, Running) and not before.over:
        raise RuntimeError(f"{agent.id} is connected already. Stop it first: agent.stop()")
    running = hidden.connection = Running(agent)
    return running


def _note_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        if isinstance(error, DragomanError):
            _log.error("The agent is no longer connected: %s", error)
        else:
            _log.error("The agent is no longer connected.", exc_info=error)


def _loop_runs() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
