"""The metrics of one process: told of calls that have ended, of each attempt, request and refusal.

An attempt is only noted, for its caller still waits; it is counted with the others before somebody looks.

Every label's value comes from the hub's own tables: what a request says is looked up there, or counted as `other`.
Nothing is made into text here: `scrape.py` reads the cells when somebody asks.
"""

import re
from collections import Counter as Tally
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.model.call import AdmittedCall
from dragoman.model.content import Blob
from dragoman.model.ended import Alike, Carried
from dragoman.model.errors import BY_CODE, BadSignature, DragomanError, NotAuthenticated, NotAuthorized, RateLimited
from dragoman.model.events import Usage
from dragoman.model.fit import BLOB, changed
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.observe import names
from dragoman.observe.cells import (
    COMBINATION,
    IDLE_S,
    OTHER,
    CallCell,
    Counters,
    Histogram,
    Histograms,
    Values,
    shown_labels,
)
from dragoman.observe.exposition import Sample
from dragoman.observe.names import Label
from dragoman.ports.attempts import AttemptOutcome
from dragoman.ports.clock import Clock

SKILLS: Final = 2.5  # so many times as many skills as targets have a place,
CALLS: Final = 10  # and so many combinations of caller, target and skill
MOST_CARRIED: Final = 20_000
MOST_NOTED: Final = 1000  # attempts that are noted; with so many they are counted at once
MOST_TOKENS: Final = 10**9
MOST_USD: Final = 10**4

STATUSES: Final = ("completed", "failed", "cancelled")
STREAM_KINDS: Final = ("caller", "session", "feed")
NO_DIALECT: Final = "none"  # a page of the hub's own, or a request that nothing claimed
SCOPES: Final = frozenset({"agent", "key", "tenant", "conversation"})  # whose limit it was
LIMITS: Final = frozenset({"requests_per_minute", "requests_per_hour", "concurrent_requests"})
_BEFORE_CAPITAL: Final = re.compile(r"(?<!^)(?=[A-Z])")
_STATUS: Final = {TaskState.COMPLETED: 0, TaskState.CANCELED: 2}
_ANSWERED: Final = AttemptOutcome.ANSWERED
_COMPLETED: Final = TaskState.COMPLETED
_END: Final = Wait.END
_BOUNDS: Final = names.CALL_DURATION.bounds
_REPLAYED: Final = "replayed"
_REASONS: Final = {
    None: "missing",
    "unknown_key": "unknown",
    "unknown_token": "unknown",
    "not_a_key": "malformed",
    "not_bearer": "malformed",
    "two_credentials": "malformed",
    "revoked": "revoked",
    "expired": "expired",
}


