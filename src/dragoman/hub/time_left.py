"""How much time is left of calls that wait in the queue, whatever the wall clock does meanwhile.

A deadline is stored as wall time, for whoever takes the call up after a restart. In the life that took it in, it is
known by the clock that never jumps.
"""

from collections import OrderedDict
from datetime import datetime
from typing import Final, final

from dragoman.model.task import Task
from dragoman.ports.clock import Clock

KNOWN: Final = 100_000  # the oldest is forgotten for a new one, and then goes by its stored time


@final
class TimeLeft:
    """The deadlines of the calls that this life of the hub took in, by its own clock."""

    __slots__ = ("_clock", "_deadlines")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deadlines: OrderedDict[str, float] = OrderedDict()

    def note(self, task_id: str, deadline: float) -> None:
        """A call waits in the queue from now on, until that monotonic time."""
        self._deadlines[task_id] = deadline
        if len(self._deadlines) > KNOWN:
            self._deadlines.popitem(last=False)

    def of(self, task: Task, deadline: datetime) -> float:
        """The seconds left until a task's stored deadline; never more than it was given at first."""
        known = self._deadlines.get(task.id)
        if known is not None:
            return known - self._clock.monotonic()
        return min((deadline - self._clock.now()).total_seconds(), (deadline - task.created_at).total_seconds())
