"""One try to have a call done: what the agent replied, what went wrong, and what that says of the agent."""

from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.dialects.times import retry_after_s
from dragoman.model.errors import BadAgentReply, DragomanError
from dragoman.model.http import HttpReply
from dragoman.net.errors import NetError, Reach
from dragoman.ports.attempts import AttemptOutcome

BUSY: Final = (429, 503)  # what an agent answers that says when to ask again
AWAY: Final = (*BUSY, 502, 504)  # what is answered where it is too busy, or not there
LOST: Final = (AttemptOutcome.UNREACHABLE, AttemptOutcome.TIMED_OUT, AttemptOutcome.DROPPED)

_OF_REACH: Final[Mapping[Reach, AttemptOutcome]] = {
    Reach.FORBIDDEN: AttemptOutcome.DROPPED,  # by the hub's own rule
    Reach.UNRESOLVED: AttemptOutcome.UNREACHABLE,
    Reach.REFUSED: AttemptOutcome.UNREACHABLE,
    Reach.TLS: AttemptOutcome.UNREACHABLE,
    Reach.TIMEOUT: AttemptOutcome.TIMED_OUT,
    Reach.RESET: AttemptOutcome.UNREACHABLE,
    Reach.PROTOCOL: AttemptOutcome.BROKEN,
    Reach.TOO_LARGE: AttemptOutcome.BROKEN,
    Reach.COMPRESSED: AttemptOutcome.BROKEN,
    Reach.CLOSED: AttemptOutcome.DROPPED,
}


class Attempt(msgspec.Struct, gc=False):
    """What is known of one try; whoever makes it fills it in.

    No error is kept, only what it said: an error holds the frames that it went through, and those hold this.
    """

    number: int
    began: float  # monotonic
    reply: HttpReply | None = None
    failed: bool = False  # it came to no usable answer
    known: AttemptOutcome | None = None  # what the agent did, where its reply does not say it
    unsent: bool = False  # nothing of the request can have reached the agent
    streamed_at: float | None = None  # monotonic: the agent was sent it, to tell of it event by event
    begun: bool = False  # the agent has begun to tell of it
    told: bool = False  # what became of it

    def fail(self, error: DragomanError) -> None:
        """It came to no usable answer, and this is why."""
        self.failed = True
        cause = error.__cause__
        if isinstance(cause, NetError):
            self.known = _OF_REACH[cause.kind]
            self.unsent = not cause.sent
        elif isinstance(error, BadAgentReply):
            if self.reply is None or self.reply.status < 400:
                self.known = AttemptOutcome.BROKEN
        elif self.reply is None:
            self.known = AttemptOutcome.DROPPED

    @property
    def outcome(self) -> AttemptOutcome:
        """What the agent did; its own word that a task failed is an answer."""
        if self.known is not None:
            return self.known
        status = 200 if self.reply is None else self.reply.status
        if status >= 500:
            return AttemptOutcome.BROKEN
        if status >= 400:
            return AttemptOutcome.REFUSED
        return AttemptOutcome.BROKEN if status >= 300 else AttemptOutcome.ANSWERED

    @property
    def done_with(self) -> bool:
        """Whether the agent is there and done with this try: it failed there, and another call need not."""
        return self.reply is not None and self.reply.status not in AWAY and self.outcome not in LOST

    @property
    def asked_s(self) -> int | None:
        """For how long the agent asks to be left alone, where it is too busy and says so."""
        if self.reply is None or self.reply.status not in BUSY:
            return None
        return retry_after_s(self.reply.headers)
