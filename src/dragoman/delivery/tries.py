"""The tries of one call: what became of each is told, and whether there is another is decided.

a try fails ─► may it be repeated? ─► is there time, and room in the target's budget? ─► wait ─► the next try
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import final

import msgspec

from dragoman.delivery.attempt import Attempt
from dragoman.delivery.budget import RetryBudget
from dragoman.delivery.repeats import Waits, may_repeat, may_repeat_by_rule
from dragoman.dialects.dialect import Dialect
from dragoman.model.call import AdmittedCall
from dragoman.model.errors import AgentTimeout, Failure
from dragoman.model.events import Sent, StatusChanged
from dragoman.ports.attempts import AttemptOutcome, Attempts
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered


@final
class Unwatched:
    """Who calls agents without a hub: nobody is told of its attempts."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def begin(self, call: AdmittedCall) -> None:
        """Any attempt may be made."""

    def answering(self, call: AdmittedCall) -> None:
        """Nobody is told."""

    def ended(self, call: AdmittedCall, outcome: AttemptOutcome, took_s: float, *, will_retry: bool) -> None:
        """Nobody is told."""

    async def pause(self, call: AdmittedCall, seconds: float, *, aside: bool) -> None:
        """Wait before a retry."""
        await self._clock.sleep(seconds)


class Retries:
    """When calls are sent again: the waits of the schedule, each target's budget, and who is told of attempts."""

    def __init__(
        self,
        *,
        waits_s: Sequence[float],
        clock: Clock,
        attempts: Attempts | None = None,
        resting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        self.waits_s = waits_s
        self.clock = clock
        self.attempts = attempts or Unwatched(clock)
        self.resting = resting  # gives way to others while a call waits for its next try
        self._budget = RetryBudget()

    def begin(self, call: AdmittedCall) -> None:
        """A call's first try is about to be made. Raises CircuitOpen."""
        self.attempts.begin(call)
        if self._budget.targets:
            self._budget.tried(call.agent.uuid, self.clock.monotonic())

    def take(self, call: AdmittedCall) -> bool:
        """Whether the target's budget has room for one more retry, which then counts."""
        return self._budget.take(call.agent.uuid, self.clock.monotonic())


@final
class Tries:
    """The tries of one call, of which at least the first failed."""

    __slots__ = ("_by_rule", "_call", "_retries", "_waits", "earlier")

    def __init__(self, call: AdmittedCall, retries: Retries, dialect: Dialect) -> None:
        own = dialect.repeats_after_s
        self._call = call
        self._retries = retries
        self._by_rule = bool(own)
        self._waits = Waits(own or retries.waits_s, retries.clock, by_rule=bool(own))
        self.earlier: tuple[Sent, ...] = ()  # the tries that another one followed

    async def again(self, attempt: Attempt, delivered: Delivered) -> bool:
        """Tell what became of a try, and wait for the next one; False where there is none. Raises CircuitOpen."""
        retries, call, failure = self._retries, self._call, failure_of(delivered)
        took_s = retries.clock.monotonic() - attempt.began
        wait_s = self._wait_s(attempt, failure)
        attempt.told = True
        retries.attempts.ended(call, attempt.outcome, took_s, will_retry=wait_s is not None)
        if wait_s is None:
            return False
        try:
            with retries.resting():
                await retries.attempts.pause(call, wait_s, aside=attempt.done_with)
        except AgentTimeout:
            return False  # Others had the agent until the call's time was over: the last try was the last.
        status = None if attempt.reply is None else attempt.reply.status
        code = None if failure is None else failure.code
        self.earlier += tuple(
            msgspec.structs.replace(each, failed=code, status=status, took_ms=round(took_s * 1000))
            for each in delivered.events
            if isinstance(each, Sent)
        )
        retries.attempts.begin(call)
        return True

    def all_of(self, delivered: Delivered) -> Delivered:
        """What the last try brought, after the word of those before it, which is said once."""
        if not self.earlier:
            return delivered
        earlier, self.earlier = self.earlier, ()
        return msgspec.structs.replace(delivered, events=(*earlier, *delivered.events))

    def _wait_s(self, attempt: Attempt, failure: Failure | None) -> float | None:
        call = self._call
        if not (may_repeat_by_rule(attempt, call, failure) if self._by_rule else may_repeat(attempt, call)):
            return None
        wait_s = self._waits.next_s(attempt.asked_s, call.deadline)
        if wait_s is None or not self._retries.take(call):
            return None
        return wait_s


async def read_again(attempt: Attempt, call: AdmittedCall, waits: Waits, retries: Retries) -> bool:
    """Wait until an agent that was only asked for something may be asked once more; False where it may not."""
    if not may_repeat(attempt, call, reads=True):
        return False
    wait_s = waits.next_s(attempt.asked_s, call.deadline)
    if wait_s is None or not retries.take(call):
        return False
    await retries.clock.sleep(wait_s)
    return True


def failure_of(delivered: Delivered) -> Failure | None:
    """Why a call failed, where it did."""
    last = delivered.events[-1]
    return last.failure if isinstance(last, StatusChanged) else None
