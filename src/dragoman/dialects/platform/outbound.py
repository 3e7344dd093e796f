"""The platform's agent side: what the hub POSTs to an agent with a platform card, and what its answer means."""

from datetime import datetime
from typing import Final, assert_never

import msgspec

from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import unreadable
from dragoman.dialects.times import retry_after_s
from dragoman.model.content import Artifact, Part, Text
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    DragomanError,
    Failure,
    InputRefused,
    RateLimited,
    SkillNotFound,
)
from dragoman.model.events import ArtifactChunk, StatusChanged, Usage
from dragoman.model.http import JSON_TYPE, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.objects import input_object, parts_of_object
from dragoman.model.operations import Priority
from dragoman.model.states import TaskState
from dragoman.model.usage import read_usage

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"accept": JSON_TYPE}
_STREAM_HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"accept": b"text/event-stream, application/json"}
_KEPT_CODES: Final[dict[str, type[DragomanError]]] = {
    "VALIDATION_ERROR": InputRefused,
    "SKILL_NOT_FOUND": SkillNotFound,
    "RATE_LIMITED": RateLimited,
}
_OWN_NAMES: Final = frozenset({"self", "message", "retry_after_s", "retryable"})
_UNFINISHED: Final = ("queued", "started", "running")


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for a platform agent; it cannot be polled."""
    url = outgoing.endpoint.url or ""
    match outgoing.verb:
        case Verb.SEND | Verb.STREAM:
            body = _encode(call_body(outgoing))
            accept = _HEADERS if outgoing.verb is Verb.SEND else _STREAM_HEADERS
            headers = {**accept, **outgoing.headers, b"idempotency-key": outgoing.task.id.encode()}
            return HttpRequest(method="POST", url=url, headers=headers, body=body)
        case Verb.CANCEL:
            body = _encode({"call_id": outgoing.task.id, "reason": outgoing.reason})
            return HttpRequest(method="POST", url=_cancel_url(url), headers={**_HEADERS, **outgoing.headers}, body=body)
        case Verb.GET | Verb.SUBSCRIBE:
            return None
        case _ as never:
            assert_never(never)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an agent's answer says; a failure of its own is a failed task, an unusable answer raises BadAgentReply."""
    body = _body_of(reply)
    status: Json = body.get("status")
    error: Json = body.get("error")
    usage = read_usage(body.get("usage"))
    if reply.status != 200 or status == "failed" or error is not None:
        return _failed(at, _error_of(reply, error), usage)
    if status in ("cancelled", "canceled"):
        done = StatusChanged(at=at, state=TaskState.CANCELED, usage=usage)
        return Heard(events=(done,), settled=True)
    if status != "completed" and ("result" not in body or status in _UNFINISHED):
        # Such an agent cannot be asked again: what it has not said by now it never will.
        raise BadAgentReply(
            "The agent's answer has neither a result nor an error.", reason="invalid_response", agent_status=200
        )
    chunk = ArtifactChunk(at=at, artifact=Artifact(id=RESULT_ARTIFACT, parts=parts_of_result(body.get("result"))))
    done = StatusChanged(at=at, state=TaskState.COMPLETED, usage=usage)
    return Heard(events=(chunk, done), settled=True)


def failed_heard(error: Json, at: datetime) -> Heard:
    """What an agent's error says that came in the middle of its stream."""
    return _failed(at, _error_of(HttpReply(status=200), error), None)


def call_body(outgoing: Outgoing) -> JsonObject:
    """A call as a platform agent is sent it."""
    task, asked = outgoing.task, outgoing.asked
    options: JsonObject = {"timeout_ms": outgoing.timeout_ms, "priority": _word(asked.priority)}
    options["stream"] = outgoing.verb is Verb.STREAM
    known = None if task.remote is None else task.remote.context_id
    context: JsonObject = {"conversation_id": known or task.context_id}
    if asked.parent_id is not None:
        context["parent_execution_id"] = asked.parent_id
    if asked.continues is not None:
        context["continue_call_id"] = task.id
    # An agent that calls stands at the end of its chain already.
    context["call_chain"] = task.chain if task.chain[-1:] == (outgoing.caller,) else (*task.chain, outgoing.caller)
    context["metadata"] = asked.metadata or {}
    return {
        "call_id": task.id,
        "caller_agent_id": outgoing.caller,
        "target_agent_id": task.agent_id,
        "skill": task.skill,
        "input": _input_of(outgoing),
        "options": options,
        "context": context,
    }


def _input_of(outgoing: Outgoing) -> Json:
    parts = outgoing.message.parts if outgoing.message is not None else ()
    return input_object(parts, None) if parts else {}


def parts_of_result(result: Json) -> tuple[Part, ...]:
    """What an agent gave as its result, as parts."""
    if result is None:
        return ()
    return (Text(text=result),) if isinstance(result, str) else parts_of_object(result)


def _cancel_url(url: str) -> str:
    path, question, query = url.partition("?")
    return path.rstrip("/") + "/cancel" + question + query


def _word(priority: Priority) -> str:
    return priority.name.lower()


def _body_of(reply: HttpReply) -> JsonObject:
    try:
        body: Json = _decode(reply.body) if reply.body else {}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if is_object(body):
        return body
    if reply.status == 200:
        raise unreadable(reply, "a JSON object")
    return {}


def _failed(at: datetime, failure: Failure, usage: Usage | None) -> Heard:
    ended = StatusChanged(at=at, state=TaskState.FAILED, failure=failure, usage=usage)
    return Heard(events=(ended,), settled=True)


def _error_of(reply: HttpReply, error: Json) -> Failure:
    said: JsonObject = error if is_object(error) else {}
    code: Json = said.get("code")
    message = str(said.get("message") or f"The agent answered HTTP {reply.status}.")
    details: JsonObject = dict(said["details"]) if is_object(said.get("details")) else {}
    wait_s = retry_after_s(reply.headers)
    if wait_s is not None:
        details["retry_after"] = wait_s
    if isinstance(code, str) and code in _KEPT_CODES:
        return _KEPT_CODES[code](message, **_safe(details)).failure()
    if reply.status == 429:
        return RateLimited(message, **_safe(details)).failure()
    if reply.status == 503:
        return AgentUnavailable(message, **_safe(details)).failure()
    if reply.status == 504:
        return AgentTimeout(message, **_safe(details)).failure()
    if reply.status in (401, 403):
        details["reason"] = "agent_refused_hub"
    if isinstance(code, str):
        details["agent_code"] = code
    if reply.status != 200:
        details["agent_status"] = reply.status
    return AgentError(message, **_safe(details), retryable=bool(said.get("retryable"))).failure()


def _safe(details: JsonObject) -> JsonObject:
    """Details as keyword arguments: names that the errors themselves use are the agent's to lose."""
    return {name: value for name, value in details.items() if name not in _OWN_NAMES}
