"""How faults are planted: parts of a hub are put in place of the good ones, for the rest of the process.

The only patching in the tests. `planted.py` has the table of what is planted.
"""

import asyncio
import functools
import random
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar
from unittest import mock

from dragoman.backends.sqlite.connection import Connect, connect
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.config import Settings
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store
from dragoman.server import app

LATE_S: Final = (0.05, 0.1)

T = TypeVar("T")
Alter = Callable[[SqliteStore], None]
Plant = Callable[[int], None]


def put_in_place(owner: object, name: str, part: object) -> None:
    """Put a part in place of another for the rest of this process."""
    mock.patch.object(owner, name, part).start()


def take_out() -> None:
    """Have every good part back in its place."""
    mock.patch.stopall()


def altered(text: str, good: str, faulty: str) -> str:
    """A text with a fault in it. Raises LookupError where the good part is not there: nothing would be planted."""
    if good not in text:
        raise LookupError(f"{good!r} does not stand in: {text}")
    return text.replace(good, faulty)


def serve_on(alter: Alter | None = None, connect: Connect = connect) -> None:
    """Have the hub served on a store that was altered."""

    def make(settings: Settings, clock: Clock, bus: Bus) -> Store:
        store = SqliteStore(
            settings.data / app.DATABASE,
            clock=clock,
            bus=bus,
            hold_s=settings.calls.hold_ms / 1000,
            wal_mib=settings.sqlite.wal_mib,
            readers=settings.sqlite.readers,
            connect=connect,
        )
        if alter is not None:
            alter(store)
        return store

    put_in_place(app, "serve", functools.partial(app.serve, make_store=make))


class Later:
    """Work that nobody waits for, begun a little late."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def begin(self, work: Callable[[], Awaitable[T]]) -> "asyncio.Task[T]":
        """Begin it late."""

        async def late() -> T:
            await asyncio.sleep(random.uniform(*LATE_S))
            return await work()

        task = asyncio.get_running_loop().create_task(late())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
