"""Tests of agents and callers: a whole hub in process, fake agents, recordings, and a check of one's own agent.

    async with testing.hub() as hub:
        await hub.add(agent)
        assert (await hub.client().call(agent.id, "web_search", {"query": "tides"}))["results"]
        await hub.advance(3600)                       # an hour later

`hub` and `check` need `dragoman[hub]`.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.serve.serve import require_server
from dragoman.sdk.testing.checking import Report, check
from dragoman.sdk.testing.fakes import FakeAgent
from dragoman.sdk.testing.recording import NotRecorded, record, replay

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.testing.hub_in_process import HubInProcess

__all__ = ["FakeAgent", "NotRecorded", "Report", "ThreadedHub", "check", "hub", "hub_in_thread", "record", "replay"]

START_S: Final = 30.0
Value = TypeVar("Value")


@asynccontextmanager
async def hub() -> "AsyncGenerator[HubInProcess]":
    """A whole hub in the running loop: real sockets, SQLite in a folder of its own, a clock that can be moved.

    Anybody may call it (auth `none`). Raises MissingExtra without the server.
    """
    require_server("testing.hub()")
    # The server and its packages are an extra.
    from dragoman.sdk.testing.hub_in_process import hub_in_process

    async with hub_in_process() as running:
        yield running


@contextmanager
def hub_in_thread() -> "Generator[ThreadedHub]":
    """The same in a thread of its own, for tests that are no coroutines. The fixture `dragoman_hub` is this."""
    require_server("testing.hub_in_thread()")
    ready, over = threading.Event(), asyncio.Event()
    made: list[ThreadedHub] = []
    failed: list[BaseException] = []

    async def live() -> None:
        async with hub() as running:
            made.append(ThreadedHub(running, asyncio.get_running_loop()))
            ready.set()
            await over.wait()

    def work() -> None:
        try:
            asyncio.run(live())
        except BaseException as error:  # noqa: BLE001 - told to the test's own thread
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=work, name="dragoman hub", daemon=True)
    thread.start()
    ready.wait(START_S)
    try:
        if made:
            yield made[0]
    finally:
        if made:
            made[0].loop.call_soon_threadsafe(over.set)
        thread.join(START_S)
    if failed:
        raise failed[0]


class ThreadedHub:
    """A hub that runs in another thread; its agents' handlers run there, too."""

    def __init__(self, running: "HubInProcess", loop: asyncio.AbstractEventLoop) -> None:
        self._running = running
        self.loop = loop
        self.url = running.url

    def client(self) -> A2AClient:
        """A client of this hub; `.sync` for code that cannot await."""
        return A2AClient(self.url)

    def add(self, agent: "Agent") -> str:
        """Connect an agent; its id."""
        return self._there(self._running.add(agent))

    def advance(self, seconds: float) -> None:
        """Let so many seconds pass for the hub and its agents."""
        self._there(self._running.advance(seconds))

    def _there(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(START_S)
