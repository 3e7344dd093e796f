"""Time, randomness and ids: the one file that may ask the system for them.

Timers, leases, limits and deadlines use `monotonic`; `now` is for what people see, and for the windows of tokens and
signatures. Tests hand in a clock of their own.
"""

import asyncio
import binascii
import random
import secrets
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, Protocol, final

CROCKFORD: Final = "0123456789abcdefghjkmnpqrstvwxyz"
WORDS: Final = 192  # of random digits, drawn at once
WORD: Final = 22  # digits: six bits each, somewhat more than 128
_PAIRS: Final = [first + second for first in CROCKFORD for second in CROCKFORD]  # ten bits: the milliseconds' last
# Base64 without its two signs, so that an id is one word: a handful of the random bits go with them.
_ONE_WORD: Final = bytes.maketrans(b"+/", b"Zz")


class Timer(Protocol):
    """A call that was scheduled and can be taken back."""

    def cancel(self) -> None:
        """Take the call back; harmless once it has run."""
        ...


class Clock(Protocol):
    """Where time, randomness and ids come from."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never jump; comparable only with themselves."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""
        ...

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Call `function` on the loop when `monotonic` reaches `when`."""
        ...

    def new_id(self, prefix: str) -> str:
        """`prefix`, 48 bits of time, 128 random bits: ids sort by the time they were made and cannot be guessed."""
        ...

    def jitter(self, seconds: float, share: float) -> float:
        """`seconds` ± `share` of it, at random."""
        ...


@final
class SystemClock:
    """The real clock of a running process."""

    __slots__ = ("_second", "_stamp", "_words")

    now = staticmethod(partial(datetime.now, UTC))
    monotonic = staticmethod(time.monotonic)  # the clock that asyncio's loop uses too

    def __init__(self) -> None:
        self._second = -1
        self._stamp = ""
        self._words: list[str] = []

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""
        await asyncio.sleep(seconds)

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Call `function` on the running loop at that monotonic time."""
        return asyncio.get_running_loop().call_at(when, function)

    def new_id(self, prefix: str) -> str:
        """An id that grows with time and cannot be guessed."""
        millisecond = time.time_ns() // 1_000_000
        second = millisecond >> 10
        if second != self._second:
            self._second, self._stamp = second, base32(millisecond)[:-2]
        if not self._words:
            # Drawn for many ids at once: each draw lets go of the interpreter, and another thread takes it.
            self._words = _random_words()
        return f"{prefix}{self._stamp}{_PAIRS[millisecond & 1023]}{self._words.pop()}"

    def jitter(self, seconds: float, share: float) -> float:
        """`seconds` ± `share` of it."""
        return seconds * (1.0 + share * (2.0 * random.random() - 1.0))  # noqa: S311 - spreads load, guards nothing


@final
class SteadyClock:
    """A clock whose `now` goes on from where it was when this was made, whatever becomes of the wall clock meanwhile.

    For times that are kept and waited for, such as when a job falls due: they are set and looked at with this alone.
    What is shown, and the windows of tokens and signatures, follow the wall clock.
    """

    __slots__ = ("_clock", "_zero")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._zero = clock.now() - timedelta(seconds=clock.monotonic())

    def now(self) -> datetime:
        """The time at the start, and what has passed since."""
        return self._zero + timedelta(seconds=self._clock.monotonic())

    def monotonic(self) -> float:
        """Seconds that never jump."""
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait so many seconds."""
        await self._clock.sleep(seconds)

    def call_at(self, when: float, function: Callable[[], object]) -> Timer:
        """Call `function` at that monotonic time."""
        return self._clock.call_at(when, function)

    def new_id(self, prefix: str) -> str:
        """An id that grows with time and cannot be guessed."""
        return self._clock.new_id(prefix)

    def jitter(self, seconds: float, share: float) -> float:
        """`seconds` ± `share` of it, at random."""
        return self._clock.jitter(seconds, share)


def _random_words() -> list[str]:
    random = binascii.b2a_base64(secrets.token_bytes(WORDS * WORD * 3 // 4), newline=False)
    digits = random.translate(_ONE_WORD).decode()
    return [digits[at : at + WORD] for at in range(0, len(digits), WORD)]


def base32(value: int) -> str:
    """48 bits as 10 Crockford digits: text order is number order."""
    return "".join([CROCKFORD[value >> shift & 31] for shift in range(45, -5, -5)])
