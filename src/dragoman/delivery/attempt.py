"""One try to have a call done: what the agent replied, what went wrong, and what that says of the agent."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.times import retry_after_s
from dragoman.model.errors import BadAgentReply, DragomanError
from dragoman.net.errors import NetError, Reach
from dragoman.ports.attempts import AttemptOutcome

if TYPE_CHECKING:
    from dragoman.model.http import HttpReply

BUSY: Final = (429, 503)  # what an agent answers that says when to ask again

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


@final
class Attempt:
    """What is known of one try; whoever makes it fills it in."""

    __slots__ = ("began", "begun", "error", "known", "number", "reply", "told")

    def __init__(self, number: int, began: float) -> None:
        self.number: Final = number
        self.began: Final = began  # monotonic
        self.reply: HttpReply | None = None
        self.error: DragomanError | None = None  # why it came to no usable answer
        self.known: AttemptOutcome | None = None  # where neither of them says what the agent did
        self.begun = False  # the agent has begun to tell of it
        self.told = False  # what became of it

    @property
    def outcome(self) -> AttemptOutcome:
        """What the agent did; its own word that a task failed is an answer."""
        reply, error = self.reply, self.error
        if self.known is not None:
            return self.known
        if reply is not None:
            if reply.status >= 500:
                return AttemptOutcome.BROKEN
            if reply.status >= 400:
                return AttemptOutcome.REFUSED
            broken = reply.status >= 300 or isinstance(error, BadAgentReply)
            return AttemptOutcome.BROKEN if broken else AttemptOutcome.ANSWERED
        if error is None:
            return AttemptOutcome.ANSWERED
        if isinstance(error.__cause__, NetError):
            return _OF_REACH[error.__cause__.kind]
        return AttemptOutcome.BROKEN if isinstance(error, BadAgentReply) else AttemptOutcome.DROPPED

    @property
    def unsent(self) -> bool:
        """Whether nothing of the request can have reached the agent."""
        cause = None if self.error is None else self.error.__cause__
        return self.reply is None and isinstance(cause, NetError) and not cause.sent

    @property
    def asked_s(self) -> int | None:
        """For how long the agent asks to be left alone, where it is too busy and says so."""
        if self.reply is None or self.reply.status not in BUSY:
            return None
        return retry_after_s(self.reply.headers)
