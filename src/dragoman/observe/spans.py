"""The hub's spans of a call, derived from what is stored of it; nothing is recorded for them while it runs.

    invoke_agent ─┬─ admit ─ queue ─ attempt 1 (failed) ─ attempt 2 ─ follow
                  └─ step 0 ─ step 1 …       of a workflow, which goes to no agent itself

Pure. Ids derive from the call, the kind of span and its number, so whoever looks, and whenever, finds the same; the
call's own span is the one that its agent was told. Names, attributes and events hold nothing that a caller or an agent
wrote, save what agents are registered with.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import urlsplit

import msgspec

from dragoman.model.agent import Agent, Endpoint, Via
from dragoman.model.events import ArtifactChunk, Happened, Sent, StatusChanged, TaskEvent, Watched
from dragoman.model.operations import Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.observe import span_names as names
from dragoman.observe.span import Span, SpanEvent, SpanKind, Value, span_id_of

MOST_NAME: Final = 64
MOST_VALUE: Final = 256  # of an attribute that somebody else has chosen
MOST_EVENTS: Final = 64  # on the span of one call
MOST_ATTEMPTS: Final = 64
_MS: Final = timedelta(milliseconds=1)
_SETTLES: Final = FINAL | INTERRUPTED
_BAD: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The agent of a call, as far as it is known: one that was removed has only an id."""

    agent: Agent | None = None
    endpoint: Endpoint | None = None


UNKNOWN: Final = Target()


class _Attempt(msgspec.Struct, kw_only=True):
    """One attempt, and what was told while it was the last."""

    sent: Sent
    told: list[TaskEvent] = []


def spans_of(task: Task, events: Sequence[Happened], target: Target = UNKNOWN) -> tuple[Span, ...]:
    """The spans of one call, its own first."""
    told = [each.event for each in events]
    call = _call(task, told, target)
    if task.asked.then:
        steps = _steps(task, told)
        admitted = steps[0].started_at if steps else task.ended_at
        return (call, _part(task, names.ADMIT, task.created_at, admitted), *steps)
    attempts = _attempts(told)
    spans = [call, *_before(task, attempts)]
    for number, attempt in enumerate(attempts):
        following = attempts[number + 1].sent.at if number + 1 < len(attempts) else None
        # A retry has the place that the try before it had.
        waited = number == 0 or attempts[number - 1].sent.failed is None
        spans += _tried(task, attempt, following, target, waited=waited)
    return tuple(spans)


def agent_name(agent: Agent) -> str:
    """An agent's name as a span may have it: short, and printable."""
    shown = "".join(sign if sign.isprintable() else " " for sign in agent.card.name)
    return " ".join(shown.split())[:MOST_NAME] or agent.id[:MOST_NAME]


# -- the call itself


def _call(task: Task, told: Sequence[TaskEvent], target: Target) -> Span:
    agent = target.agent
    name = task.agent_id[:MOST_NAME] if agent is None else agent_name(agent)
    asked, usage = task.asked, task.usage
    attributes: dict[str, Value] = {
        names.OPERATION: names.INVOKE_AGENT,
        names.AGENT_ID: task.agent_id,
        names.AGENT_NAME: name,
        names.AGENT_VERSION: task.agent_version,
        names.CONVERSATION: task.context_id[:MOST_VALUE],
        names.CALL: task.id,
        names.STATUS: task.state.value,
        names.DIALECT_IN: task.dialect,
        names.MODE: {Wait.END: "sync", Wait.STREAM: "stream", Wait.NONE: "async"}[asked.wait],
        names.DEPTH: len(task.chain),
        names.CALLER: task.caller_id,
        names.PRIORITY: asked.priority.name.lower(),
    }
    optional: dict[str, Value | None] = {
        names.SKILL: None if task.skill is None else task.skill[:MOST_VALUE],
        names.TRACE_GIVEN: task.trace.given_id,
        names.INPUT_TOKENS: None if usage is None else usage.input_tokens,
        names.OUTPUT_TOKENS: None if usage is None else usage.output_tokens,
        names.ERROR: _failure_of(task),
    }
    attributes |= {name: value for name, value in optional.items() if value is not None}
    return Span(
        span_id=task.trace.span_id,
        call_id=task.id,
        name=names.WORKFLOW if asked.then else f"{names.INVOKE_AGENT} {name}",
        kind=SpanKind.SERVER,
        started_at=task.created_at,
        ended_at=task.ended_at,
        parent_id=task.trace.parent_span_id,
        failed=_failure_of(task),
        attributes=attributes,
        events=tuple(_moments(told, target)[:MOST_EVENTS]),
    )


