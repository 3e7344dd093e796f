"""What one call has said and the hub has not yet acknowledged: numbered, batched, resent; no I/O.

Within an attempt events count from 1. An attempt is a fence: when the hub begins another one, what it has on disk is
dropped and the rest counts from 1 again. So events are kept by their place in the call, and numbered when they are
first sent under an attempt:

    place      1 2 3 4 5 6 7
    attempt 1  1 2 3 4            3 are on disk when attempt 2 begins
    attempt 2        1 2 3 4
"""

from collections import deque
from collections.abc import Sequence
from typing import Final, final

import msgspec

from dragoman.model.json import JsonObject

BATCH_EVENTS: Final = 256  # of one POST
BATCH_BYTES: Final = 1024 * 1024
HELD_EVENTS: Final = 1024  # unacknowledged; beyond, whoever has more to say waits
HELD_BYTES: Final = 4 * 1024 * 1024
ATTEMPTS: Final = 64  # whose numbering is remembered
_FRAME_BYTES: Final = 64  # of number and name, around an event's data

ASKS: Final = frozenset({"ask", "auth"})
ENDS: Final = frozenset({"complete", "error", "cancelled", "rejected", "released"})


class Said(msgspec.Struct, frozen=True):
    """One event of a call, and about how many bytes it takes."""

    event: str
    data: JsonObject
    size: int


class Batch(msgspec.Struct, frozen=True):
    """What is sent at once, and under which attempt."""

    attempt: int
    events: Sequence[JsonObject]


def said(event: str, data: JsonObject) -> Said:
    """An event as it is kept."""
    return Said(event, data, len(msgspec.json.encode(data)) + _FRAME_BYTES)


@final
class Unacked:
    """The events of one call that have to reach the hub, in their order."""

    __slots__ = ("_bases", "_events", "_last", "acked", "attempt", "failed", "size")

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt
        self.acked = 0  # the place up to which all are on disk
        self.size = 0  # of what is held, in bytes
        self.failed = False  # the hub refused something, and is told so
        self._events: deque[Said] = deque()
        self._last: Said | None = None
        self._bases: dict[int, int] = {}  # by attempt: the place before its number 1

    def __len__(self) -> int:
        return len(self._events)

    @property
    def full(self) -> bool:
        """Whether more should wait."""
        return len(self._events) >= HELD_EVENTS or self.size >= HELD_BYTES

    @property
    def ended(self) -> bool:
        """Whether the last event was said."""
        return self._last is not None

    @property
    def released(self) -> bool:
        """Whether it was handed back."""
        return self._last is not None and self._last.event == "released"

    @property
    def settled(self) -> bool:
        """Whether all has been said, and is on disk."""
        return self.ended and not self._events

    @property
    def last_size(self) -> int:
        """The bytes of the last event, which is kept."""
        return 0 if self._last is None else self._last.size

    @property
    def number(self) -> int:
        """The number, in this attempt, up to which all is on disk."""
        return self.acked - self._bases.get(self.attempt, self.acked)

    def add(self, one: Said) -> None:
        """Take one more; after the last one nothing counts."""
        if self.ended:
            return
        self._hold(one)
        if one.event in ENDS:
            self._last = one

    def batch(self, most: int = BATCH_EVENTS) -> Batch | None:
        """What goes into the next POST; None where nothing waits. One event that is too large goes alone."""
        if not self._events:
            return None
        base = self._base()
        chosen: list[JsonObject] = []
        size = 0
        for one in self._events:
            size += one.size
            if chosen and (len(chosen) == most or size > BATCH_BYTES):
                break
            chosen.append({"n": self.acked - base + len(chosen) + 1, "event": one.event, "data": one.data})
        return Batch(self.attempt, chosen)

    def ack(self, attempt: int, number: int) -> bool:
        """All up to `number` of that attempt is on disk; whether that is news."""
        base = self._bases.get(attempt)
        # Once a later attempt has begun to count, what came before it is settled.
        if base is None or (attempt != self.attempt and self.attempt in self._bases):
            return False
        return self._drop(base + number)

    def expect(self, attempt: int, number: int) -> bool:
        """The hub has all before `number` of that attempt; False where that one is no longer here."""
        self.ack(attempt, number - 1)
        return attempt != self.attempt or self.number < number

    def adopt(self, attempt: int, *, heard: tuple[int, int] | None = None, answered: int | None = None) -> None:
        """Go on under a later attempt.

        `heard` names what of an earlier one is on disk, by attempt and number; `answered` the question that was
        answered: whoever answers has read it, so all up to it is on disk. A call that ended has its end to tell again.
        """
        if attempt <= self.attempt:
            return
        if heard is not None:
            self.ack(*heard)
        for place, one in enumerate(self._events, self.acked + 1):
            if answered is not None and one.event in ASKS and one.data.get("ask") == answered:
                self._drop(place)
                break
        self.attempt = attempt
        if self._last is not None and not self._events:
            self._hold(self._last)

    def fail(self, one: Said) -> None:
        """Let this be the end, in place of all that is held: the hub does not take it."""
        self._events.clear()
        self.size = 0
        self.failed = True
        self._last = one
        self._hold(one)

    def _hold(self, one: Said) -> None:
        self._events.append(one)
        self.size += one.size

    def _base(self) -> int:
        """Where this attempt begins to count: fixed when it first sends something."""
        if self.attempt not in self._bases:
            if len(self._bases) == ATTEMPTS:
                del self._bases[min(self._bases)]
            self._bases[self.attempt] = self.acked
        return self._bases[self.attempt]

    def _drop(self, place: int) -> bool:
        before = self.acked
        while self._events and self.acked < place:
            self.size -= self._events.popleft().size
            self.acked += 1
        return self.acked > before