class Metrics:
    """Counts what happens in one process."""

    def __init__(self, *, clock: Clock, max_values: int = 200) -> None:
        self._clock = clock
        self.max_values: Final = max_values
        self.requests: Final[Tally[tuple[str, str, int]]] = Tally()  # by dialect, operation and status
        self.early: Final[Tally[str]] = Tally()  # refused before it was known what they are, by code
        self.streams: Final[Tally[str]] = Tally(dict.fromkeys(STREAM_KINDS, 0))
        self.streams_cut = 0
        self.calls: Final[dict[tuple[str, str, str], CallCell]] = {}
        callers = Values(Label.CALLER, max_values)
        targets = Values(Label.TARGET, max_values)
        self._values = (callers, targets, Values(Label.SKILL, round(max_values * SKILLS)))
        self._most_calls = max_values * CALLS
        self._calls_overflowed = 0
        bounded = {Label.CALLER: callers, Label.TARGET: targets}
        self._failures = Counters(names.CALL_FAILURES, bounded)
        self._attempts = Counters(names.ATTEMPTS, bounded)
        self._retries = Counters(names.RETRIES, bounded)
        self._tokens = Counters(names.USAGE_TOKENS, bounded)
        self._cost = Counters(names.USAGE_COST, bounded)
        self._refusals = Counters(names.REFUSALS)
        self._auth_failures = Counters(names.AUTH_FAILURES)
        self._limited = Counters(names.RATE_LIMITED)
        self._deliveries = Counters(names.DELIVERIES)
        self._translations = Counters(names.TRANSLATIONS)
        self._losses = Counters(names.TRANSLATION_LOSSES)
        self._linking: frozenset[str] = frozenset()  # dialects whose callers get files by link
        self._first_events = Histograms(names.FIRST_EVENT, bounded)
        self._overhead: dict[tuple[str, str], Histogram] = {}
        self._carried: dict[str, Carried] = {}  # calls that have not ended
        self._noted: list[tuple[str, AttemptOutcome, bool, str, str, float]] = []  # attempts that are not counted yet

    # -- what happens

    def ended(self, alike: Alike) -> None:
        """Calls that are alike have ended."""
        last, calls, now = alike[-1], len(alike), self._clock.monotonic()
        task = last.task
        key = (task.caller_id, task.agent_id, task.skill or OTHER)
        cell = self.calls.get(key)
        if cell is None:
            cell = self._placed(key, calls)
        cell.statuses[_STATUS.get(task.state, 1)] += calls
        cell.took.observe_all([each.took_s for each in alike])
        cell.exemplar = (task.trace.trace_id, last.took_s, last.at)
        cell.last = now
        if task.state is not _COMPLETED:
            self._failed(alike, now)
        if task.usage is not None:
            self._used(cell.key[0], alike, now)
        if task.dialect in self._linking:
            self._linked(alike, now)
        if last.carried is not None and last.carried.dialect is not None:
            self._bridged(alike, (task.dialect, last.carried.dialect), now)

    def attempted(self, call: AdmittedCall, outcome: AttemptOutcome, took_s: float, will_retry: bool) -> None:
        """One attempt of a call is over."""
        dialect = call.endpoint.dialect
        self._noted.append((call.agent.card.id, outcome, will_retry, call.task.id, dialect, took_s))
        said, sent = call.operation.message, call.message
        if sent is not said and outcome is _ANSWERED:
            for facet in changed(said.parts, sent.parts):
                self._losses.add((dialect, facet), self._clock.monotonic())
        if len(self._noted) >= MOST_NOTED:
            self._count_attempts()

    def carried(self) -> dict[str, Carried]:
        """How calls were carried that have not ended, by their ids."""
        self._count_attempts()
        return self._carried

    def _count_attempts(self) -> None:
        noted, self._noted = self._noted, []
        now = self._clock.monotonic()
        for target, outcome, will_retry, task_id, dialect, took_s in noted:
            self._attempts.add((target, outcome), now)
            if will_retry:
                self._retries.add((target, outcome), now)
            carried = self._carried.get(task_id)
            if carried is None:
                self._carry(task_id, Carried(dialect, 1, took_s))
            else:
                carried.dialect = dialect
                carried.attempts += 1
                carried.took_s += took_s

    def spoke(self, call: AdmittedCall, after_s: float) -> None:
        """A target that streams has said the first piece of its answer, so long after it was sent the call."""
        self._first_events.observe((call.agent.id,), self._clock.monotonic(), after_s)

    def waited(self, task_id: str, waited_ms: int) -> None:
        """A call has waited for its turn."""
        carried = self._carried.get(task_id)
        if carried is None:
            self._carry(task_id, Carried(waited_ms=waited_ms))
        else:
            carried.waited_ms = waited_ms

    def refused(self, dialect: str, error: DragomanError) -> None:
        """A request was refused."""
        now = self._clock.monotonic()
        self._refusals.add((dialect or NO_DIALECT, error.code), now)
        if isinstance(error, NotAuthenticated | NotAuthorized):
            self._auth_failures.add((_reason(error),), now)
        elif isinstance(error, RateLimited):
            self._limited.add((_known(error, "scope", SCOPES), _known(error, "limit", LIMITS)), now)

    def expect(self, dialects: Iterable[str], linking: Iterable[str] = ()) -> None:
        """Have the worst counters there from the start, so that their first step is seen as one.

        Callers of the dialects that are `linking` get files by link.
        """
        self._linking = frozenset(linking)
        for dialect in (NO_DIALECT, *dialects):
            self._refusals.add((dialect, DragomanError.code), self._clock.monotonic(), 0)

    def stream_opened(self, kind: str) -> None:
        """Somebody reads a stream from now on."""
        self.streams[kind] += 1

    def stream_closed(self, kind: str, cut: bool) -> None:
        """Nobody reads it any more; `cut`: its reader was too slow."""
        self.streams[kind] -= 1
        if cut:
            self.streams_cut += 1

    def delivered(self, outcome: str) -> None:
        """A callback was tried, with this outcome."""
        self._deliveries.add((outcome,), self._clock.monotonic())

    # -- for the scrape

    def counters(self) -> tuple[Counters, ...]:
        """Every metric that only counts."""
        self._count_attempts()
        return (
            *(self._failures, self._attempts, self._retries, self._tokens, self._cost),
            *(self._refusals, self._auth_failures, self._limited, self._deliveries, self._translations, self._losses),
        )

    def histograms(self) -> tuple[Histograms, ...]:
        """Every metric that only says how long something took, by labels that are bounded."""
        return (self._first_events,)

    def samples(self) -> Iterator[Sample]:
        """The figures that are kept here in other shapes."""
        classes: Tally[tuple[str, str, str]] = Tally()
        for (dialect, operation, status), count in self.requests.items():
            classes[dialect or NO_DIALECT, _spelled(operation), f"{status // 100}xx"] += count
        for key, count in classes.items():
            yield Sample(names.HTTP_REQUESTS, key, count)
        for code, count in self.early.items():
            yield Sample(names.EARLY_REFUSALS, (code,), count)
        for kind, count in self.streams.items():
            yield Sample(names.STREAMS, (kind,), count)
        yield Sample(names.STREAM_DROPS, ("slow",), self.streams_cut)
        for pair, cells in self._overhead.items():
            yield Sample(names.OVERHEAD, pair, cells)
        for values in self._values:
            yield Sample(names.LABEL_OVERFLOW, (values.label,), values.overflowed)
        told_apart = (*self.counters(), *self.histograms())
        beyond = self._calls_overflowed + sum(each.overflowed for each in told_apart)
        yield Sample(names.LABEL_OVERFLOW, (COMBINATION,), beyond)

    def targets(self) -> frozenset[str]:
        """The targets that have a place."""
        return frozenset(cell.key[1] for cell in self.calls.values()) - {OTHER}

    def give_back(self) -> None:
        """Let go of what has not moved for an hour: its places are for others."""
        before = self._clock.monotonic() - IDLE_S
        for key, cell in tuple(self.calls.items()):
            if cell.last < before:
                del self.calls[key]
                self._give(cell.key)
        for cells in (*self.counters(), *self.histograms()):
            cells.give_back(before)

    # -- of one call

    def _placed(self, given: tuple[str, str, str], calls: int) -> CallCell:
        """The cell for so many calls of a combination that has none of its own yet, or will have none."""
        caller, target, skill = given
        # A subject of somebody else's tokens is no name of ours: its issuer's is.
        caller = caller.partition("|")[0] + "|" if "|" in caller else caller
        callers, targets, skills = self._values
        key = (callers.take(caller, calls), targets.take(target, calls), skills.take(skill, calls))
        known = self.calls.get(key)
        if known is None and len(self.calls) >= self._most_calls:
            self._calls_overflowed += calls
            self._give(key)
            key = (OTHER, OTHER, OTHER)
            known = self.calls.get(key)
        elif known is not None:
            self._give(key)
        if known is None:
            shown = shown_labels(names.CALL_DURATION.labels, key)
            known = self.calls[key] = CallCell(key, shown, len(STATUSES), _BOUNDS)
        return known

    def _give(self, key: tuple[str, str, str]) -> None:
        for values, value in zip(self._values, key, strict=True):
            values.give(value)

    def _carry(self, task_id: str, carried: Carried) -> None:
        if len(self._carried) >= MOST_CARRIED:
            del self._carried[next(iter(self._carried))]
        self._carried[task_id] = carried

    def _failed(self, alike: Alike, now: float) -> None:
        for each in alike:
            failure = each.task.failure
            if failure is not None:
                code = failure.code
                self._failures.add((each.task.agent_id, code if code in BY_CODE else OTHER), now)

    def _linked(self, alike: Alike, now: float) -> None:
        for each in alike:
            if _has_file(each.task):
                self._losses.add((each.task.dialect, BLOB), now)

    def _bridged(self, alike: Alike, pair: tuple[str, str], now: float) -> None:
        if pair[0] != pair[1]:
            self._translations.add(pair, now, len(alike))
        if alike[0].task.asked.wait is _END:
            cells = self._overhead.get(pair)
            if cells is None:
                cells = self._overhead[pair] = Histogram(names.OVERHEAD.bounds)
            cells.observe_all([each.hub_s for each in alike])

    def _used(self, caller: str, alike: Alike, now: float) -> None:
        for each in alike:
            if each.task.usage is not None:
                self._used_by_one(caller, each.task.agent_id, each.task.usage, now)

    def _used_by_one(self, caller: str, target: str, usage: Usage, now: float) -> None:
        """What an agent says a call used; nonsense is not counted."""
        spent = (("both", usage.tokens),)
        if usage.input_tokens is not None or usage.output_tokens is not None:
            spent = (("input", usage.input_tokens), ("output", usage.output_tokens))
        for direction, tokens in spent:
            if tokens is not None and 0 < tokens <= MOST_TOKENS:
                self._tokens.add((caller, target, direction), now, tokens)
        if usage.cost_usd is not None and 0 < usage.cost_usd <= MOST_USD:
            self._cost.add((caller, target), now, usage.cost_usd)


def _has_file(task: Task) -> bool:
    """Whether there is a file in what an agent made."""
    return any(isinstance(part, Blob) for said in (*task.artifacts, *task.messages) for part in said.parts)


def _spelled(operation: str) -> str:
    """The name of an operation as it is shown: of our own type, or the path of a page."""
    if operation.startswith("/"):
        return operation
    return _BEFORE_CAPITAL.sub("_", operation).lower() if operation.isalpha() else "unknown"


def _known(error: DragomanError, name: str, known: frozenset[str]) -> str:
    """A detail of an error, if it is one of a few words."""
    said = error.details.get(name)
    return said if isinstance(said, str) and said in known else OTHER


def _reason(error: DragomanError) -> str:
    """Why somebody was refused, in one of a few words."""
    if isinstance(error, NotAuthorized):
        return "scope"
    said = error.details.get("reason")
    if isinstance(error, BadSignature):
        return "replay" if said == _REPLAYED else "signature"
    return _REASONS.get(said if isinstance(said, str) else None, OTHER)
