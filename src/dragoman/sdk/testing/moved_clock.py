"""A clock that runs as ever and can be moved ahead: an hour of a test takes no time."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, final

from dragoman.ports.clock import SystemClock

STEP_S: Final = 5.0  # half of what agents let pass between two signs of life
TURNS: Final = 20  # of the loop after each step, for what has become due


@final
class _Timer:
    """A call at a time of the moved clock; armed anew whenever it moves."""

    __slots__ = ("_handle", "_timers", "function", "when")

    def __init__(self, timers: "set[_Timer]", when: float, function: Callable[[], object]) -> None:
        self._timers = timers
        self._handle: asyncio.TimerHandle | None = None
        self.when = when
        self.function = function

    def arm(self, ahead_s: float) -> None:
        """Let it ring when the moved clock is there."""
        if self._handle is not None:
            self._handle.cancel()
        self._timers.add(self)
        self._handle = asyncio.get_running_loop().call_at(self.when - ahead_s, self._ring)

    def cancel(self) -> None:
        """Take the call back; harmless once it has run."""
        self._timers.discard(self)
        if self._handle is not None:
            self._handle.cancel()

    def _ring(self) -> None:
        self._timers.discard(self)
        self.function()


@final
class MovedClock:
    """The real clock, and how far it was moved ahead."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self._ahead_s = 0.0
        self._timers: set[_Timer] = set()

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass now; what becomes due meanwhile happens, in its order."""
        while seconds > 0:
            step_s = min(seconds, STEP_S)
            seconds -= step_s
            self._ahead_s += step_s
            for timer in sorted(self._timers, key=lambda each: each.when):
                timer.arm(self._ahead_s)
            for _ in range(TURNS):
                await self._real.sleep(0)

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        return self._real.now() + timedelta(seconds=self._ahead_s)

    def monotonic(self) -> float:
        """Seconds that never jump back."""
        return self._real.monotonic() + self._ahead_s

    async def sleep(self, seconds: float) -> None:
        """Wait until the moved clock is so many seconds further."""
        if seconds <= 0:
            await self._real.sleep(0)
            return
        due = asyncio.get_running_loop().create_future()
        timer = self.call_at(self.monotonic() + seconds, lambda: due.done() or due.set_result(None))
        try:
            await due
        finally:
            timer.cancel()

    def call_at(self, when: float, function: Callable[[], object]) -> _Timer:
        """Call `function` on the loop when `monotonic` reaches `when`."""
        timer = _Timer(self._timers, when, function)
        timer.arm(self._ahead_s)
        return timer

    def new_id(self, prefix: str) -> str:
        """An id that grows with the real time and cannot be guessed."""
        return self._real.new_id(prefix)

    def jitter(self, seconds: float, share: float) -> float:
        """`seconds` ± `share` of it."""
        return self._real.jitter(seconds, share)
