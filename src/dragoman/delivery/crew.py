"""The sessions of one agent, and the calls that wait for one of them: the most urgent first.

A call goes to the session that has room for most; one that was answered goes to the session that asked.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Final, final

from dragoman.delivery.line import Line
from dragoman.delivery.session import Session

SPARE: Final = 64  # calls that may stand in a queue though they wait no more


@final
class Crew:
    """One agent's."""

    def __init__(self) -> None:
        self.sessions: Final[dict[str, Session]] = {}
        self.waiting: Final[dict[str, Line]] = {}  # every call that waits here, whatever for
        self._queue: list[tuple[tuple[float, int], Line]] = []  # those that any session may have

    @property
    def queued(self) -> int:
        """How many stand in the queue, some of whom may wait no more."""
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """Whether there is nothing here to remember."""
        return not self.sessions and not self.waiting

    def offer(self, line: Line) -> None:
        """Any session may have this call from now on."""
        if len(self._queue) > 2 * len(self.waiting) + SPARE:
            # Most of these were given away, or gave up waiting.
            self._queue = [each for each in self._queue if self._waits(each[1])]
            heapify(self._queue)
        heappush(self._queue, (line.rank, line))

    def match(self, *, draining: bool) -> Iterator[tuple[Line, Session]]:
        """Calls and the sessions that they go to now; whoever iterates gives them there before the next.

        A hub that stops gives out no more of what nobody waits for: that is for its next life.
        """
        for session in self.sessions.values():
            while session.answered and session.free > 0:
                line = session.answered.popleft()
                if self._waits(line):
                    yield line, session
        held: list[tuple[tuple[float, int], Line]] = []
        while self._queue and (session := self._roomiest()) is not None:
            rank, line = heappop(self._queue)
            if not self._waits(line):
                continue
            if draining and line.accepted:
                held.append((rank, line))
            else:
                yield line, session
        for each in held:
            heappush(self._queue, each)

    def _waits(self, line: Line) -> bool:
        """Whether a call was not given away yet, and somebody still carries it."""
        return self.waiting.get(line.id) is line

    def _roomiest(self) -> Session | None:
        best = max(self.sessions.values(), key=lambda session: session.free, default=None)
        return best if best is not None and best.free > 0 else None
