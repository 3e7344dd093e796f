"""How long to wait before the next try: 0.2 s, doubling to 10 s, with full jitter.

Where calls run it is 4 s at most: a hub that comes back waits 5 s for the processes that have them, then gives them to
others.
"""

from typing import Final, final

from dragoman.ports.clock import Clock

FIRST_S: Final = 0.2
LONGEST_S: Final = 10.0
BUSY_S: Final = 4.0


@final
class Backoff:
    """The waits of one thing that is tried again and again."""

    __slots__ = ("_clock", "_next_s")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._next_s = FIRST_S

    def reset(self) -> None:
        """It worked: the next failure is a first one."""
        self._next_s = FIRST_S

    def next_s(self, *, busy: bool = False) -> float:
        """The seconds to wait now; longer the next time."""
        most, self._next_s = self._next_s, min(self._next_s * 2, LONGEST_S)
        if busy:
            most = min(most, BUSY_S)
        return self._clock.jitter(most / 2, 1.0)  # anything from nothing to all of it