def _moments(told: Sequence[TaskEvent], target: Target) -> list[SpanEvent]:
    """Status changes, the first piece of an answer that comes in pieces, retries."""
    moments: list[SpanEvent] = []
    state, attempt, chunk = None, 0, not _streams(told, target)
    for event in told:
        match event:
            case StatusChanged() if event.state is not state:
                state = event.state
                moments.append(SpanEvent(at=event.at, name="status", attributes={names.STATUS: state.value}))
            case ArtifactChunk() if not chunk:
                chunk = True
                moments.append(SpanEvent(at=event.at, name="first chunk"))
            case Sent() if event.attempt > max(attempt, 1):
                attempt = event.attempt
                moments.append(SpanEvent(at=event.at, name="retry", attributes={names.ATTEMPT: attempt}))
            case _:
                pass
    return moments


def _failure_of(task: Task) -> str | None:
    if task.state not in _BAD:
        return None
    return "AGENT_ERROR" if task.failure is None else task.failure.code


# -- what it was made of


def _before(task: Task, attempts: Sequence[_Attempt]) -> list[Span]:
    """Admission, and what a call waits for before it is sent for the first time."""
    waits = task.asked.wait is Wait.NONE
    if attempts:
        sent = attempts[0].sent
        opened = max(task.created_at, sent.at - sent.waited_ms * _MS)
        return [_part(task, names.ADMIT, task.created_at, opened)]
    if task.ended_at is not None:
        return [_part(task, names.ADMIT, task.created_at, task.ended_at)]
    if not waits:
        return []  # It is on its way: when it was sent is noted with what its agent tells.
    return [
        _part(task, names.ADMIT, task.created_at, task.created_at),
        _part(task, names.QUEUE, task.created_at, None, attributes={names.QUEUED: task.agent_id}),
    ]


def _tried(task: Task, attempt: _Attempt, following: datetime | None, target: Target, *, waited: bool) -> list[Span]:
    """One attempt: its wait, its exchange, and what was learnt of it later."""
    sent, number = attempt.sent, attempt.sent.attempt
    spans: list[Span] = []
    if sent.waited_ms and waited:
        began = max(task.created_at, sent.at - sent.waited_ms * _MS)
        spans.append(_part(task, names.QUEUE, began, sent.at, number, attributes={names.QUEUED: task.agent_id}))
    over = next((event.at for event in attempt.told if _settles(event)), None) or following or task.ended_at
    exchanged = _exchanged(attempt, over, target)
    last = following is None and over == task.ended_at
    failed = sent.failed or (_failure_of(task) if last and exchanged == over else None)
    attributes: dict[str, Value] = {names.ATTEMPT: number, **_way(target)}
    status = sent.status or (_agent_status(task) if failed and not sent.failed else None)
    if status is not None:
        attributes[names.HTTP_STATUS] = status
    spans.append(
        _part(task, names.ATTEMPTED, sent.at, exchanged, number, SpanKind.CLIENT, failed=failed, attributes=attributes)
    )
    if exchanged is not None and exchanged != over and not sent.failed:
        followed = _failure_of(task) if last else None
        heard: dict[str, Value] = {names.EVENTS: sum(1 for event in attempt.told if event.at > exchanged)}
        spans.append(_part(task, names.FOLLOW, exchanged, over, number, failed=followed, attributes=heard))
    return spans


