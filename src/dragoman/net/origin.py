"""One origin (scheme, host, port): its idle connections, its line of waiters, its figures, and what it taught us.

Decides what becomes of a connection after each answer. How much room there is in all, and time, are the pool's.
"""

import asyncio
from collections import deque
from collections.abc import Collection
from typing import Final, Protocol, final

import msgspec

from dragoman.net.addresses import Target
from dragoman.net.dial import DialLimits
from dragoman.net.errors import Reach
from dragoman.net.http1 import FOREVER, Connection
from dragoman.net.tls import ClientIdentity
from dragoman.ports.clock import Clock

# What an origin taught us about its idle time is asked anew after this long: it may have been a restart.
LEARNT_S: Final = 300.0
_MARGIN_S: Final = 1.0


class ClientLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How many connections, for how long."""

    per_origin: int = 64
    total: int = 1024
    idle_s: float = 60.0
    age_s: float = 300.0
    dial: DialLimits = DialLimits()


class OriginFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What happened with one origin so far."""

    open: int
    idle: int
    waiting: int
    opened: int
    reused: int
    stale: int
    failed: dict[Reach, int]


class Room(Protocol):
    """What an origin needs of the pool."""

    clock: Clock
    limits: ClientLimits
    now: float
    open: int

    @property
    def lines(self) -> Collection["Origin"]:
        """The origins where somebody waits."""
        ...

    def forget(self, origin: "Origin", connection: Connection) -> None:
        """A connection was dropped."""
        ...

    def gone(self, connection: Connection) -> None:
        """Its socket is closed."""
        ...


@final
class Waiter:
    """A place in line: the future brings a connection, or None for leave to dial."""

    __slots__ = ("deadline", "future")

    def __init__(self, future: asyncio.Future[Connection | None], deadline: float) -> None:
        """Take the place."""
        self.future = future
        self.deadline = deadline


@final
class Origin:
    """One scheme, host and port, for all or for one client certificate: its connections, its line, its figures."""

    __slots__ = (
        "_learnt_until",
        "_pool",
        "_rest_s",
        "failed",
        "identity",
        "idle",
        "open",
        "opened",
        "reused",
        "stale",
        "target",
        "waiters",
    )

    def __init__(self, pool: Room, target: Target, identity: ClientIdentity | None = None) -> None:
        """Start without connections."""
        self._pool = pool
        self._rest_s = pool.limits.idle_s  # how long a connection may rest
        self._learnt_until = FOREVER
        self.target = target
        self.identity = identity
        self.idle: list[Connection] = []
        self.waiters: deque[Waiter] = deque()
        self.open = 0
        self.opened = 0
        self.reused = 0
        self.stale = 0
        self.failed: dict[Reach, int] = {}

    def now(self) -> float:
        """The time of the last sweep."""
        return self._pool.now

    def release(self, connection: Connection) -> None:
        """To the first in line, else to the top of the idle ones; whether it can be used is seen when it is taken."""
        pool = self._pool
        now = pool.now
        if connection.context is not None and connection.uses == 1:
            connection.remember_session(self.target.host.rstrip("."))
        retire = connection.retire
        if retire <= now:
            self.discard(connection)
            return
        if self.waiters and (waiter := self.next_waiter()) is not None:
            connection.due = waiter.deadline
            waiter.future.set_result(connection)
            return
        if self._learnt_until <= now:
            self._forget_lesson()
        idle_s = self._rest_s
        if connection.patience_s < idle_s + _MARGIN_S:
            idle_s = connection.patience_s - _MARGIN_S
        if idle_s <= 0.0 or (pool.lines and pool.open >= pool.limits.total):
            # Nobody will take it in time, or somebody waits for the room that it would keep.
            self.discard(connection)
            return
        due = now + idle_s
        connection.freed = now
        connection.due = due if due < retire else retire
        self.idle.append(connection)

    def discard(self, connection: Connection, kind: Reach | None = None) -> None:
        """Abort it and give its room to the next in line."""
        if kind is not None:
            self.count(kind)
        if connection.broken:
            return
        connection.abort()
        if connection in self.idle:
            self.idle.remove(connection)
        self._pool.forget(self, connection)

    def went_stale(self, connection: Connection) -> None:
        """Drop it before anybody picks it, and learn how long this origin waits."""
        self.stale += 1
        now = self._pool.clock.monotonic()
        idle_s = now - connection.freed
        # A close after less than the margin teaches nothing: nobody could stay below it.
        if connection in self.idle and idle_s > _MARGIN_S:
            if self._learnt_until <= now:
                self._forget_lesson()
            self._rest_s = min(self._rest_s, idle_s - _MARGIN_S)
            self._learnt_until = now + LEARNT_S
        self.discard(connection)

    def gone(self, connection: Connection) -> None:
        """The socket is closed."""
        self.discard(connection)
        self._pool.gone(connection)

    def count(self, kind: Reach) -> None:
        """One more request that failed."""
        self.failed[kind] = self.failed.get(kind, 0) + 1

    def next_waiter(self) -> Waiter | None:
        """Take the first in line who is still there."""
        while self.waiters:
            waiter = self.waiters.popleft()
            if not waiter.future.done():
                return waiter
        return None

    def figures(self) -> OriginFigures:
        """The state as plain numbers."""
        return OriginFigures(
            open=self.open,
            idle=len(self.idle),
            waiting=sum(not waiter.future.done() for waiter in self.waiters),
            opened=self.opened,
            reused=self.reused,
            stale=self.stale,
            failed=dict(self.failed),
        )

    def _forget_lesson(self) -> None:
        self._rest_s = self._pool.limits.idle_s
        self._learnt_until = FOREVER
