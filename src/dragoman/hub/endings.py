"""Calls that have ended, noted a turn of the loop later: their answers leave first.

Those that end in one turn, as one commit has many end, are noted together.
"""

import logging
from collections.abc import Callable
from typing import Final, final

from dragoman.model.task import Task

LOG: Final = logging.getLogger("dragoman.hub")


@final
class Endings:
    """Has each ended call noted, by everybody who wants to know."""

    __slots__ = ("_ended", "_noted", "_soon")

    def __init__(self, *, soon: Callable[[Callable[[], None]], object], noted: Callable[[Task], None]) -> None:
        self._soon = soon  # has something done in the loop's next turn
        self._noted = noted
        self._ended: list[Task] = []

    def ended(self, task: Task) -> None:
        """A call has ended."""
        if not self._ended:
            self._soon(self._note)
        self._ended.append(task)

    def _note(self) -> None:
        ended, self._ended = self._ended, []
        for task in ended:
            try:
                self._noted(task)
            except Exception:
                # Whatever is counted wrongly by it, the others are counted.
                LOG.exception("a call that ended was not noted", extra={"fields": {"call_id": task.id}})
