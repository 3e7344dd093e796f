"""A call that failed, sent again under the same id: whether, and when.

    nothing was sent                          always, unless another agent can have it
    sent: timeout, connection lost, HTTP 5xx  where the agent takes repeats, or is only asked for something
    HTTP 429, 503 with Retry-After            after that time
    anything else                             never: it is the agent's answer

A dialect with a rule of its own for this (`repeats_after_s`) goes by that. A call that may be sent at most once is not
sent again once anything of it left.
"""

from collections.abc import Iterator, Sequence
from typing import Final, final

from dragoman.delivery.attempt import Attempt
from dragoman.model.call import AdmittedCall
from dragoman.model.errors import Failure
from dragoman.ports.attempts import AttemptOutcome
from dragoman.ports.clock import Clock

WAITS_S: Final = (1.0, 2.0, 4.0)
SHARE: Final = 0.2  # by which each wait is shorter or longer, so that calls that failed together come back apart
ALL_WAITS_S: Final = 15.0  # what the waits of one call may take together
ASKED_S: Final = 60.0  # the same where the agent itself says when to come back


@final
class Waits:
    """The waits before the further tries of one call."""

    __slots__ = ("_clock", "_left", "_most_s", "_share", "_waited_s")

    def __init__(self, waits_s: Sequence[float], clock: Clock, *, by_rule: bool = False) -> None:
        self._left: Iterator[float] = iter(waits_s)
        self._clock = clock
        # A dialect's own rule has its own numbers, to the letter, and says how long all waits may take.
        self._share = 0.0 if by_rule else SHARE
        self._most_s = ALL_WAITS_S if by_rule else ASKED_S
        self._waited_s = 0.0

    def next_s(self, asked_s: float | None, deadline: float) -> float | None:
        """The seconds until the next try; None where there is to be none.

        An agent that asks for more time than planned gets it; one that asks for too much is not waited for.
        """
        planned_s = next(self._left, None)
        if planned_s is None:
            return None
        wait_s = max(self._clock.jitter(planned_s, self._share), asked_s or 0.0)
        self._waited_s += wait_s
        most_s = ALL_WAITS_S if asked_s is None else self._most_s
        late = self._clock.monotonic() + wait_s >= deadline
        return None if late or self._waited_s > most_s else wait_s


def may_repeat(attempt: Attempt, call: AdmittedCall, *, reads: bool = False) -> bool:
    """Whether a try that failed may be followed by another; `reads`: the agent was only asked for something."""
    outcome = attempt.outcome
    if attempt.unsent:
        if call.others and not reads:
            return False  # Another agent can have it at once.
        return outcome is AttemptOutcome.UNREACHABLE or outcome is AttemptOutcome.TIMED_OUT
    if call.operation.at_most_once and not reads:
        return False
    if attempt.asked_s is not None:
        return True
    status = 0 if attempt.reply is None else attempt.reply.status
    lost = outcome is AttemptOutcome.UNREACHABLE or outcome is AttemptOutcome.TIMED_OUT
    return (lost or status >= 500) and (reads or takes_repeats(call))


def may_repeat_by_rule(attempt: Attempt, call: AdmittedCall, failure: Failure | None) -> bool:
    """The same, where the dialect's own rule repeats whatever failed in a way in which it may not fail again."""
    if failure is None or not failure.retryable:
        return False
    if attempt.unsent:
        return not call.others
    return not call.operation.at_most_once


def takes_repeats(call: AdmittedCall) -> bool:
    """Whether the agent, sent a call twice under one id, does no more than if it had come once."""
    return call.skill is not None and call.skill.idempotent
