"""What calls came to, counted: the outcome of one, a tally of many, and what can be read off it.

Only what the agent did counts for or against it: a call that was cancelled, or failed through its caller's or the
hub's own fault, is seen in the counts and in no share. Durations are those of completed calls, in 24 buckets, each
twice as wide as the one before; a quantile is exact to the bucket and evenly spread within it.
"""

from array import array
from collections.abc import Sequence
from enum import StrEnum
from typing import Final, final

import msgspec

from dragoman.model.states import TaskState
from dragoman.model.task import Task

BUCKETS: Final = 24
ENOUGH: Final = 20  # completed calls, from which on a quantile says something


class Outcome(StrEnum):
    """What one call, or one health check, came to."""

    COMPLETED = "completed"
    FAILED = "failed"
    TIMED_OUT = "timeout"
    UNREACHABLE = "unreachable"
    CANCELED = "cancelled"
    REFUSED = "refused"  # the caller's fault, or the hub's own
    UP = "up"  # a health check that was answered
    DOWN = "down"


_DONE: Final = TaskState.COMPLETED
_COMPLETED: Final = Outcome.COMPLETED
_PLACE: Final = {outcome: place for place, outcome in enumerate(Outcome)}
_FAILURES: Final = (Outcome.FAILED, Outcome.TIMED_OUT, Outcome.UNREACHABLE)
_CALLS: Final = (Outcome.COMPLETED, *_FAILURES, Outcome.CANCELED, Outcome.REFUSED)
# Reasons for which a failed call is not the agent's fault, though its error is told as the agent's.
_NOT_ITS_FAULT: Final = frozenset({"interrupted", "input_required", "auth_required", "closed", "draining"})
_BY_CODE: Final = {
    "AGENT_ERROR": Outcome.FAILED,
    "AGENT_TIMEOUT": Outcome.TIMED_OUT,
    "AGENT_UNAVAILABLE": Outcome.UNREACHABLE,
}


def outcome_of(task: Task) -> Outcome:
    """What a call that has ended came to."""
    if task.state is _DONE:
        return _COMPLETED
    if task.state is TaskState.CANCELED:
        return Outcome.CANCELED
    failure = task.failure
    if failure is None:
        return Outcome.FAILED
    if failure.details is not None and failure.details.get("reason") in _NOT_ITS_FAULT:
        return Outcome.REFUSED
    return _BY_CODE.get(failure.code, Outcome.REFUSED)


def took_ms(task: Task) -> int:
    """How long the agent had a call that has ended; what it waited in the hub is not the agent's."""
    if task.ended_at is None:
        return 0
    return max(round((task.ended_at - (task.started_at or task.created_at)).total_seconds() * 1000), 0)


def given_ms(task: Task) -> int | None:
    """How long a call might take, by its caller's word."""
    return None if task.deadline is None else round((task.deadline - task.created_at).total_seconds() * 1000)


def bucket_of(ms: int) -> int:
    """The bucket of a duration: the first is under 1 ms, the last 70 minutes and more."""
    bucket = ms.bit_length()
    return bucket if bucket < BUCKETS else BUCKETS - 1


def quantile_ms(buckets: Sequence[int], share: float) -> int | None:
    """What that share of the durations took at most; None of none."""
    total = sum(buckets)
    if not total:
        return None
    rank = max(share * total, 1.0)
    for bucket, count in enumerate(buckets):
        if count >= rank:
            least, most = (1 << bucket - 1, (1 << bucket) - 1) if bucket else (0, 0)
            return round(least + (most - least) * (rank - 0.5) / count)
        rank -= count
    return None


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one outcome, or checks, added up; `buckets` and `sum_ms` are of their durations."""

    outcome: Outcome
    count: int
    sum_ms: int = 0
    buckets: tuple[int, ...] = (0,) * BUCKETS


@final
class Tally:
    """Calls and checks, counted: a fixed size, whatever their number."""

    __slots__ = ("_buckets", "_counts", "_sum_ms")

    def __init__(self) -> None:
        self._counts = array("Q", bytes(8 * len(Outcome)))
        self._buckets = array("I", bytes(4 * BUCKETS))
        self._sum_ms = 0

    def add(self, counted: Counted) -> None:
        """Add many of one outcome."""
        self._counts[_PLACE[counted.outcome]] += counted.count
        if counted.outcome is Outcome.COMPLETED:
            self._sum_ms += counted.sum_ms
            for bucket, count in enumerate(counted.buckets):
                self._buckets[bucket] += count

    def merge(self, other: "Tally") -> None:
        """Add all of another."""
        for place, count in enumerate(other._counts):
            self._counts[place] += count
        for bucket, count in enumerate(other._buckets):
            self._buckets[bucket] += count
        self._sum_ms += other._sum_ms

    def of(self, outcome: Outcome) -> int:
        """How many of one outcome there are."""
        return self._counts[_PLACE[outcome]]

    @property
    def calls(self) -> int:
        """All calls, whatever they came to."""
        return sum(self.of(outcome) for outcome in _CALLS)

    @property
    def failures(self) -> int:
        """Calls that failed by the agent's own doing, or because it could not be reached."""
        return sum(self.of(outcome) for outcome in _FAILURES)

    @property
    def counted(self) -> int:
        """Calls that count for or against the agent."""
        return self.of(Outcome.COMPLETED) + self.failures

    @property
    def success(self) -> float | None:
        """The share of those that count which completed; None where none does."""
        counted = self.counted
        return self.of(Outcome.COMPLETED) / counted if counted else None

    @property
    def availability(self) -> float | None:
        """The share of calls that count, and of checks, that reached the agent; None where there was none."""
        lost = self.of(Outcome.UNREACHABLE) + self.of(Outcome.DOWN)
        tried = self.counted + self.of(Outcome.UP) + self.of(Outcome.DOWN)
        return 1 - lost / tried if tried else None

    @property
    def mean_ms(self) -> int | None:
        """How long completed calls took on the average."""
        completed = self.of(Outcome.COMPLETED)
        return round(self._sum_ms / completed) if completed else None

    def quantile_ms(self, share: float) -> int | None:
        """What that share of the completed calls took at most."""
        return quantile_ms(self._buckets, share)


class SkillFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one skill of an agent, of late; all calls of a fresh one went well."""

    calls: int = 0
    success: float = 1.0
    p95_ms: int | None = None


def figures_of(tally: Tally) -> SkillFigures:
    """The figures by which an agent is chosen."""
    success = tally.success
    return SkillFigures(
        calls=tally.counted, success=1.0 if success is None else success, p95_ms=tally.quantile_ms(0.95)
    )
