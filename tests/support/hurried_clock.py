"""A clock for tests of waiting: it waits for nobody, and notes how long it would have."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import final

from dragoman.ports.clock import SystemClock, Timer


@final
class HurriedClock:
    """The system's clock, moved on by what was slept; `during` is called in each sleep."""

    def __init__(self, during: Callable[[], object] = lambda: None) -> None:
        self._system = SystemClock()
        self._during = during
        self.slept: list[float] = []

    def now(self) -> datetime:
        """Wall time, moved on."""
        return self._system.now() + timedelta(seconds=sum(self.slept))

    def monotonic(self) -> float:
        """Seconds, moved on."""
        return self._system.monotonic() + sum(self.slept)

    async def sleep(self, seconds: float) -> None:
        """Move on."""
        self._during()
        self.slept.append(seconds)

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Call at that time of this clock."""
        return self._system.call_at(when - sum(self.slept), function)

    def new_id(self, prefix: str) -> str:
        """A fresh id."""
        return self._system.new_id(prefix)

    def jitter(self, seconds: float, share: float) -> float:
        """Chance, as ever."""
        return self._system.jitter(seconds, share)
