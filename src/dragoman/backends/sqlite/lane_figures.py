"""What the writer notes of its own work, for metrics: how long commits take, how large they are, what fails.

Plain numbers, changed by the writer's thread once a commit and read from the loop.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable
from typing import Final, final

from dragoman.observe.cells import Histogram
from dragoman.observe.names import STORE_BATCH, STORE_COMMIT

WRITE: Final = "write"  # a command that could not be written
UPKEEP: Final = "upkeep"  # a checkpoint, a look at the disk


@final
class LaneFigures:
    """The figures of one write lane."""

    __slots__ = ("_monotonic", "batches", "commits", "errors")

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.commits: Final = Histogram(STORE_COMMIT.bounds)
        self.batches: Final = Histogram(STORE_BATCH.bounds)
        self.errors: Final[Counter[str]] = Counter({WRITE: 0, UPKEEP: 0})

    def now(self) -> float:
        """Seconds that never jump."""
        return self._monotonic()

    def committed(self, since: float, commands: int) -> None:
        """A batch is on disk, or has failed."""
        self.commits.observe(self._monotonic() - since)
        self.batches.observe(commands)

    def failed(self, error: Exception) -> None:
        """A command failed; what it refuses by itself is no failure of the store."""
        if isinstance(error, sqlite3.Error | OSError):
            self.errors[WRITE] += 1
