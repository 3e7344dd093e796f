"""The bus of one process: whoever publishes and whoever listens share a loop, nothing leaves it.

Not safe across threads; the store publishes from the loop. A subscriber that falls 256 messages behind loses them all
and is told LOST once; a listener is called at once and bounds for itself what it keeps. So nobody holds memory without
bound or slows a publisher.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final, final

from dragoman.ports.bus import Grown, Hear, Lost, Said

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

BUFFER: Final = 256


@final
class LocalBus:
    """Wake-ups within one process."""

    __slots__ = ("_by_prefix", "_by_topic", "_closed", "lost")

    def __init__(self) -> None:
        self._by_topic: dict[str, list[_Listener]] = {}
        self._by_prefix: dict[str, list[_Listener]] = {}
        self._closed = False
        self.lost = 0  # times a subscriber fell behind

    def publish(self, topic: str, data: bytes | Grown) -> None:
        """Tell whoever listens now; nobody listening costs one lookup."""
        listeners = self._by_topic.get(topic)
        if listeners is None and not self._by_prefix:
            return
        said = Said(topic=topic, grown=data) if isinstance(data, Grown) else Said(topic=topic, data=data)
        for listener in tuple(listeners or ()):
            listener.hear(said)
        for prefix, others in tuple(self._by_prefix.items()):
            if topic.startswith(prefix):
                for listener in tuple(others):
                    listener.hear(said)

    def wants(self, topic: str) -> bool:
        """Whether somebody listens to the topic, so that a message nobody hears need not be made."""
        return topic in self._by_topic or (bool(self._by_prefix) and any(map(topic.startswith, self._by_prefix)))

    def listen(self, topic: str, hear: Hear) -> Callable[[], None]:
        """Have `hear` called for every message of a topic, or of a prefix, until the function returned is called."""
        listener = _Hearing(hear)
        table, name = (self._by_prefix, topic[:-1]) if topic.endswith("*") else (self._by_topic, topic)
        table.setdefault(name, []).append(listener)
        hear(Lost.LOST)
        return partial(self._leave, table, name, listener)

    def subscribe(self, pattern: str) -> "AbstractAsyncContextManager[AsyncIterator[Said | Lost]]":
        """Listen to a topic, or to all that begin with `prefix.*`; the first item is LOST."""
        if pattern.endswith("*"):
            return self._listen(self._by_prefix, pattern[:-1])
        return self._listen(self._by_topic, pattern)

    async def close(self) -> None:
        """End every subscription."""
        self._closed = True
        for listeners in (*self._by_topic.values(), *self._by_prefix.values()):
            for listener in listeners:
                listener.close()

    @asynccontextmanager
    async def _listen(
        self, table: "dict[str, list[_Listener]]", name: str
    ) -> AsyncGenerator[AsyncIterator[Said | Lost]]:
        listener = _Queue(self._fell_behind)
        table.setdefault(name, []).append(listener)
        if self._closed:
            listener.close()
        try:
            yield listener
        finally:
            self._leave(table, name, listener)

    def _fell_behind(self) -> None:
        self.lost += 1

    def _leave(self, table: "dict[str, list[_Listener]]", name: str, listener: "_Listener") -> None:
        listeners = table.get(name)
        if listeners is not None and listener in listeners:
            listeners.remove(listener)
            if not listeners:
                del table[name]


@final
class _Hearing:
    """One that is called."""

    __slots__ = ("hear",)

    def __init__(self, hear: Hear) -> None:
        self.hear = hear

    def close(self) -> None:
        """Its owner leaves by itself."""


@final
class _Queue:
    """One subscription: what was said and not yet taken. A future exists only while its owner waits."""

    __slots__ = ("_closed", "_fell_behind", "_lost", "_said", "_wake")

    def __init__(self, fell_behind: Callable[[], None]) -> None:
        self._fell_behind = fell_behind
        self._said: deque[Said] = deque()
        self._lost = True  # what was said before the subscription may matter, too
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    def hear(self, said: Said) -> None:
        if len(self._said) >= BUFFER:
            # Those that follow the gap are dropped with it: the store has them all.
            self._said.clear()
            self._lost = True
            self._fell_behind()
        else:
            self._said.append(said)
        self._rouse()

    def close(self) -> None:
        self._closed = True
        self._rouse()

    def __aiter__(self) -> "_Queue":
        return self

    async def __anext__(self) -> Said | Lost:
        while True:
            if self._lost:
                self._lost = False
                return Lost.LOST
            if self._said:
                return self._said.popleft()
            if self._closed:
                raise StopAsyncIteration
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


_Listener = _Hearing | _Queue
