"""What the hub says to a platform caller: call answers, refusals, pages, each exactly as the document prints it."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.dialect import Notice, wire_error
from dragoman.dialects.platform.errors import ERRORS
from dragoman.dialects.platform.wire import (
    CallAnswer,
    DiscoveredAgent,
    ErrorBody,
    RegistryAnswer,
    Timing,
    TraceIds,
)
from dragoman.dialects.refusals import error_headers, failure_of, text_of, wait_of
from dragoman.dialects.times import between_ms, wire_time
from dragoman.model.agent import AgentStatus, Trust
from dragoman.model.answers import Accepted, AgentPage, Rated, Registered, Versions
from dragoman.model.circuit import Circuit
from dragoman.model.errors import AgentError, DragomanError, RateLimited
from dragoman.model.events import Usage
from dragoman.model.http import JSON_TYPE, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import output_of
from dragoman.model.objects import answer_object
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.model.usage import told_usage

STATES: Final[Mapping[TaskState, str]] = {
    TaskState.SUBMITTED: "queued",
    TaskState.WORKING: "running",
    TaskState.INPUT_REQUIRED: "running",
    TaskState.AUTH_REQUIRED: "running",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "failed",
    TaskState.CANCELED: "cancelled",
    TaskState.REJECTED: "failed",
}
AWAITING: Final[Mapping[TaskState, str]] = {TaskState.INPUT_REQUIRED: "input", TaskState.AUTH_REQUIRED: "auth"}

_COMPLETED: Final = TaskState.COMPLETED
_encode = msgspec.json.Encoder().encode
_JSON: Final[Headers] = {b"content-type": JSON_TYPE}
_LIMIT_FACTS: Final[Mapping[str, bytes]] = {
    "allowed": b"x-ratelimit-limit",
    "remaining": b"x-ratelimit-remaining",
    "reset": b"x-ratelimit-reset",
}


def json_reply(status: int, body: Json) -> HttpReply:
    """A plain JSON reply."""
    return HttpReply(status=status, headers=_JSON, body=_encode(body))


def call_answer(task: Task) -> HttpReply:
    """The answer to a waiting call: its result, or its failure with the failure's HTTP status."""
    if task.state is _COMPLETED:
        return json_reply(200, _completed(task))
    if task.state is TaskState.CANCELED:
        return json_reply(200, _shown(task, STATES[task.state]))
    if task.state in INTERRUPTED:
        return _error_reply(task, question_of(task))
    return _error_reply(task, failure_of(task))


def call_status(task: Task) -> HttpReply:
    """The answer to a poll: always 200, whatever became of the call."""
    if task.state is TaskState.COMPLETED:
        return json_reply(200, msgspec.structs.replace(_completed(task), progress=1.0))
    if task.state in (TaskState.FAILED, TaskState.REJECTED):
        return json_reply(200, _failed(task, failure_of(task)))
    return json_reply(200, _shown(task, STATES[task.state]))


def callback_request(notice: Notice) -> HttpRequest | None:
    """What is posted when a call has ended: its answer, under an id that stays the same over all attempts."""
    task = notice.task
    if not task.ended:
        return None
    if task.state is TaskState.COMPLETED:
        body = _completed(task)
    elif task.state is TaskState.CANCELED:
        body = _shown(task, STATES[task.state])
    else:
        body = _failed(task, failure_of(task))
    headers = {**_JSON, b"webhook-id": f"cb_{task.id}".encode()}
    return HttpRequest(method="POST", url=notice.url, headers=headers, body=_encode(body))


def accepted(answer: Accepted) -> HttpReply:
    """The answer to a call that is carried out later: it is on disk."""
    task = answer.task
    body: JsonObject = {"id": task.id, "call_id": task.id, "status": STATES[task.state]}
    if answer.estimate_ms is not None:
        body["estimated_duration_ms"] = answer.estimate_ms
    return json_reply(202, body)


def refusal(call_id: str, at: datetime, error: DragomanError) -> HttpReply:
    """The answer to a request that became no call."""
    shown = wire_time(at)
    body = CallAnswer(
        id=call_id,
        call_id=call_id,
        status="failed",
        error=error_body(error),
        timing=Timing(queued_at=shown, failed_at=shown),
    )
    return HttpReply(status=wire_error(ERRORS, error)[1], headers=_headers(error), body=_encode(body))


def _headers(error: DragomanError) -> Headers:
    """The headers that go with a refusal; of a limit also how much it is, and when all of it is there again."""
    headers = error_headers(error)
    facts = [(name, error.details.get(fact)) for fact, name in _LIMIT_FACTS.items()]
    if not isinstance(error, RateLimited) or not all(type(value) is int for _, value in facts):
        return headers
    return {**headers, **{name: str(value).encode() for name, value in facts}}


def error_body(error: DragomanError) -> ErrorBody:
    """An error in the platform's words; where its own code says less than ours, `details.reason` has ours."""
    code = str(wire_error(ERRORS, error)[0])
    details: JsonObject = {name: value for name, value in error.details.items() if name != "retryable"}
    if code != error.code:
        details.setdefault("reason", error.code.lower())
    wait_s = wait_of(error)
    if wait_s is not None:
        details["retry_after"] = wait_s
    return ErrorBody(code=code, message=error.message, details=details or None, retryable=error.retryable)


