"""Each try to have a call done, as delivery tells of it: breakers, metrics and figures learn from it.

A call has one attempt, and one more for each retry. What is told here is what the target did as a piece of
infrastructure: a task that failed by the agent's own account was answered.

    begin ─► (answering) ─► ended ─► pause ─► begin ─► ended
"""

from enum import StrEnum
from typing import Final, Protocol

from dragoman.model.call import AdmittedCall


class AttemptOutcome(StrEnum):
    """What became of one attempt, in the words that logs and metrics use."""

    ANSWERED = "answered"  # whatever the answer says: a result, a question, a failed task, an error of its dialect
    REFUSED = "refused"  # the target would not take it: HTTP 4xx, 429 too
    UNREACHABLE = "unreachable"  # no connection came about, or it broke off before the answer
    TIMED_OUT = "timed_out"
    BROKEN = "broken"  # HTTP 5xx, or an answer that makes no sense
    DROPPED = "dropped"  # the target had no part in it: cancelled on the way, or the hub lacks its credential


# Bound once, for what every call asks: to find a member in its enum is dear.
ANSWERED: Final = AttemptOutcome.ANSWERED
REFUSED: Final = AttemptOutcome.REFUSED


class Attempts(Protocol):
    """Is told of every attempt, on the loop's thread; costs next to nothing where all is well."""

    def begin(self, call: AdmittedCall) -> None:
        """An attempt is about to be made. Raises CircuitOpen where the target is to be left alone."""
        ...

    def answering(self, call: AdmittedCall) -> None:
        """The target has begun to tell of a call that may take long: it is there. Told once, before `ended`."""
        ...

    def ended(self, call: AdmittedCall, outcome: AttemptOutcome, took_s: float, *, will_retry: bool) -> None:
        """One attempt that had begun is over."""
        ...

    async def pause(self, call: AdmittedCall, seconds: float, *, aside: bool) -> None:
        """Wait before a retry, but not for a target that is left alone meanwhile: `begin` then says so.

        `aside`: the target is done with the last try, so others may have its place until it is the call's turn again.
        Raises AgentTimeout where that is not before the call's deadline.
        """
        ...
