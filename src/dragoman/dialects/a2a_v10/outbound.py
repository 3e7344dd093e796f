"""Calling an agent of A2A 1.0, in either framing: what is asked, and what its answers mean.

Answers are read by their shape and not by the framing that was used, so that an agent which mixes them is understood.
"""

from datetime import datetime
from typing import Final
from urllib.parse import quote

import msgspec

from dragoman.dialects.a2a_v10.strict import hear_strict
from dragoman.dialects.a2a_v10.wire import wire_message
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.hints import hints_of
from dragoman.dialects.jsonrpc import request_body, unreadable
from dragoman.dialects.kinds import sent_once
from dragoman.dialects.shapes import may_hold_doubles, read_message, read_task, unwrapped, whole_numbers
from dragoman.dialects.times import retry_after_s
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.content import Message, Role
from dragoman.model.errors import (
    AgentError,
    AgentUnavailable,
    BadAgentReply,
    ContentRefused,
    DragomanError,
    InputRefused,
    RateLimited,
)
from dragoman.model.events import MessageAdded, Remote, StatusChanged
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.lifecycle import history_of
from dragoman.model.operations import Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

HEADERS: Final[Headers] = {
    b"content-type": b"application/json",
    # Some servers refuse a request whose Accept lacks one of these.
    b"accept": b"application/json, text/event-stream",
    b"a2a-version": b"1.0",
}
_METHODS: Final = {Verb.SEND: "SendMessage", Verb.GET: "GetTask", Verb.CANCEL: "CancelTask"}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to get or cancel."""
    headers = {**HEADERS, **outgoing.headers}
    if outgoing.verb is Verb.SEND and outgoing.message is not None:
        asked = outgoing.asked
        headers |= sent_once(outgoing)
        if asked.extensions:
            headers[b"a2a-extensions"] = ",".join(asked.extensions).encode()
        return _framed(outgoing, _send_params(outgoing, outgoing.message), headers)
    remote = outgoing.task.remote
    if outgoing.verb is Verb.SEND or remote is None or remote.task_id is None:
        return None
    return _framed(outgoing, {"id": remote.task_id}, headers)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error of the protocol is a failed task with the agent's words; rubbish raises."""
    if reply.status == 200 and (heard := hear_strict(reply.body, at)) is not None:
        return heard
    if reply.status in (429, 503):
        return _failed(at, _busy(reply))
    body = _object_of(reply)
    error: Json = body.get("error")
    if is_object(error):
        return _failed(at, _error_of(error, reply.status))
    if error is not None or reply.status >= 400:
        raise unreadable(reply)
    result: Json = body.get("result", body)
    if not is_object(result):
        raise unreadable(reply)
    kind, value = unwrapped(whole_numbers(result) if may_hold_doubles(reply.body) else result)
    if kind == "task":
        events, state, remote = read_task(value, at, known=history_of(outgoing.task))
        return Heard(events=events, settled=state in FINAL or state in INTERRUPTED, remote=remote)
    if kind == "message":
        return _direct(outgoing, value, at)
    raise BadAgentReply("The agent's answer is neither a task nor a message.", reason="invalid_response")


def _send_params(outgoing: Outgoing, message: Message) -> JsonObject:
    """The request of a send: the caller's message, as one of the agent's own task or context where it has one."""
    task, asked, remote = outgoing.task, outgoing.asked, outgoing.task.remote
    context_id = task.context_id if remote is None or remote.context_id is None else remote.context_id
    task_id = None if remote is None or asked.continues is None else remote.task_id
    params: JsonObject = {"message": wire_message(message, context_id, task_id, hints_of(task, outgoing.timeout_ms))}
    how: JsonObject = {}
    if asked.accepts:
        how["acceptedOutputModes"] = asked.accepts
    if asked.wait is Wait.NONE:
        # Nobody waits for this answer, and an id known at once is one that can be cancelled.
        how["returnImmediately"] = True
    if how:
        params["configuration"] = how
    if asked.metadata:
        params["metadata"] = asked.metadata
    return params


