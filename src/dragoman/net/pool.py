"""All connections of a client, and the one sweep that watches every deadline.

The last used is reused first; who finds none opens one, up to the bounds; beyond them it waits in line, inside its
deadline. A connection is idle, busy, or on its way to the waiter it was handed to; dropped from wherever it is.

    take: idle -> room to dial -> wait      release: first in line -> idle      discard: room for the next in line
"""

import asyncio
from collections import deque
from typing import Final, final

from dragoman.net.dial import Dialler
from dragoman.net.errors import NetError, Reach
from dragoman.net.http1 import FOREVER, Connection
from dragoman.net.origin import ClientLimits, Origin, Waiter
from dragoman.net.together import Together
from dragoman.ports.clock import Clock, Timer

SWEEP_S: Final = 0.05
_GOODBYE_S: Final = 2.0


@final
class Pool:
    """All connections of a client."""

    __slots__ = (
        "_closed",
        "_closing",
        "_connections",
        "_dialler",
        "_last",
        "_timer",
        "_together",
        "asleep",
        "clock",
        "limits",
        "lines",
        "now",
        "open",
    )

    def __init__(self, clock: Clock, dialler: Dialler, limits: ClientLimits) -> None:
        """Start empty, without a timer."""
        self._dialler = dialler
        self._connections: set[Connection] = set()
        self._closing: set[Connection] = set()
        self._timer: Timer | None = None
        self._closed = False
        self._last: asyncio.Future[None] | None = None
        self._together = Together()
        self.clock = clock
        self.limits = limits
        self.now = clock.monotonic()
        self.open = 0
        self.lines: dict[Origin, None] = {}  # where somebody waits, in the order in which they came
        self.asleep = True

    async def take(self, origin: Origin, deadline: float, *, fresh: bool = False) -> Connection:
        """A connection to ask on; `fresh` passes over the idle ones. Raises NetError, nothing sent."""
        while True:
            if self._closed:
                raise NetError(Reach.CLOSED)
            if not fresh and origin.idle:
                connection = origin.idle.pop()
            elif self._has_room(origin, fresh):
                self._reserve(origin)
                return await self._dial(origin, deadline)
            else:
                granted = await self._wait(origin, deadline)
                if granted is None:
                    return await self._dial(origin, deadline)
                connection = granted
            if connection.usable():
                origin.reused += 1
                return connection
            origin.discard(connection)

    def wake(self) -> None:
        """Sweep every 50 ms while anything is asked or waited for."""
        self.now = self.clock.monotonic()
        self.asleep = False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.clock.call_at(self.now + SWEEP_S, self._sweep)

    def forget(self, origin: Origin, connection: Connection) -> None:
        """A connection was dropped: its room is free, though its socket may take a moment to close."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._closing.add(connection)
            self._free(origin)

    def gone(self, connection: Connection) -> None:
        """Its socket is closed."""
        self._closing.discard(connection)
        if self._last is not None and not self._closing and not self._last.done():
            self._last.set_result(None)

    async def close(self) -> None:
        """End everything; what is still asked fails as CLOSED."""
        self._closed = True
        for origin in tuple(self.lines):
            while (waiter := origin.next_waiter()) is not None:
                waiter.future.set_exception(NetError(Reach.CLOSED))
        for connection in tuple(self._connections):
            connection.end()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.asleep = True
        if self._closing:
            self._last = asyncio.get_running_loop().create_future()
            await asyncio.wait([self._last], timeout=_GOODBYE_S)

    def _has_room(self, origin: Origin, fresh: bool) -> bool:
        if origin.open >= self.limits.per_origin:
            if not (fresh and origin.idle):
                return False
            origin.discard(origin.idle[0])
            # Somebody in line may have taken the room just made.
            return origin.open < self.limits.per_origin and self.open < self.limits.total
        if self.open >= self.limits.total:
            oldest = min((one for one in self._connections if not one.busy), key=lambda one: one.freed, default=None)
            if oldest is None:
                return False
            oldest.expire()
        return self.open < self.limits.total

    def _reserve(self, origin: Origin) -> None:
        origin.open += 1
        self.open += 1

    def _free(self, origin: Origin) -> None:
        """Give back the room of one connection: to this origin's line, else to the line that has waited longest."""
        origin.open -= 1
        self.open -= 1
        for hungry in (origin, *self.lines):
            if self.open >= self.limits.total:
                return
            if hungry.open < self.limits.per_origin and (waiter := hungry.next_waiter()) is not None:
                self._reserve(hungry)
                waiter.future.set_result(None)
                return

    async def _dial(self, origin: Origin, deadline: float) -> Connection:
        """Open a connection in room that is already reserved."""
        loop = asyncio.get_running_loop()
        retire = self.clock.monotonic() + self.limits.age_s
        try:
            transport, connection, context = await self._dialler.open(
                origin.target, deadline, lambda: Connection(origin, loop, retire, self._together.write), origin.identity
            )
        except BaseException as error:
            if isinstance(error, NetError):
                origin.count(error.kind)
            self._free(origin)
            raise
        origin.opened += 1
        connection.attach(transport, context)
        if self._closed or connection.broken:
            transport.abort()
            self._free(origin)
            raise NetError(Reach.CLOSED if self._closed else Reach.RESET)
        self._connections.add(connection)
        if self.asleep:
            self.wake()
        return connection

    async def _wait(self, origin: Origin, deadline: float) -> Connection | None:
        waiter = Waiter(asyncio.get_running_loop().create_future(), deadline)
        origin.waiters.append(waiter)
        self.lines[origin] = None
        if self.asleep:
            self.wake()
        try:
            return await waiter.future
        except asyncio.CancelledError:
            # Granted and cancelled in the same turn: what was granted goes to the next.
            if not waiter.future.cancelled() and waiter.future.exception() is None:
                granted = waiter.future.result()
                if granted is None:
                    self._free(origin)
                else:
                    origin.release(granted)
            raise

    def _sweep(self) -> None:
        now = self.now = self.clock.monotonic()
        working = False
        earliest = FOREVER
        for connection in tuple(self._connections):
            if connection.due <= now:
                connection.expire()
            elif connection.busy:
                working = True
            elif connection.due < earliest:
                earliest = connection.due
        for origin in tuple(self.lines):
            working = self._sweep_line(origin, now) or working
        self._timer = None
        if working:
            self._timer = self.clock.call_at(now + SWEEP_S, self._sweep)
            return
        self.asleep = True
        if earliest < FOREVER:
            self._timer = self.clock.call_at(max(earliest, now + SWEEP_S), self._sweep)

    def _sweep_line(self, origin: Origin, now: float) -> bool:
        """Send away whose deadline has passed; True if somebody still waits."""
        left = [waiter for waiter in origin.waiters if not waiter.future.done()]
        for waiter in left:
            if waiter.deadline <= now:
                origin.count(Reach.TIMEOUT)
                waiter.future.set_exception(NetError(Reach.TIMEOUT))
        origin.waiters = deque(waiter for waiter in left if not waiter.future.done())
        if not origin.waiters:
            del self.lines[origin]
        return bool(origin.waiters)
