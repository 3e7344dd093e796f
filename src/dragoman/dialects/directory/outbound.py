"""Calling an agent of the directory: one a2a/task to its endpoint, exactly as registered, and what its answer means.
One that says it knows a2a/stream is asked for that, where somebody wants to hear how far it is.

Published servers put their errors in four places: the frame, the result, a bare object, the status. All are heard.
"""

from datetime import datetime
from typing import Final, assert_never

import msgspec

from dragoman.dialects.agent_errors import busy, failed
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.directory.answers import TASK_TIMEOUT
from dragoman.dialects.directory.card import CANCEL_METHOD, STREAM_METHOD
from dragoman.dialects.directory.wire import MAX_TIMEOUT_MS
from dragoman.dialects.jsonrpc import request_body, unreadable
from dragoman.model.content import Artifact, Message, Part, Role, Text
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    BadAgentReply,
    ContentRefused,
    DragomanError,
    InputRefused,
    NotSupported,
)
from dragoman.model.events import ArtifactChunk, Remote, StatusChanged
from dragoman.model.http import JSON_TYPE, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.objects import input_object, parts_of_object
from dragoman.model.states import TaskState

HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"accept": JSON_TYPE}
_RESULT_MEMBERS: Final = frozenset({"status", "output", "taskId"})
OPEN: Final = frozenset({"submitted", "queued", "pending", "accepted", "running", "working", "in_progress"})
_NO_METHOD: Final = (404, 405, 501, -32601, -32004)  # by status or by code, which may be anything
_LONGEST_REASON: Final = 64
_OUT_OF_TIME: Final = "The agent ran out of time."
_SET_PHRASES: Final = frozenset({"Task failed", "Task timeout"})  # the specification's own, which say nothing more

_decode = msgspec.json.Decoder().decode


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; a task of this dialect cannot be asked after."""
    task = outgoing.task
    headers = {**HEADERS, **outgoing.headers}
    params: JsonObject = {"taskId": task.id}
    match outgoing.verb:
        case Verb.SEND | Verb.STREAM:
            headers[b"idempotency-key"] = task.id.encode()
            params |= {"action": task.skill or "", "sender": outgoing.caller, "input": _input(outgoing.message)}
            if outgoing.timeout_ms:
                params["timeoutMs"] = min(outgoing.timeout_ms, MAX_TIMEOUT_MS)
            method = "a2a/task"
            if outgoing.verb is Verb.STREAM:
                method, headers[b"accept"] = STREAM_METHOD, b"text/event-stream, application/json"
            body = request_body(method, task.id, params)
        case Verb.CANCEL:
            if outgoing.reason:
                params["reason"] = outgoing.reason
            body = request_body(CANCEL_METHOD, f"{task.id}-cancel", params)
        case Verb.GET | Verb.SUBSCRIBE:
            return None
        case _ as never:
            assert_never(never)
    return HttpRequest(method="POST", url=outgoing.endpoint.url or "", headers=headers, body=body)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says; a failure of the agent's is a failed task, an unusable answer raises BadAgentReply.

    One that says in place of a stream that there is none raises NotSupported.
    """
    if outgoing.verb is Verb.STREAM and _has_no_streams(reply):
        raise NotSupported("The agent has no streams.")
    if reply.status in (429, 503):
        return failed(at, _busy(reply))
    body = _body_of(reply)
    if body.get("error"):
        return _heard_error(at, body["error"], reply)
    result: Json = body.get("result")
    if result is None:
        if body.keys() & _RESULT_MEMBERS and reply.status < 400:
            result = body  # A result without its frame.
        elif isinstance(body.get("code"), int) and "message" in body:
            return _heard_error(at, body, reply)  # An error without its frame.
        else:
            raise unreadable(reply)
    if is_object(result):
        return _heard_result(at, _innermost(result), reply)
    return _completed(at, (Text(text=result),) if isinstance(result, str) else parts_of_object(result), None)


def _has_no_streams(reply: HttpReply) -> bool:
    if reply.status in _NO_METHOD:
        return True
    try:
        error: Json = _body_of(reply).get("error")
    except BadAgentReply:
        return False
    return is_object(error) and error.get("code") in _NO_METHOD