def _framed(outgoing: Outgoing, params: JsonObject, headers: Headers) -> HttpRequest:
    endpoint = outgoing.endpoint
    if endpoint.binding is Binding.HTTP:
        return _by_path(outgoing.verb, endpoint, params, headers)
    if endpoint.tenant is not None:
        params["tenant"] = endpoint.tenant
    body = request_body(_METHODS[outgoing.verb], outgoing.task.id, params)
    return HttpRequest(method="POST", url=endpoint.url or "", headers=headers, body=body)


def _by_path(verb: Verb, endpoint: Endpoint, params: JsonObject, headers: Headers) -> HttpRequest:
    """The same over HTTP: a path for each operation below the interface's url, the tenant in between."""
    place, question, query = (endpoint.url or "").partition("?")
    base = place.rstrip("/") + (f"/{quote(endpoint.tenant, safe='')}" if endpoint.tenant else "")
    if verb is Verb.SEND:
        url, method, body = f"{base}/message:send", "POST", _encode(params)
    else:
        # The id is the agent's own and may hold anything, a colon as well.
        named = f"{base}/tasks/{quote(params['id'], safe='')}"
        url, method, body = (named, "GET", b"") if verb is Verb.GET else (f"{named}:cancel", "POST", b"{}")
    if not body:
        headers = {name: value for name, value in headers.items() if name != b"content-type"}
    return HttpRequest(method=method, url=url + question + query, headers=headers, body=body)


def _object_of(reply: HttpReply) -> JsonObject:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise unreadable(reply) from None
    if not is_object(body):
        raise unreadable(reply)
    return body


def _direct(outgoing: Outgoing, value: JsonObject, at: datetime) -> Heard:
    message = read_message(value, f"{outgoing.task.id}-answer", at)
    if message.role is Role.USER:
        raise BadAgentReply("The agent sent the caller's own message back.", reason="invalid_response")
    said = MessageAdded(at=at, message=message, direct=True)
    done = StatusChanged(at=at, state=TaskState.COMPLETED)
    context_id = value.get("contextId")
    remote = Remote(context_id=context_id) if isinstance(context_id, str) else None
    return Heard(events=(said, done), settled=True, remote=remote)


def _failed(at: datetime, error: DragomanError) -> Heard:
    ended = StatusChanged(at=at, state=TaskState.FAILED, failure=error.failure())
    return Heard(events=(ended,), settled=True)


def _busy(reply: HttpReply) -> DragomanError:
    kind = RateLimited if reply.status == 429 else AgentUnavailable
    return kind(
        f"The agent answered HTTP {reply.status}.",
        retry_after=retry_after_s(reply.headers) or 1,
        agent_status=reply.status,
    )


def _error_of(error: JsonObject, status: int) -> DragomanError:
    """The agent's error, in either framing: what the caller got wrong keeps that meaning, all else is its failure."""
    said, code = error.get("message"), error.get("code")
    message = said if isinstance(said, str) and said else "The agent gave no message."
    framed = isinstance(code, int) and code < 0
    facts: JsonObject = {"agent_code": code} if framed else {"agent_status": status}
    reason = _reason_of(error)
    if reason is not None:
        facts["agent_reason"] = reason
    if status in (401, 403):
        return AgentError(message, **facts, reason="agent_refused_hub")
    if code == -32005 or reason == "CONTENT_TYPE_NOT_SUPPORTED" or status == 415:
        return ContentRefused(message, **facts)
    if code == -32602 or reason == "INVALID_PARAMS" or error.get("status") == "INVALID_ARGUMENT":
        return InputRefused(message, **facts)
    return AgentError(message, **facts)


def _reason_of(error: JsonObject) -> str | None:
    """The name the agent gave its error, where it has the specification's form."""
    for holder in (error.get("data"), error.get("details")):
        for item in holder if is_array(holder) else ():
            if is_object(item) and isinstance(item.get("reason"), str):
                reason: str = item["reason"]
                return reason
    return None
