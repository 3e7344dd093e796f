"""One call that this process has: the work on it, what it has said, and how far the two have come.

Does not send (`sending.py` does) and decides nothing about sessions (`connection.py` does).
"""

import asyncio
from typing import TYPE_CHECKING, Final, final

from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.connect.pieces import pieces
from dragoman.sdk.connect.unacked import Unacked, said

if TYPE_CHECKING:
    from dragoman.sdk.work.work import Work

STALE_S: Final = 5.0  # for the frame of a later attempt to arrive


@final
class HeldCall:
    """One call, from the frame that brought it until the hub has all that was said of it."""

    __slots__ = (
        "_room",
        "again",
        "answers",
        "cancelled",
        "doubted",
        "dropped",
        "id",
        "news",
        "over",
        "said",
        "until",
        "work",
    )

    def __init__(self, call_id: str, said: Unacked, until: float) -> None:
        self.id = call_id
        self.said = said
        self.until = until  # monotonic: when nobody wants its end any more
        self.work: Work | None = None
        self.answers = 0  # how many of the caller's answers the work was given
        self.cancelled = False
        self.dropped = False  # nothing that it says counts any more
        self.doubted = 0  # the attempt that the hub called stale
        self.over = asyncio.Event()  # nothing runs, or nothing any more
        self.news = asyncio.Event()  # there is something to send, or the attempt is another
        self.again = asyncio.Event()  # what failed may be tried again
        self._room = asyncio.Event()

    @property
    def busy(self) -> bool:
        """Whether it takes capacity: one that asks, was cancelled or has ended takes none, though something may run."""
        over = self.over.is_set() or self.said.ended or self.cancelled
        return self.work is not None and not over and not self.work.asking

    @property
    def stale(self) -> bool:
        """Whether the hub does not take what is said under this attempt."""
        return self.doubted == self.said.attempt

    async def emit(self, event: str, data: JsonObject) -> None:
        """Take what the work says; waits while too much of it is unacknowledged."""
        for piece in pieces(event, data):
            while self.said.full and not self.dropped:
                self._room.clear()
                await self._room.wait()
            if self.dropped:
                return
            self.said.add(said(event, piece))
            self.news.set()

    def heard(self) -> None:
        """Something was acknowledged, or is no longer wanted: whoever waits to say more may look again."""
        self._room.set()

    def answer(self, message: JsonObject) -> None:
        """Hand on what the caller answered."""
        self.answers += 1
        if self.work is not None:
            self.work.answer(message)

    def adopted(self) -> None:
        """It goes on under another attempt: there is something to send, and perhaps room for more."""
        self.heard()
        self.wake()

    def doubt(self, clock: Clock) -> None:
        """The hub calls this attempt stale: the call is over, or goes on under a later one that is on its way here."""
        if self.stale:
            return
        self.doubted = self.said.attempt
        self.news.set()
        clock.call_at(clock.monotonic() + STALE_S, self._give_up_doubted)

    def wake(self) -> None:
        """Something about this call changed."""
        self.news.set()
        self.again.set()

    def end(self) -> None:
        """Nothing runs for it any more."""
        self.over.set()
        self.wake()

    def stop(self, reason: str) -> None:
        """Cancel its work; what that says last is sent."""
        self.cancelled = True
        if self.work is not None and not self.over.is_set():
            self.work.cancel(reason)
        self.heard()

    def drop(self, reason: str) -> None:
        """Let go of it: its work is cancelled, and nothing more is sent."""
        self.dropped = True
        self.stop(reason)
        self.wake()

    def _give_up_doubted(self) -> None:
        if self.stale:
            self.drop("the call is over, or somebody else carries it out")
