"""Openings that are not written yet: a call that ends at once is then one row instead of five writes.

    open ──► held ──(end comes first)──────► one quick row
               └───(hold_s passed, or a step that is not the end)──► task, event 1, job

All on the loop, without a lock. One timer sweeps them all, and only while something is held. An opening stays findable
here until its rows are on disk; if writing them fails it is held again, so no accepted opening is dropped.
"""

from collections.abc import Callable, Iterator
from typing import Final, final

import msgspec

from dragoman.model.task import Task
from dragoman.ports.clock import Clock, Timer
from dragoman.ports.store import Opening, Scope


class Held(msgspec.Struct, gc=False):
    """One opening, the number its task will have, and since when it waits."""

    opening: Opening
    number: int
    since: float
    writing: bool = False


@final
class HeldOpenings:
    """The openings that wait; `write` is given those that waited long enough."""

    __slots__ = ("_by_id", "_clock", "_hold_s", "_timer", "_write")

    def __init__(self, clock: Clock, hold_s: float, write: Callable[[Held], object]) -> None:
        self._by_id: Final[dict[str, Held]] = {}
        self._clock = clock
        self._hold_s = hold_s
        self._write = write
        self._timer: Timer | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def hold(self, opening: Opening, number: int) -> None:
        """Hold an opening back."""
        now = self._clock.monotonic()
        self._by_id[opening.task.id] = Held(opening, number, now)
        if self._timer is None:
            self._timer = self._clock.call_at(now + self._hold_s, self._sweep)

    def take(self, task_id: str) -> Held | None:
        """The opening of that task, to be written now; None if there is none or its writing has begun."""
        held = self._by_id.get(task_id)
        if held is None or held.writing:
            return None
        held.writing = True
        return held

    def written(self, held: Held) -> None:
        """Its rows are on disk: it is found there from now on."""
        self._by_id.pop(held.opening.task.id, None)

    def failed(self, held: Held) -> None:
        """Its rows could not be written: hold it on."""
        held.writing = False
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + self._hold_s, self._sweep)

    def find(self, task_id: str) -> Held | None:
        """The opening of that task, being written or not."""
        return self._by_id.get(task_id)

    def waiting(self, scope: Scope | None = None) -> Iterator[Held]:
        """Those whose writing has not begun: all, or one scope's."""
        for held in list(self._by_id.values()):
            if not held.writing and (scope is None or belongs(held.opening.task, scope)):
                yield held

    def stop(self) -> None:
        """Sweep no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _sweep(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        for held in self.waiting():
            # Oldest first: the first that is not due tells when to look again.
            if held.since + self._hold_s > now:
                self._timer = self._clock.call_at(held.since + self._hold_s, self._sweep)
                return
            held.writing = True
            self._write(held)


def belongs(task: Task, scope: Scope) -> bool:
    """Whether a task is one of that scope."""
    return task.tenant == scope.tenant and (scope.principal is None or task.caller_id == scope.principal)
