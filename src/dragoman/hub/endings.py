"""Calls that have ended: noted a turn of the loop later, as their answers leave first, and counted a little later.

    ended ──► noted ─────────────────────► counted, and written down
              at once: what decides        together, those that are alike: what is only read,
              about the next call          every 10 ms, a few in each turn of the loop,
                                           and all of them before somebody reads it

Nobody sees a count that lacks a call whose answer he has: whoever shows counts has them `catch_up` first. Each call is
noted once, however many saw it end: who carried it, who cancelled it, the agent that reported it.
"""

import logging
from collections.abc import Callable, Sequence
from typing import Final, final

from dragoman.model.ended import Alike, Carried, Ended, alike, ended_call
from dragoman.model.task import Task
from dragoman.observe.once import Once
from dragoman.ports.clock import Clock, Timer

LOG: Final = logging.getLogger("dragoman.hub")
COUNTED_S: Final = 0.01  # long enough that alike calls come together, short enough that few do
SLICE: Final = 32  # calls that are counted in one turn of the loop: no other call waits longer for that
MOST: Final = 1000  # calls that are noted and not counted; with so many they are counted at once


@final
class Endings:
    """Has each ended call noted and counted, by everybody who wants to know."""

    __slots__ = (
        "_carried",
        "_clock",
        "_counted",
        "_ended",
        "_noted",
        "_once",
        "_soon",
        "_timer",
        "_told",
        "_uncounted",
    )

    def __init__(self, *, clock: Clock, soon: Callable[[Callable[[], None]], object]) -> None:
        self._clock = clock
        self._soon = soon  # has something done in the loop's next turn
        self._once = Once()
        self._ended: list[Task] = []
        self._uncounted: list[Task] = []
        self._timer: Timer | None = None
        self.listen(noted=lambda _: None, told=lambda _: None, counted=lambda _: None, carried=dict)

    def listen(
        self,
        *,
        noted: Callable[[Task], None],
        told: Callable[[Sequence[Ended]], None],
        counted: Callable[[Alike], None],
        carried: Callable[[], dict[str, Carried]],
    ) -> None:
        """Have each call `noted`, and later all `told` in their order and `counted` by what they are alike in.

        How a call was carried is taken out of what `carried` gives, by its id.
        """
        self._noted = noted
        self._told = told
        self._counted = counted
        self._carried = carried

    def ended(self, task: Task) -> None:
        """A call has ended."""
        if not self._ended:
            self._soon(self._note)
        self._ended.append(task)

    def catch_up(self) -> None:
        """Have all that has ended counted."""
        if self._ended:
            self._note()
        if self._uncounted:
            self._count_all()

    def close(self) -> None:
        """Count what is left."""
        if self._timer is not None:
            self._timer.cancel()
        self.catch_up()

    def _note(self) -> None:
        ended, self._ended = self._ended, []
        is_first, noted, uncounted = self._once.is_first, self._noted, self._uncounted
        for task in ended:
            if is_first(task.id):
                uncounted.append(task)
                try:
                    noted(task)
                except Exception:
                    # Whatever is wrong with it, the others are noted.
                    LOG.exception("a call that ended was not noted", extra={"fields": {"call_id": task.id}})
        if len(uncounted) >= MOST:
            self._count_all()
        elif self._timer is None and uncounted:
            self._timer = self._clock.call_at(self._clock.monotonic() + COUNTED_S, self._count_some)

    def _count_some(self) -> None:
        some, self._uncounted = self._uncounted[:SLICE], self._uncounted[SLICE:]
        self._count(some)
        if self._uncounted:
            self._soon(self._count_some)
        else:
            self._timer = None

    def _count_all(self) -> None:
        tasks, self._uncounted = self._uncounted, []
        self._count(tasks)

    def _count(self, tasks: Sequence[Task]) -> None:
        take = self._carried().pop
        ended = [ended_call(task, take(task.id, None)) for task in tasks]
        for many in alike(ended):
            try:
                self._counted(many)
            except Exception:
                fields = {"call_ids": [each.task.id for each in many]}
                LOG.exception("calls that ended were not counted", extra={"fields": fields})
        self._told(ended)