def agent_page(page: AgentPage) -> HttpReply:
    """The answer to a search."""
    body: JsonObject = {
        "agents": [
            DiscoveredAgent(
                id=agent.id,
                name=agent.card.name,
                skills=[skill.id for skill in agent.card.skills],
                rating=agent.figures.rating,
                response_time_p95_ms=agent.figures.p95_ms,
                availability=agent.figures.availability,
                last_seen_at=None if agent.figures.seen_at is None else wire_time(agent.figures.seen_at),
                circuit=page.circuits.get(agent.id, Circuit.CLOSED),
                dialect=agent.card.endpoints[0].dialect if agent.card.endpoints else "",
                status=agent.status,
                trust=agent.trusted,
            )
            for agent in page.agents
        ],
        "total": page.total,
        "next_cursor": page.cursor,
    }
    if page.exceeded:
        body["total_exceeded"] = True
    return json_reply(200, body)


def registered(answer: Registered, hub_url: str) -> HttpReply:
    """The answer to a registration: 201 the first time, 200 afterwards."""
    card = answer.agent.card
    body = RegistryAnswer(
        id=card.id,
        uuid=answer.agent.uuid,
        name=card.name,
        version=card.version,
        dialect=card.endpoints[0].dialect,
        status="quarantined" if answer.agent.status is AgentStatus.QUARANTINED else "registered",
        endpoint=f"{hub_url}/v1/agents/{card.id}/a2a",
        base_url=f"{hub_url}/agents/{card.id}/",
        trust=None if answer.agent.trusted is Trust.UNVERIFIED else answer.agent.trusted,
        doubt=answer.agent.trust.doubt or None,
        token=answer.token,
        signing_secret=answer.signing_secret,
    )
    return json_reply(201 if answer.created else 200, body)


def rated(answer: Rated) -> HttpReply:
    """The answer to a rating: what was said, and how its agent stands now."""
    said: JsonObject = {"id": answer.task_id, "call_id": answer.task_id, "rating": answer.stars}
    if answer.comment is not None:
        said["comment"] = answer.comment
    return json_reply(200, said | {"agent": {"id": answer.agent.id, "rating": answer.agent.figures.rating}})


def versions_page(answer: Versions) -> HttpReply:
    """The versions of a card."""
    return json_reply(200, {"items": answer.versions, "next_cursor": None})


def usage_body(usage: Usage | None) -> JsonObject | None:
    """What a call used up, with whatever else the agent reported."""
    if usage is None:
        return None
    shown = told_usage(usage)
    shown.update(shown.pop("other", None) or {})
    return shown


def result_of(task: Task) -> Json:
    """The answer of a completed call, as one object."""
    return task.result if task.result is not None else answer_object(output_of(task), None)


def _completed(task: Task) -> CallAnswer:
    task_id, started, ended = task.id, task.started_at or task.created_at, task.ended_at or task.updated_at
    return CallAnswer(
        id=task_id,
        call_id=task_id,
        status="completed",
        result=result_of(task),
        usage=None if task.usage is None else usage_body(task.usage),
        timing=Timing(
            queued_at=wire_time(task.created_at),
            started_at=wire_time(started),
            completed_at=wire_time(ended),
            duration_ms=between_ms(started, ended),
        ),
        trace=trace_ids(task),
    )


def trace_ids(task: Task) -> TraceIds:
    """The trace in the caller's own spelling, and the span of this call."""
    trace = task.trace
    return TraceIds(trace_id=trace.given_id or f"trace_{trace.trace_id}", span_id=f"span_{trace.span_id}")


def _error_reply(task: Task, error: DragomanError) -> HttpReply:
    status = wire_error(ERRORS, error)[1]
    return HttpReply(status=status, headers=error_headers(error), body=_encode(_failed(task, error)))


def _failed(task: Task, error: DragomanError) -> CallAnswer:
    started = task.started_at
    timing = Timing(
        queued_at=wire_time(task.created_at),
        started_at=None if started is None else wire_time(started),
        failed_at=wire_time(task.ended_at or task.updated_at),
    )
    return CallAnswer(
        id=task.id,
        call_id=task.id,
        status="failed",
        error=error_body(error),
        usage=usage_body(task.usage),
        timing=timing,
        trace=trace_ids(task),
    )


def _shown(task: Task, status: str) -> CallAnswer:
    canceled = task.state is TaskState.CANCELED
    return CallAnswer(
        id=task.id,
        call_id=task.id,
        status=status,
        usage=usage_body(task.usage),
        progress=None if canceled else task.progress,
        message=None if canceled else text_of(task.status_message),
        awaiting=AWAITING.get(task.state),
        timing=Timing(
            queued_at=wire_time(task.created_at),
            started_at=None if task.started_at is None else wire_time(task.started_at),
            cancelled_at=wire_time(task.ended_at) if canceled and task.ended_at else None,
        ),
        trace=trace_ids(task),
    )


def question_of(task: Task) -> DragomanError:
    """A waiting caller cannot be asked back in this dialect: it gets the question, and may go on by the call's id."""
    asked = text_of(task.status_message)
    return AgentError(
        asked or "The agent needs more input.",
        reason="input_required" if task.state is TaskState.INPUT_REQUIRED else "auth_required",
        question=asked,
        continue_call_id=task.id,
    )