def _heard_result(at: datetime, result: JsonObject, reply: HttpReply) -> Heard:
    status = str(result.get("status") or "completed").lower().replace("-", "_")
    if status == "timeout":
        return failed(at, AgentTimeout(_words(result) or _OUT_OF_TIME))
    if status in ("failed", "error"):
        return failed(at, AgentError(_words(result) or "The agent failed."))
    if status == "rejected":
        return _rejected(at, _words(result))
    if status in ("cancelled", "canceled"):
        return Heard(events=(StatusChanged(at=at, state=TaskState.CANCELED),), settled=True)
    if result.get("error"):
        return _heard_error(at, result["error"], reply)
    if status in OPEN:
        # Such an agent cannot be asked again: what it has not said by now it never will.
        raise BadAgentReply("The agent answered before its task was over.", reason="not_finished", agent_status=200)
    known = result.get("taskId")
    output: Json = result.get("output") if result.keys() & _RESULT_MEMBERS else result
    if output is None:
        parts: tuple[Part, ...] = ()
    else:
        parts = (Text(text=output),) if isinstance(output, str) else parts_of_object(output)
    return _completed(at, parts, known if isinstance(known, str) and known else None)


def _heard_error(at: datetime, error: Json, reply: HttpReply) -> Heard:
    """An error in any of its forms: an object with a number, an object with words, or only words."""
    said: JsonObject = error if is_object(error) else {"message": error}
    data: JsonObject = said["data"] if is_object(said.get("data")) else {}
    code: Json = said.get("code")
    reason: Json = data.get("reason")
    message = _text(data.get("message")) or _text(said.get("message")) or f"The agent answered HTTP {reply.status}."
    if code == TASK_TIMEOUT or reason == "timeout":
        return failed(at, AgentTimeout(_OUT_OF_TIME if message in _SET_PHRASES else message))
    if reason == "rejected":
        return _rejected(at, message)
    facts: JsonObject = {}
    if isinstance(reason, str) and 0 < len(reason) <= _LONGEST_REASON:
        facts["reason"] = reason
    if isinstance(code, int) and not isinstance(code, bool):
        facts["agent_code"] = code
    if reply.status != 200:
        facts["agent_status"] = reply.status
    if code == -32602:
        refused = ContentRefused if reason == "content_not_supported" else InputRefused
        return failed(at, refused(message, **facts))
    if reply.status in (401, 403):
        facts["reason"] = "agent_refused_hub"
    return failed(at, AgentError(message, **facts))


def _innermost(result: JsonObject) -> JsonObject:
    """The result itself, where it stands only inside a second one."""
    inner: Json = result.get("result")
    if is_object(inner) and not result.keys() & _RESULT_MEMBERS and inner.keys() & _RESULT_MEMBERS:
        return inner
    return result


def _completed(at: datetime, parts: tuple[Part, ...], remote_id: str | None) -> Heard:
    chunk = ArtifactChunk(at=at, artifact=Artifact(id=RESULT_ARTIFACT, parts=parts))
    done = StatusChanged(at=at, state=TaskState.COMPLETED)
    return Heard(events=(chunk, done), settled=True, remote=Remote(task_id=remote_id) if remote_id else None)


def _rejected(at: datetime, words: str | None) -> Heard:
    said = Message(id="status-message", role=Role.AGENT, parts=(Text(text=words),), at=at) if words else None
    return Heard(events=(StatusChanged(at=at, state=TaskState.REJECTED, message=said),), settled=True)


def _busy(reply: HttpReply) -> DragomanError:
    try:
        error: Json = _body_of(reply).get("error")
    except BadAgentReply:
        error = None
    return busy(reply, _text(error.get("message") if is_object(error) else error))


def _words(result: JsonObject) -> str | None:
    """Why a task failed, in whatever place the agent says so."""
    output: Json = result.get("output")
    places: list[Json] = [result.get("error"), result.get("message"), output]
    if is_object(output):
        places += [output.get("error"), output.get("message"), output.get("text")]
    for place in places:
        words = _text(place.get("message") if is_object(place) else place)
        if words is not None:
            return words
    return None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _input(message: Message | None) -> JsonObject:
    return input_object(message.parts, None) if message is not None and message.parts else {}


def _body_of(reply: HttpReply) -> JsonObject:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if not is_object(body):
        raise unreadable(reply)
    return body
