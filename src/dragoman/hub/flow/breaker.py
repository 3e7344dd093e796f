"""The breaker of one target: when it is left alone, and when it is tried again. Pure: the time is handed in.

    closed ── 5 failures in a row, or half of at least 20 calls in 30 s ──► open ── 60 s ──► half open
      ▲                                                                      ▲                 │
      │                                                                      └── the probe fails: twice as long
      └──────────────────────────── somebody is answered ─────────────────────────────────────┘

What counts as a failure is decided elsewhere (`breakers.py`). Calls are counted by the second, so the window of 30 s
forgets a call within the second after.
"""

from collections import deque
from collections.abc import Iterable
from typing import Final, final

from dragoman.model.circuit import Circuit

IN_A_ROW: Final = 5
AT_LEAST: Final = 20  # calls, before a share of them says anything
SHARE: Final = 0.5
WINDOW_S: Final = 30.0
OPEN_S: Final = 60.0
LONGEST_S: Final = 300.0
PROBE_S: Final = 60.0  # after which a probe that was not answered makes room for another one
RESERVED_S: Final = 5.0  # for a call that was let in as the probe to be sent
SOON_S: Final = 5.0  # at most, until it is worth asking again while a probe is under way


@final
class Breaker:
    """One target's. `answered` are the calls of the last 30 s that went well: when, and how many."""

    __slots__ = ("_open_s", "_probe", "_probe_until", "_until", "_window", "calls", "failures", "in_a_row", "state")

    def __init__(self, answered: Iterable[tuple[float, int]] = ()) -> None:
        self.state = Circuit.CLOSED
        self.in_a_row = 0
        self.failures = 0
        self._window: deque[list[int]] = deque([int(at), count, 0] for at, count in answered)  # second, calls, failures
        self.calls = sum(count for _, count, _ in self._window)
        self._until = 0.0
        self._open_s = 0.0
        self._probe: str | None = None
        self._probe_until = 0.0

    @property
    def open_s(self) -> float:
        """For how long it was last opened."""
        return self._open_s

    def look(self, now: float) -> Circuit:
        """Where it stands now: what was open long enough is half open."""
        if self.state is Circuit.OPEN and now >= self._until:
            self.state = Circuit.HALF_OPEN
            self._probe, self._probe_until = None, now
        return self.state

    def let_in(self, now: float) -> float | None:
        """None where a new call may pass, which then is the probe if one is due; else the seconds to wait."""
        state = self.look(now)
        if state is Circuit.CLOSED:
            return None
        if state is Circuit.OPEN:
            return self._until - now
        if now < self._probe_until:
            return min(self._probe_until - now, SOON_S)
        self._probe, self._probe_until = None, now + RESERVED_S
        return None

    def begin(self, call_id: str, now: float) -> float | None:
        """None where this call may be sent, which then is the probe if one is due; else the seconds to wait."""
        state = self.look(now)
        if state is Circuit.CLOSED:
            return None
        if state is Circuit.OPEN:
            return self._until - now
        if self._probe not in (None, call_id) and now < self._probe_until:
            return min(self._probe_until - now, SOON_S)
        self._probe, self._probe_until = call_id, now + PROBE_S
        return None

    def answered(self, now: float) -> None:
        """A call went well. Half open, it closes whoever's it is; open, it comes too late to say anything."""
        state = self.look(now)
        if state is Circuit.HALF_OPEN:
            self._close()
        elif state is Circuit.CLOSED:
            self.in_a_row = 0
            self._count(now, 0)

    def failed(self, call_id: str, now: float) -> None:
        """A call failed. Half open, only the probe's failure counts; open, none does."""
        state = self.look(now)
        if state is Circuit.HALF_OPEN:
            if self._probe == call_id:
                self._open(now, min(self._open_s * 2, LONGEST_S))
        elif state is Circuit.CLOSED:
            self.in_a_row += 1
            self._count(now, 1)
            too_many = self.calls >= AT_LEAST and self.failures >= SHARE * self.calls
            if self.in_a_row >= IN_A_ROW or too_many:
                self._open(now, OPEN_S)

    def given_up(self, call_id: str, now: float) -> None:
        """A call ended in a way that says nothing of the target: if it was the probe, another may be."""
        if self.look(now) is Circuit.HALF_OPEN and self._probe == call_id:
            self._probe, self._probe_until = None, now

    def is_well(self, now: float) -> bool:
        """Whether it has nothing to remember."""
        if self.state is not Circuit.CLOSED or self.in_a_row:
            return False
        self._forget(now)
        return not self.failures

    def _open(self, now: float, for_s: float) -> None:
        self.state = Circuit.OPEN
        self._open_s = for_s
        self._until = now + for_s

    def _close(self) -> None:
        self.state = Circuit.CLOSED
        self.in_a_row = self.calls = self.failures = 0
        self._window.clear()

    def _count(self, now: float, failures: int) -> None:
        self._forget(now)
        second = int(now)
        if not self._window or self._window[-1][0] != second:
            self._window.append([second, 0, 0])
        last = self._window[-1]
        last[1] += 1
        last[2] += failures
        self.calls += 1
        self.failures += failures

    def _forget(self, now: float) -> None:
        oldest = int(now - WINDOW_S)
        while self._window and self._window[0][0] < oldest:
            _, calls, failures = self._window.popleft()
            self.calls -= calls
            self.failures -= failures
