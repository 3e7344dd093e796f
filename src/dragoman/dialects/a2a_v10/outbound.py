"""Calling an agent of A2A 1.0, in either framing: what is asked, and what its answers mean.

Answers are read by their shape and not by the framing that was used, so that an agent which mixes them is understood.
"""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.a2a_v10.strict import hear_strict
from dragoman.dialects.a2a_v10.wire import wire_message
from dragoman.dialects.agent_errors import busy, error_of, failed, lacks_method, locked_out
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.hints import hints_of
from dragoman.dialects.jsonrpc import request_body, unreadable
from dragoman.dialects.kinds import sent_once
from dragoman.dialects.listening import TaskListener
from dragoman.dialects.shapes import account_in, may_hold_doubles, read_message, read_task, unwrapped, whole_numbers
from dragoman.dialects.text import path_segment
from dragoman.model.agent import Binding, Endpoint
from dragoman.model.content import Message, Role
from dragoman.model.errors import (
    BadAgentReply,
    DragomanError,
    NotSupported,
)
from dragoman.model.events import MessageAdded, Remote, StatusChanged
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import history_of
from dragoman.model.news import Known
from dragoman.model.operations import Wait
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

HEADERS: Final[Headers] = {
    b"content-type": b"application/json",
    # Some servers refuse a request whose Accept lacks one of these.
    b"accept": b"application/json, text/event-stream",
    b"a2a-version": b"1.0",
}
BY_GET: Final = "1.0-get"  # the version of an endpoint over HTTP that takes subscribers by GET alone
_METHODS: Final = {
    Verb.SEND: "SendMessage",
    Verb.STREAM: "SendStreamingMessage",
    Verb.SUBSCRIBE: "SubscribeToTask",
    Verb.GET: "GetTask",
    Verb.CANCEL: "CancelTask",
}
_SEND: Final = Verb.SEND
_SUBSCRIBE: Final = Verb.SUBSCRIBE
_HTTP: Final = Binding.HTTP
_NOBODY: Final = Wait.NONE
_SENDING: Final = frozenset({Verb.SEND, Verb.STREAM})
_STREAMED: Final = frozenset({Verb.STREAM, Verb.SUBSCRIBE})
_NO_SUCH: Final = frozenset({404, 405, 501})
_LOCKED: Final = frozenset({401, 403})

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def ask(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to follow, get or cancel."""
    headers = {**HEADERS, **outgoing.headers}
    sends = outgoing.verb in _SENDING
    message = outgoing.message
    if sends and message is not None:
        headers[b"idempotency-key"] = sent_once(outgoing)
        extensions = outgoing.asked.extensions
        if extensions:
            headers[b"a2a-extensions"] = ",".join(extensions).encode()
        return _framed(outgoing, _send_params(outgoing, message), headers)
    remote = outgoing.task.remote
    if sends or remote is None or remote.task_id is None:
        return None
    return _framed(outgoing, {"id": remote.task_id}, headers)


def hear(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error of the protocol is a failed task with the agent's words; rubbish raises.

    So does an agent that has no streams, and what is refused to a subscriber: it says nothing of the task.
    """
    if outgoing.verb is _SUBSCRIBE:
        return _subscribed(outgoing, reply, at)
    if reply.status == 200 and (heard := hear_strict(reply.body, at)) is not None:
        return heard
    result = _result_of(outgoing, reply)
    return failed(at, result) if isinstance(result, DragomanError) else _answered(outgoing, reply, result, at)


def listen(outgoing: Outgoing) -> TaskListener:
    """Who hears the agent's stream."""
    return TaskListener(outgoing)


def _subscribed(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What a subscriber is answered instead of a stream: at best the task itself, if that is settled."""
    result = _result_of(outgoing, reply)
    if isinstance(result, DragomanError):
        raise result
    heard = _answered(outgoing, reply, result, at)
    if not heard.settled:
        raise NotSupported("The agent answered a subscriber with a task, not with a stream.")
    return msgspec.structs.replace(heard, events=tuple(Known(outgoing.task).news(heard.events)))


def _result_of(outgoing: Outgoing, reply: HttpReply) -> Json | DragomanError:
    """The result of a reply in either framing, or the error that it tells of.

    Raises NotSupported where it says that there are no streams, BadAgentReply for what is neither.
    """
    if reply.status in (429, 503):
        return busy(reply)
    body = _object_in(reply)
    if outgoing.verb in _STREAMED and reply.status in _NO_SUCH:
        _require_stream(outgoing, reply, body)
    error: Json = None if body is None else body.get("error")
    if reply.status in _LOCKED and not is_object(error):
        return locked_out(reply)
    if body is None:
        raise unreadable(reply)
    if is_object(error):
        if outgoing.verb in _STREAMED and lacks_method(error, reply.status):
            raise NotSupported(error_of(error, reply.status).message)
        return error_of(error, reply.status)
    if error is not None or reply.status >= 400:
        raise unreadable(reply)
    return body.get("result", body)


def _require_stream(outgoing: Outgoing, reply: HttpReply, body: JsonObject | None) -> None:
    """Raises NotSupported where nothing is at the path of a stream, BadAgentReply where GET may find it."""
    by_path = outgoing.endpoint.binding is Binding.HTTP and outgoing.verb is Verb.SUBSCRIBE
    if reply.status == 405 and by_path and outgoing.endpoint.version != BY_GET:
        # Text and proto of the specification disagree on the verb.
        raise BadAgentReply("The agent takes no POST there.", reason="wrong_method", try_version=BY_GET)
    if body is None or not is_object(body.get("error")):
        raise NotSupported("The agent has no streams.")


def _answered(outgoing: Outgoing, reply: HttpReply, result: Json, at: datetime) -> Heard:
    if not is_object(result):
        raise unreadable(reply)
    kind, value = unwrapped(whole_numbers(result) if may_hold_doubles(reply.body) else result)
    if kind == "task":
        asks = outgoing.verb is Verb.GET  # Who asks again and again is shown what grows.
        events, state, remote = read_task(value, at, known=history_of(outgoing.task), unfinished=asks)
        return Heard(events=events, settled=state in FINAL or state in INTERRUPTED, remote=remote)
    if kind == "message":
        return _direct(outgoing, value, at)
    raise BadAgentReply("The agent's answer is neither a task nor a message.", reason="invalid_response")


def _send_params(outgoing: Outgoing, message: Message) -> JsonObject:
    """The request of a send: the caller's message, as one of the agent's own task or context where it has one."""
    task, asked = outgoing.task, outgoing.asked
    context_id, task_id, remote = task.context_id, None, task.remote
    if remote is not None:
        context_id = context_id if remote.context_id is None else remote.context_id
        task_id = None if asked.continues is None else remote.task_id
    params: JsonObject = {"message": wire_message(message, context_id, task_id, hints_of(task, outgoing.timeout_ms))}
    # Where nobody waits for this answer, an id known at once is one that can be cancelled.
    at_once = asked.wait is _NOBODY and outgoing.verb is _SEND
    if asked.accepts or at_once:
        how: JsonObject = {"acceptedOutputModes": asked.accepts} if asked.accepts else {}
        if at_once:
            how["returnImmediately"] = True
        params["configuration"] = how
    if asked.metadata:
        params["metadata"] = asked.metadata
    return params


def _framed(outgoing: Outgoing, params: JsonObject, headers: Headers) -> HttpRequest:
    endpoint = outgoing.endpoint
    if endpoint.binding is _HTTP:
        return _by_path(outgoing.verb, endpoint, params, headers)
    if endpoint.tenant is not None:
        params["tenant"] = endpoint.tenant
    body = request_body(_METHODS[outgoing.verb], outgoing.task.id, params)
    return HttpRequest(method="POST", url=endpoint.url or "", headers=headers, body=body)


def _by_path(verb: Verb, endpoint: Endpoint, params: JsonObject, headers: Headers) -> HttpRequest:
    """The same over HTTP: a path for each operation below the interface's url, the tenant in between."""
    place, question, query = (endpoint.url or "").partition("?")
    base = place.rstrip("/") + (f"/{path_segment(endpoint.tenant)}" if endpoint.tenant else "")
    method, body = "POST", b"{}"
    if verb in _SENDING:
        url, body = f"{base}/message:{verb}", _encode(params)
    else:
        # The id is the agent's own and may hold anything, a colon as well.
        url = f"{base}/tasks/{path_segment(params['id'])}"
        if verb is not Verb.GET:
            url += f":{verb}"
        if verb is Verb.GET or (verb is Verb.SUBSCRIBE and endpoint.version == BY_GET):
            method, body = "GET", b""
    if not body:
        headers = {name: value for name, value in headers.items() if name != b"content-type"}
    return HttpRequest(method=method, url=url + question + query, headers=headers, body=body)


def _object_in(reply: HttpReply) -> JsonObject | None:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return body if is_object(body) else None


def _direct(outgoing: Outgoing, value: JsonObject, at: datetime) -> Heard:
    message = read_message(value, f"{outgoing.task.id}-answer", at)
    if message.role is Role.USER:
        raise BadAgentReply("The agent sent the caller's own message back.", reason="invalid_response")
    said = MessageAdded(at=at, message=message, direct=True)
    done = StatusChanged(at=at, state=TaskState.COMPLETED, usage=account_in(value.get("metadata")))
    context_id = value.get("contextId")
    remote = Remote(context_id=context_id) if isinstance(context_id, str) else None
    return Heard(events=(said, done), settled=True, remote=remote)
