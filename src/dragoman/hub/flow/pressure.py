"""How hard pressed the hub is, and what it refuses then.

    0   everything is taken
    1   calls of low priority, listings and exports are refused
    2   new calls are refused: all of them, or, where only the loop is late, those for which it has no time

What a single process runs out of first is the time of its loop. So while that is late, each of its turns takes new
calls for a few milliseconds and refuses the rest at once: the loop is kept busy with calls that will end in time, and
nobody waits for a refusal. Results, cancels, heartbeats and polls of one task are never refused: they lower the load.

One timer looks, ten times a second; a call costs one look at a number. A refusal asks no store.
"""

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.model.errors import Overloaded
from dragoman.model.operations import Priority, SendTask
from dragoman.ports.clock import Clock, Timer
from dragoman.ports.store import Lane

LOOK_S: Final = 0.1
MEAN_S: Final = 1.0  # the lag that counts is the mean over so long
MEMORY_LOOK_S: Final = 1.0
RETRY_S: Final = 3.0  # on average; from 1 to 5
RETRY_SHARE: Final = 2 / 3
MARKS: Final = 64  # of the lane: more than the oldest age that counts has looks
LAG_BOUNDS_S: Final = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0)


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """From where on the hub is pressed (1), and hard pressed (2)."""

    lag_s: float = 0.1
    full_lag_s: float = 0.25
    turn_s: float = 0.02  # of each turn of a late loop that new calls may take
    waiting: int = 2_000  # commands for the writer
    full_waiting: int = 5_000
    waited_s: float = 1.0
    full_waited_s: float = 3.0
    memory_bytes: int | None = None


class Pressure:
    """The level, what it is made of, and who is refused by it."""

    def __init__(
        self,
        *,
        clock: Clock,
        lane: Callable[[], Lane],
        memory: Callable[[], int],
        soon: Callable[[Callable[[], object]], object],
        thresholds: Thresholds,
    ) -> None:
        self.level = 0  # what a call looks at
        self.lag_s = 0.0  # how late the loop is, as a mean
        self.lag_sum_s = 0.0
        self.lags: list[int] = [0] * (len(LAG_BOUNDS_S) + 1)  # looks by how late they were, see LAG_BOUNDS_S
        self.waiting = 0  # commands for the writer
        self.waited_s = 0.0  # the oldest of them
        self.memory_bytes = 0
        self.storage_full = False
        self.refused: Counter[str] = Counter()  # by reason
        self._clock = clock
        self._lane = lane
        self._memory = memory
        self._soon = soon  # has something done in the loop's next turn
        self._thresholds = thresholds
        self._late: deque[tuple[float, float]] = deque(maxlen=round(MEAN_S / LOOK_S))
        self._marks: deque[tuple[float, int]] = deque()
        self._memory_due = 0.0
        self._late_alone = False  # only the loop is late: some calls may be taken
        self._busy_until = 0.0  # calls were refused for want of the loop's time, lately
        self._turn_since: float | None = None
        self._due = 0.0
        self._timer: Timer | None = None

    def start(self) -> None:
        """Look from now on, as long as the loop runs."""
        self._look_again(self._clock.monotonic())

    def stop(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def refuse_call(self, asked: SendTask) -> None:
        """Raises Overloaded for a new call that is not taken now; asked only where there is pressure."""
        if asked.priority is Priority.LOW:
            raise self._refusal("low_priority")
        if self.level < 2:
            return
        if self.storage_full:
            raise self._refusal("storage_full")
        if not self._late_alone:
            raise self._refusal("overloaded")
        if not self._has_time():
            self._busy_until = self._clock.monotonic() + MEAN_S
            raise self._refusal("overloaded")

    def refuse_listing(self) -> None:
        """Raises Overloaded for a listing or an export while there is pressure."""
        if self.level:
            raise self._refusal("listing")

    def look(self, lag_s: float = 0.0) -> None:
        """Judge how things stand now, after the loop was so late for this look."""
        now = self._clock.monotonic()
        self._note_lag(now, lag_s)
        self._note_lane(now, self._lane())
        if now >= self._memory_due:
            self._memory_due = now + MEMORY_LOOK_S
            self.memory_bytes = self._memory()
        limits = self._thresholds
        # A loop that is kept in time only by refusing is late all the same.
        late = 2 if now < self._busy_until else _level(self.lag_s, limits.lag_s, limits.full_lag_s)
        other = max(
            _level(self.waiting, limits.waiting, limits.full_waiting),
            _level(self.waited_s, limits.waited_s, limits.full_waited_s),
            2 if limits.memory_bytes is not None and self.memory_bytes > limits.memory_bytes else 0,
            2 if self.storage_full else 0,
        )
        self._late_alone = other < 2
        self.level = max(late, other)

    def _refusal(self, reason: str) -> Overloaded:
        self.refused[reason] += 1
        retry_after_s = round(self._clock.jitter(RETRY_S, RETRY_SHARE))
        return Overloaded(_SENTENCES[reason], retry_after_s=retry_after_s, reason=reason)

    def _has_time(self) -> bool:
        """Whether this turn of the loop still takes new calls."""
        now = self._clock.monotonic()
        if self._turn_since is None:
            self._turn_since = now
            self._soon(self._end_turn)
        return now - self._turn_since < self._thresholds.turn_s

    def _end_turn(self) -> None:
        self._turn_since = None

    def _note_lag(self, now: float, lag_s: float) -> None:
        self.lags[bisect_left(LAG_BOUNDS_S, lag_s)] += 1
        self.lag_sum_s += lag_s
        late = self._late
        late.append((now, lag_s))
        while late[0][0] < now - MEAN_S:
            late.popleft()
        self.lag_s = sum(lag for _, lag in late) / len(late)

    def _note_lane(self, now: float, lane: Lane) -> None:
        """How old the oldest command is, without a time on each: what was there at an earlier look and still is."""
        marks, written = self._marks, lane.submitted - lane.waiting
        while marks and marks[0][1] <= written:
            marks.popleft()
        self.waiting = lane.waiting
        self.waited_s = now - marks[0][0] if marks else 0.0
        self.storage_full = lane.full
        if lane.waiting and len(marks) < MARKS and (not marks or marks[-1][1] < lane.submitted):
            marks.append((now, lane.submitted))

    def _ring(self) -> None:
        now = self._clock.monotonic()
        self.look(max(0.0, now - self._due))
        self._look_again(now)

    def _look_again(self, now: float) -> None:
        self._due = now + LOOK_S
        self._timer = self._clock.call_at(self._due, self._ring)


_SENTENCES: Final = {
    "low_priority": "The hub is busy and takes no calls of low priority. Try again later, or with a higher priority.",
    "listing": "The hub is busy and lists nothing now; single calls and agents can be asked for. Try again later.",
    "overloaded": "The hub has more to do than it can. Nothing that was accepted is lost; try again later.",
    "storage_full": "The hub's disk is full: it takes results, cancels and deletes, but no new calls. Try again later.",
}


def _level(value: float, pressed: float, hard: float) -> int:
    return 2 if value > hard else 1 if value > pressed else 0