def _exchanged(attempt: _Attempt, over: datetime | None, target: Target) -> datetime | None:
    """When the answer to one request was there: with the first that was told, or the last where it streamed."""
    sent = attempt.sent
    if sent.failed is not None:
        return sent.at + sent.took_ms * _MS
    if _streams((sent,), target):
        return over
    # That it is worked on is noted when it is sent, before anything was heard.
    heard = (event.at for event in attempt.told if event.at > sent.at or _settles(event))
    return next(heard, over)


def _streams(told: Sequence[TaskEvent], target: Target) -> bool:
    """Whether the agent tells event by event."""
    connected = target.endpoint is not None and target.endpoint.via is Via.CONNECTED
    return connected or any(isinstance(event, Sent) and event.streamed for event in told)


def _attempts(told: Sequence[TaskEvent]) -> list[_Attempt]:
    attempts: list[_Attempt] = []
    for event in told:
        if isinstance(event, Sent):
            if not attempts or attempts[-1].sent.attempt != event.attempt or attempts[-1].sent.failed is not None:
                attempts.append(_Attempt(sent=event))
        elif attempts and not isinstance(event, Watched):
            attempts[-1].told.append(event)
    return attempts[:MOST_ATTEMPTS]


def _steps(task: Task, told: Sequence[TaskEvent]) -> list[Span]:
    """The stages of a workflow: each began when it was told."""
    total = len(task.asked.then) + 1
    begun: dict[int, datetime] = {}
    for event in told:
        if isinstance(event, StatusChanged) and event.state is TaskState.WORKING and event.progress is not None:
            begun.setdefault(round(event.progress * total), event.at)
    order = sorted(begun)
    ends = [*[begun[number] for number in order[1:]], task.ended_at]
    return [
        _part(
            task,
            names.STEP,
            begun[number],
            end,
            number,
            name=f"{names.STEP} {number}",
            failed=_failure_of(task) if number == order[-1] else None,
            attributes={names.STEP_NUMBER: number},
        )
        for number, end in zip(order, ends, strict=True)
    ]


def _part(
    task: Task,
    kind: str,
    start: datetime,
    end: datetime | None,
    number: int = 0,
    side: SpanKind = SpanKind.INTERNAL,
    *,
    name: str = "",
    failed: str | None = None,
    attributes: dict[str, Value] | None = None,
) -> Span:
    """A span below the call's own."""
    marked: dict[str, Value] = {names.CALL: task.id, **(attributes or {})}
    if failed is not None:
        marked[names.ERROR] = failed
    return Span(
        span_id=span_id_of(task.id, kind, number),
        call_id=task.id,
        name=name or kind,
        kind=side,
        started_at=start,
        ended_at=None if end is None else max(start, end),
        parent_id=task.trace.span_id,
        failed=failed,
        attributes=marked,
    )


def _way(target: Target) -> dict[str, Value]:
    """How the agent is reached."""
    endpoint = target.endpoint
    if endpoint is None:
        return {}
    way: dict[str, Value] = {
        names.DIALECT_OUT: endpoint.dialect,
        names.BINDING: endpoint.binding.value,
        names.VIA: endpoint.via.value,
    }
    if endpoint.via is Via.HTTP and endpoint.url is not None:
        way |= {names.HTTP_METHOD: "POST", **place_of(endpoint.url)}
    return way


def place_of(url: str) -> dict[str, Value]:
    """Where a request goes, as attributes."""
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port or (443 if split.scheme == "https" else 80)
    except ValueError:
        return {}
    return {names.SERVER_ADDRESS: host, names.SERVER_PORT: port} if host else {}


def _agent_status(task: Task) -> int | None:
    status = (task.failure.details or {}).get("agent_status") if task.failure is not None else None
    return status if isinstance(status, int) and not isinstance(status, bool) else None


def _settles(event: TaskEvent) -> bool:
    return isinstance(event, StatusChanged) and event.state in _SETTLES
