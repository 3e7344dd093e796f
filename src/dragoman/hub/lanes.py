"""Lanes: at most so many attempts at a time towards one origin, so that a dead receiver holds up no other.

What comes above waits here, claimed but without a worker's slot; it goes when a lane of its origin is free. At the
bound the rest is given back to the store. Nothing here outlives the process: a job that waits is claimed again by the
next life of the hub.
"""

from collections import deque
from enum import Enum
from typing import Final
from urllib.parse import urlsplit

from dragoman.ports.store import Job

LANES: Final = 8  # of each origin
WAITING: Final = 10_000  # of all origins


class Lane(Enum):
    """Whether a job may go now."""

    FREE = "free"
    WAITS = "waits"
    FULL = "full"


class _Origin:
    __slots__ = ("busy", "waiting")

    def __init__(self) -> None:
        self.busy = 0
        self.waiting: deque[Job] = deque()


class Lanes:
    """The lanes of every origin that is busy now."""

    def __init__(self, *, lanes: int = LANES, waiting: int = WAITING) -> None:
        self._lanes = lanes
        self._room = waiting
        self._origins: dict[str, _Origin] = {}

    def enter(self, origin: str, job: Job) -> Lane:
        """Take a lane (whoever gets one has to leave it), or wait for one, where there is room to wait."""
        known = self._origins.setdefault(origin, _Origin())
        if known.busy < self._lanes:
            known.busy += 1
            return Lane.FREE
        if self._room == 0:
            return Lane.FULL
        self._room -= 1
        known.waiting.append(job)
        return Lane.WAITS

    def following(self, origin: str) -> Job | None:
        """The next job that waits for this origin: it goes on in the lane of the one that ended."""
        waiting = self._origins[origin].waiting
        if not waiting:
            return None
        self._room += 1
        return waiting.popleft()

    def leave(self, origin: str) -> None:
        """Let go of a lane."""
        known = self._origins[origin]
        known.busy -= 1
        if known.busy == 0 and not known.waiting:
            del self._origins[origin]


def origin_of(url: str) -> str:
    """Scheme, host and port; for what is no URL, the text itself."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        return f"{parts.scheme}://{parts.hostname}:{port}"
    except ValueError:
        return url
