"""Calls as their callers see them, whatever dialect they were made in: one line of a list, the whole, one event."""

from datetime import datetime

import msgspec

from dragoman.dialects.platform.answers import error_body, result_of, usage_body
from dragoman.dialects.platform.wire import ErrorBody
from dragoman.dialects.refusals import failure_of, text_of
from dragoman.dialects.times import between_ms, wire_time
from dragoman.model.content import Artifact, Message, Part
from dragoman.model.errors import error_of
from dragoman.model.events import ArtifactChunk, Happened, MessageAdded, Sent, StatusChanged, TaskEvent, Watched
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import artifacts_of
from dragoman.model.objects import input_object, plain_part
from dragoman.model.route import Route, RouteReason, explained
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task


class CallItem(msgspec.Struct, frozen=True, kw_only=True):
    """A call in a list. `attempts` is how often it was given to its agent."""

    id: str
    status: TaskState
    agent: str
    skill: str | None
    caller: str
    dialect: str
    created_at: str
    started_at: str | None
    ended_at: str | None
    updated_at: str
    duration_ms: int | None
    attempts: int
    progress: float | None
    error_code: str | None
    conversation_id: str
    trace_id: str
    parent_id: str | None


class CallTiming(msgspec.Struct, frozen=True, kw_only=True):
    """When what happened, and how long a call waited, worked and took in all."""

    queued_at: str
    started_at: str | None
    ended_at: str | None
    deadline_at: str | None
    queued_ms: int | None
    agent_ms: int | None
    total_ms: int | None


