"""Each call is noted once, however many saw it end: who carried it, who cancelled it, the agent that reported it."""

from typing import Final, final

REMEMBERED: Final = 8192  # ids of calls that ended lately; all who see one end do so within moments


@final
class Once:
    """The ids that were noted lately."""

    __slots__ = ("_before", "_now")

    def __init__(self) -> None:
        self._now: set[str] = set()
        self._before: set[str] = set()

    def is_first(self, name: str) -> bool:
        """Whether this is the first time; from now on it is not."""
        if name in self._now or name in self._before:
            return False
        if len(self._now) >= REMEMBERED // 2:
            self._before, self._now = self._now, set()
        self._now.add(name)
        return True
