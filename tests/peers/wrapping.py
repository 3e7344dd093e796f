"""How programs of this folder have their agents at the hub: connected, until standard input closes."""

import argparse
import asyncio
import os
import queue
import sys
import threading
from collections.abc import AsyncIterator

from dragoman import Agent


async def spoken(text: str) -> AsyncIterator[str]:
    """A text in the pieces that a model would stream; "slowly" in it waits after the first until the test says `go`."""
    first, *others = text.split(" ")
    yield first
    if "slowly" in others:
        await asyncio.to_thread(heard, "go")
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
    """Connect them all, say `ready`, and work."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port")
    parser.add_argument("--with-parent", action="store_true")
    parser.parse_args()
    asyncio.run(_connected(agents))


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
