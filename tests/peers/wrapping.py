"""How programs of this folder have their agents at the hub: connected, until standard input closes."""

import argparse
import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator

from dragoman import Agent
from dragoman.ports.clock import SystemClock
from dragoman.sdk.work.work import Work


async def spoken(text: str) -> AsyncIterator[str]:
    """A text in the pieces that a model would stream; "slowly" in it waits after the first until the test says `go`."""
    first, *others = text.split(" ")
    yield first
    if "slowly" in others:
        try:
            await asyncio.to_thread(heard, "go")
        except asyncio.CancelledError:
            print("left", flush=True)
            raise
    for word in others:
        yield f" {word}"


def reply(said: list[str]) -> str:
    """What the models here answer to what users said so far: the last of it, and how much there was."""
    return f"you said {said[-1]} as number {len(said)}"


async def forever() -> None:
    """Wait to be cancelled, and tell the test of it."""
    print("waiting", flush=True)
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        raise


def connect(*agents: Agent) -> None:
    """Connect them all, say `ready`, and work; or try the first of them without a hub."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port")
    parser.add_argument("--with-parent", action="store_true")
    parser.add_argument("--remember", action="store_true", help="two turns, and nobody but the agent to remember them")
    parser.add_argument("--leave", action="store_true", help="a call that is cancelled while its caller is told a word")
    asked = parser.parse_args()
    if asked.remember:
        asyncio.run(_remember(agents[0]))
    elif asked.leave:
        asyncio.run(_leave(agents[0]))
    else:
        asyncio.run(_connected(agents))


async def _remember(agent: Agent) -> None:
    for _ in range(2):
        print((await agent.test.call(message="hello")).text, flush=True)


async def _leave(agent: Agent) -> None:
    telling = asyncio.Event()

    async def tell(event: str, _: object) -> None:
        if event == "chunk":
            telling.set()
            await asyncio.Event().wait()

    call = {"call_id": "1", "skill": "echo", "input": {"text": "slowly"}}
    work = Work(agent, call, emit=tell, clock=SystemClock(), client=None)
    async with asyncio.TaskGroup() as group:
        group.create_task(work.run())
        await telling.wait()
        work.cancel("the caller left")
    os._exit(0)  # A thread waits for a word that nobody will say.


async def _connected(agents: tuple[Agent, ...]) -> None:
    threading.Thread(target=_listen, daemon=True).start()
    for agent in agents:
        await agent.connect()
    print("ready", flush=True)
    await asyncio.Event().wait()


def heard(line: str) -> None:
    """Wait in a thread until the test says this."""
    while _LINES.get() != line:
        pass


def _listen() -> None:
    """Hear what the test says; leave when it does."""
    for line in sys.stdin:
        _LINES.put(line.strip())
    os._exit(0)


_LINES: queue.Queue[str] = queue.Queue()
