"""A clock that stands still until a test moves it."""

import asyncio
import itertools
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from dragoman.ports.clock import Timer


class _Timer:
    def __init__(self, when: float, function: Callable[[], object]) -> None:
        self.when = when
        self.function = function
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class ManualClock:
    """Time moves by `advance` alone; due calls are made at once, in order."""

    def __init__(self, start: datetime = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed = 0.0
        self._ids = itertools.count(1)
        self._timers: list[_Timer] = []

    @property
    def timers(self) -> int:
        """How many calls are scheduled."""
        return sum(not timer.cancelled for timer in self._timers)

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        reached = asyncio.get_running_loop().create_future()
        self.call_at(self._elapsed + seconds, lambda: reached.done() or reached.set_result(None))
        await reached

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        timer = _Timer(when, function)
        self._timers.append(timer)
        return timer

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{next(self._ids):036}"

    def jitter(self, seconds: float, share: float) -> float:
        return seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._elapsed += seconds
        due = sorted((timer for timer in self._timers if timer.when <= self._elapsed), key=lambda timer: timer.when)
        self._timers = [timer for timer in self._timers if timer.when > self._elapsed]
        for timer in due:
            if not timer.cancelled:
                timer.function()
