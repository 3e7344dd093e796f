"""Retention: what has ended and is old enough is removed, a little at a time, behind everything else.

    every hour   calls ─► the audit ─► statistics ─► keys, marks, mail     in steps of the store, of some milliseconds
                 after a step the store's writer is left alone for 19 times as long as it took: never over 5 % of it

How old something is, is told by the clock that never jumps or by the wall clock, whichever is earlier. A hub that wakes
up more than a day after its last call waits a day before it believes that: the clock may be wrong, and what is removed
does not come back.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from dragoman.model.errors import Overloaded
from dragoman.ports.audit import AuditQuery
from dragoman.ports.clock import Clock, SteadyClock
from dragoman.ports.retention import Expired
from dragoman.ports.store import Store

LOG: Final = logging.getLogger("dragoman.retention")
FIRST_S: Final = 60.0
EVERY_S: Final = 3600.0
SHARE: Final = 0.05  # of the writer's time, at most
LEAST_REST_S: Final = 0.05
BUSY: Final = 500  # commands that wait for the writer: it has better things to do
BUSY_REST_S: Final = 1.0
DOUBT: Final = timedelta(days=1)
MINUTES_FOR: Final = timedelta(days=30)  # statistics by the minute; by the hour after that
HOURS_FOR: Final = timedelta(days=400)


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What one round removed."""

    calls: int = 0
    call_rows: int = 0
    audit_rows: int = 0
    other_rows: int = 0
    took_s: float = 0.0


class Retention:
    """Removes what nobody has to keep any longer; None: that kind is kept for ever."""

    def __init__(self, *, store: Store, clock: Clock, calls_for: timedelta | None, audit_for: timedelta | None) -> None:
        self._store = store
        self._clock = clock
        self._steady = SteadyClock(clock)
        self._calls_for = calls_for
        self._audit_for = audit_for
        self._folded = 0  # the minute up to which statistics are those of hours

    async def run(self) -> None:
        """Remove as long as the hub runs."""
        await self._clock.sleep(FIRST_S)
        await self._doubt()
        while True:
            await self.once()
            await self._clock.sleep(self._clock.jitter(EVERY_S, 0.1))

    async def once(self) -> Removed:
        """One round, to its end."""
        now = min(self._steady.now(), self._clock.now())
        before = None if self._calls_for is None else now - self._calls_for
        calls = rows = audit_rows = 0
        took = 0.0
        if before is not None:
            after: int | None = 0
            while after is not None:
                done = await self._step(self._calls(before, after))
                calls, rows, took, after = calls + done.calls, rows + done.rows, took + done.took_s, done.next
        if self._audit_for is not None:
            audit_before = now - self._audit_for
            count, spent = await self._all(lambda: self._store.expire_audit(audit_before))
            audit_rows, took = count, took + spent
        minutes, folding = await self._fold(now)
        others, spent = await self._all(lambda: self._store.expire_rest(now, before))
        removed = Removed(
            calls=calls,
            call_rows=rows,
            audit_rows=audit_rows,
            other_rows=minutes + others,
            took_s=round(took + folding + spent, 3),
        )
        if removed.calls or removed.audit_rows or removed.other_rows:
            LOG.info("removed what was old enough", extra={"fields": msgspec.structs.asdict(removed)})
        return removed

    def _calls(self, before: datetime, after: int) -> Callable[[], Awaitable[Expired]]:
        return lambda: self._store.expire_calls(before, after)

    async def _fold(self, now: datetime) -> tuple[int, float]:
        """Statistics: how many rows went, and how long that took."""
        fold, drop = now - MINUTES_FOR, now - HOURS_FOR
        rows, took = 0, 0.0
        while True:
            after = self._folded
            done = await self._step(lambda after=after: self._store.expire_minutes(fold, drop, after))
            rows, took = rows + done.rows, took + done.took_s
            if done.next is None:
                return rows, took
            self._folded = done.next

    async def _all(self, step: Callable[[], Awaitable[Expired]]) -> tuple[int, float]:
        """Steps until nothing is left; how many rows went, and how long that took."""
        rows, took = 0, 0.0
        while True:
            done = await self._step(step)
            rows, took = rows + done.rows, took + done.took_s
            if done.next is None:
                return rows, took

    async def _step(self, step: Callable[[], Awaitable[Expired]]) -> Expired:
        """One step, once the writer has time for it, and a rest after it."""
        while True:
            while self._store.lane().waiting > BUSY:
                await self._clock.sleep(BUSY_REST_S)
            try:
                done = await step()
            except Overloaded:
                await self._clock.sleep(BUSY_REST_S)
                continue
            await self._clock.sleep(max(done.took_s * (1 / SHARE - 1), LEAST_REST_S))
            return done

    async def _doubt(self) -> None:
        newest = await self._store.list_audit(AuditQuery(calls=True, limit=1))
        if newest.rows and self._clock.now() - newest.rows[0].at > DOUBT:
            last = newest.rows[0].at.isoformat(timespec="seconds")
            LOG.info("the last call is more than a day ago: nothing is removed today", extra={"fields": {"last": last}})
            await self._clock.sleep(DOUBT.total_seconds())
