"""Calling an agent of A2A 0.3 over HTTP+JSON: what is asked, and what its answers mean.

Only where an agent offers nothing better: over JSON-RPC its shapes cannot be misread.
"""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.a2a_v03.rest_errors import NAMES
from dragoman.dialects.a2a_v03.rest_wire import own_answer, proto_params
from dragoman.dialects.agent_errors import failed, refused_by
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.jsonrpc import RpcError, unreadable
from dragoman.dialects.kinds import (
    JSON_OR_STREAM,
    SENDING,
    error_of,
    has_no_stream,
    hear_object,
    sent_once,
    sent_params,
)
from dragoman.dialects.protojson import camelled
from dragoman.dialects.shapes import may_hold_doubles, whole_numbers
from dragoman.dialects.text import path_segment
from dragoman.model.errors import DragomanError, NotSupported
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array, is_object

HEADERS: Final[Headers] = {**JSON_OR_STREAM, b"a2a-version": b"0.3"}
_CODES: Final = {name: code for code, names in NAMES.items() for name in names}
# What servers mean by a status whose body says no more than a sentence.
_STATUS_CODES: Final = {404: -32001, 409: -32002, 415: -32005, 422: -32602, 501: -32004}
_PYTHON: Final = (b"uvicorn", b"hypercorn")  # how servers name themselves whose SDK encodes files twice
_NO_STREAM: Final = frozenset({404, 405, 501})
_FORM: Final = "an answer of A2A 0.3 over HTTP"

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def ask_rest(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb; without the agent's own task id there is nothing to get or to cancel."""
    asked, remote = outgoing.asked, outgoing.task.remote
    base = f"{(outgoing.endpoint.url or '').rstrip('/')}/v1"
    headers = {**HEADERS, **outgoing.headers}
    if outgoing.verb in SENDING:
        if outgoing.message is None:
            return None
        headers[b"idempotency-key"] = sent_once(outgoing)
        if asked.extensions:
            headers[b"x-a2a-extensions"] = ",".join(asked.extensions).encode()
        body = _encode(proto_params(sent_params(outgoing, outgoing.message)))
        verb = "stream" if outgoing.verb is Verb.STREAM else "send"
        return HttpRequest(method="POST", url=f"{base}/message:{verb}", headers=headers, body=body)
    if outgoing.verb is Verb.SUBSCRIBE or remote is None or remote.task_id is None:
        return None
    # An id is the agent's own business: a colon or a slash in it must not be taken for ours.
    task = f"{base}/tasks/{path_segment(remote.task_id)}"
    if outgoing.verb is Verb.CANCEL:
        return HttpRequest(method="POST", url=f"{task}:cancel", headers=headers, body=b"{}")
    del headers[b"content-type"]
    return HttpRequest(method="GET", url=task, headers=headers)


def hear_rest(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says. An error of the protocol is a failed task with the agent's words; rubbish raises.

    So does an agent that has no streams, or takes subscribers by another method of HTTP than the one it was asked by.
    """
    refused = refused_by(reply, at)
    if refused is not None:
        return refused
    body = _object_in(reply)
    if outgoing.verb is Verb.STREAM and reply.status >= 400:
        _require_stream(outgoing, reply, body)
    if body is None:
        raise unreadable(reply, _FORM)
    if reply.status >= 400:
        return failed(at, _error_in(body, reply))
    if may_hold_doubles(reply.body):
        body = whole_numbers(body)
    twice = reply.headers.get(b"server", b"").startswith(_PYTHON)
    return hear_object(outgoing, own_answer(camelled(body), twice=twice), at)


def probe_rest(url: str) -> HttpRequest:
    """A look at a task that nobody has."""
    headers = {name: value for name, value in HEADERS.items() if name != b"content-type"}
    return HttpRequest(method="GET", url=f"{url.rstrip('/')}/v1/tasks/dragoman-probe-no-such-task", headers=headers)


def answers_rest_probe(reply: HttpReply) -> bool:
    """Whether the answer shows that tasks are known here: only that this one is not found does."""
    if reply.status in (401, 403):
        return True
    body = _object_in(reply)
    if reply.status != 404 or body is None:
        return False
    error = _rpc_error(body, reply)
    return error is not None and error.code == -32001


def _require_stream(outgoing: Outgoing, reply: HttpReply, body: JsonObject | None) -> None:
    """Raises NotSupported where an answer says that there are no streams."""
    error = None if body is None else _rpc_error(body, reply)
    unknown_task = error is not None and error.code == -32001 and outgoing.task.remote is not None
    if reply.status in _NO_STREAM and not unknown_task:
        raise NotSupported("The agent has no streams.")
    if error is not None and has_no_stream(outgoing, error.code):
        raise NotSupported(error.message)


def _object_in(reply: HttpReply) -> JsonObject | None:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return body if is_object(body) else None


def _error_in(body: JsonObject, reply: HttpReply) -> DragomanError:
    error = _rpc_error(body, reply)
    if error is None:
        raise unreadable(reply, _FORM)
    told = error_of(error)
    told.details["agent_status"] = reply.status
    return told


def _rpc_error(body: JsonObject, reply: HttpReply) -> RpcError | None:
    """The error that a body tells of: by its code, its type, its reason, or the HTTP status; None where it is none."""
    inner: JsonObject = body["error"] if is_object(body.get("error")) else {}
    message: Json = body.get("message", inner.get("message"))
    if not isinstance(message, str):
        return None
    details: Json = inner.get("details")
    reasons = [each.get("reason") for each in details if is_object(each)] if is_array(details) else []
    code: Json = body.get("code")
    if not isinstance(code, int) or code > -32000:
        named = [_CODES[name] for name in (body.get("type"), *reasons) if isinstance(name, str) and name in _CODES]
        code = named[0] if named else _STATUS_CODES.get(reply.status, -32603)
    return RpcError(code=code, message=message)
