"""How many calls each target answered lately, for as long as all is well.

A breaker is made when something fails first, and has to know of how many calls that failure is one. Kept by slots of
five seconds; what is older than half a minute is dropped with its slot.
"""

from collections import deque
from typing import Final, final

SLOT_S: Final = 5.0
SLOTS: Final = 7  # the one that runs, and those before it that reach 30 s back
MOST_TARGETS: Final = 10_000  # in one slot; further ones are not counted in it


@final
class Answered:
    """The calls that went well, by target."""

    __slots__ = ("_counts", "_slots", "_until")

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._slots: deque[tuple[float, dict[str, int]]] = deque(maxlen=SLOTS)
        self._until = 0.0

    def note(self, target: str, now: float) -> None:
        """One more."""
        if now >= self._until:
            self._turn(now)
        counts = self._counts
        if target in counts:
            counts[target] += 1
        elif len(counts) < MOST_TARGETS:
            counts[target] = 1

    def of(self, target: str, since: float) -> list[tuple[float, int]]:
        """Those of one target, slot by slot: since when, and how many."""
        return [(at, counts[target]) for at, counts in self._slots if at >= since and target in counts]

    def _turn(self, now: float) -> None:
        self._until = now + SLOT_S
        self._counts = {}
        self._slots.append((now, self._counts))