class CallTrace(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call stands in its trace; `trace_id` is the caller's own spelling, where it has one."""

    trace_id: str
    span_id: str
    parent_span_id: str | None


class RouteCandidate(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that could have had a call, by its last hour with the skill as it was then.

    `passed`: the code of why it did not get the call, though it came first.
    """

    agent: str
    success: float
    calls: int
    p95_ms: int | None
    expected_ms: int
    waiting: int
    rating: float
    price_usd: float
    passed: str | None


class RouteView(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent of a call was chosen that named only a skill; `more`: candidates that are not shown."""

    skill: str
    chosen: str
    reason: RouteReason
    why: str
    candidates: list[RouteCandidate]
    more: int


class CallView(CallItem, frozen=True, kw_only=True):
    """The whole of a call. `question` is what its agent waits for; `last_event` is its number.

    `forgotten_at`: when what was written in it was removed. `usage_total`: what it used with all calls that were made
    for it; not told in a stream.
    """

    agent_version: str
    timing: CallTiming
    input: JsonObject
    result: Json
    error: ErrorBody | None
    message: str | None
    question: str | None
    artifacts: list[JsonObject]
    messages: list[JsonObject]
    usage: JsonObject | None
    usage_total: JsonObject | None
    trace: CallTrace
    chain: list[str]
    callbacks: int
    last_event: int
    forgotten_at: str | None
    route: RouteView | None


class CallEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a call, by its number; `data` depends on which it is."""

    n: int
    event: str
    at: str
    data: JsonObject


def item_of(task: Task) -> CallItem:
    """A call as a line of a list."""
    return CallItem(**_item(task))


def view_of(task: Task, usage_total: JsonObject | None = None) -> CallView:
    """The whole of a call; `usage_total` is what it used with all that it caused."""
    started, ended, trace = task.started_at, task.ended_at, task.trace
    failed = task.state in (TaskState.FAILED, TaskState.REJECTED)
    return CallView(
        **_item(task),
        agent_version=task.agent_version,
        timing=CallTiming(
            queued_at=wire_time(task.created_at),
            started_at=_time(started),
            ended_at=_time(ended),
            deadline_at=_time(task.deadline),
            queued_ms=None if started is None else between_ms(task.created_at, started),
            agent_ms=None if started is None or ended is None else between_ms(started, ended),
            total_ms=None if ended is None else between_ms(task.created_at, ended),
        ),
        input=input_object(task.asked.message.parts, None),
        result=result_of(task) if task.state is TaskState.COMPLETED else None,
        error=error_body(failure_of(task)) if failed else None,
        message=text_of(task.status_message),
        question=text_of(task.status_message) if task.state in INTERRUPTED else None,
        artifacts=[_artifact(artifact) for artifact in artifacts_of(task)],
        messages=[_message(message) for message in task.messages],
        usage=usage_body(task.usage),
        usage_total=usage_total,
        trace=CallTrace(
            trace_id=trace.given_id or f"trace_{trace.trace_id}",
            span_id=f"span_{trace.span_id}",
            parent_span_id=trace.given_span or (f"span_{trace.parent_span_id}" if trace.parent_span_id else None),
        ),
        chain=list(task.chain),
        callbacks=len(task.callbacks),
        last_event=task.last_seq,
        forgotten_at=_time(task.forgotten_at),
        route=None if task.route is None else route_of(task.route),
    )


def route_of(route: Route) -> RouteView:
    """How the agent of a call was chosen."""
    passed = dict(route.passed)
    candidates = [
        RouteCandidate(
            agent=each.agent,
            success=each.success,
            calls=each.calls,
            p95_ms=each.p95_ms,
            expected_ms=each.expected_ms,
            waiting=each.waiting,
            rating=each.rating,
            price_usd=each.price_usd,
            passed=passed.get(each.agent),
        )
        for each in route.candidates
    ]
    return RouteView(
        skill=route.skill,
        chosen=route.chosen,
        reason=route.reason,
        why=explained(route),
        candidates=candidates,
        more=route.more,
    )


def event_of(happened: Happened) -> CallEvent:
    """One event of a call."""
    event = happened.event
    name = str(type(event).__struct_config__.tag)
    return CallEvent(n=happened.seq, event=name, at=wire_time(event.at), data=_data(event))


def _item(task: Task) -> JsonObject:
    return {
        "id": task.id,
        "status": task.state,
        "agent": task.agent_id,
        "skill": task.skill,
        "caller": task.caller_id,
        "dialect": task.dialect,
        "created_at": wire_time(task.created_at),
        "started_at": _time(task.started_at),
        "ended_at": _time(task.ended_at),
        "updated_at": wire_time(task.updated_at),
        "duration_ms": None if task.ended_at is None else between_ms(task.created_at, task.ended_at),
        "attempts": task.attempt,
        "progress": task.progress,
        "error_code": None if task.failure is None else task.failure.code,
        "conversation_id": task.context_id,
        "trace_id": task.trace.trace_id,
        "parent_id": task.parent_id,
    }


def _data(event: TaskEvent) -> JsonObject:
    match event:
        case StatusChanged():
            return _told(
                status=event.state,
                progress=event.progress,
                message=None if event.message is None else text_of(event.message),
                error=None if event.failure is None else error_body(error_of(event.failure)),
                usage=usage_body(event.usage),
            )
        case Sent():
            return _told(
                agent=event.agent_id,
                attempt=event.attempt,
                remote=event.remote,
                waited_ms=event.waited_ms or None,
                failed=event.failed,
                http_status=event.status,
            )
        case MessageAdded():
            return _message(event.message)
        case ArtifactChunk():
            return {**_artifact(event.artifact), "append": event.append, "last": event.last}
        case Watched():
            return {"callbacks": len(event.callbacks)}
        case _:
            made: JsonObject = msgspec.to_builtins(event)
            return {name: value for name, value in made.items() if name not in ("at", "type")}


def _message(message: Message) -> JsonObject:
    at = None if message.at is None else wire_time(message.at)
    return _told(id=message.id, role=message.role, at=at, parts=_parts(message.parts))


def _artifact(artifact: Artifact) -> JsonObject:
    parts = _parts(artifact.parts)
    return _told(id=artifact.id, name=artifact.name, description=artifact.description, parts=parts)


def _parts(parts: tuple[Part, ...]) -> list[JsonObject]:
    return [plain_part(part) for part in parts]


def _told(**members: Json | msgspec.Struct) -> JsonObject:
    told: JsonObject = msgspec.to_builtins({name: value for name, value in members.items() if value is not None})
    return told


def _time(at: datetime | None) -> str | None:
    return None if at is None else wire_time(at)
