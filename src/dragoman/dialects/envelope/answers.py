"""What the hub says to those who sent it a message: acknowledgements, echoes, refusals, mail."""

from datetime import datetime

import msgspec

from dragoman.dialects.dialect import wire_error
from dragoman.dialects.envelope.errors import ERRORS
from dragoman.dialects.envelope.wire import ERROR, NOBODY, PING, UPDATE, VERSION, Envelope, PingPayload, envelope_of
from dragoman.dialects.refusals import JSON_HEADERS, details_of, error_headers
from dragoman.dialects.times import wire_time
from dragoman.dialects.uuids import is_uuid4, uuid_of
from dragoman.model.answers import Mail
from dragoman.model.errors import (
    AgentNotFound,
    BadFrame,
    CapabilityMismatch,
    DragomanError,
    NotFound,
    SignatureRequired,
    TaskNotCancelable,
)
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.task import Task

_encode = msgspec.json.Encoder().encode
_decode_ping = msgspec.json.Decoder(PingPayload).decode


def json_reply(body: Json) -> HttpReply:
    """A plain JSON reply."""
    return HttpReply(status=200, headers=JSON_HEADERS, body=_encode(body))


def taken(envelope: Envelope, at: datetime, *, applied: bool = True) -> HttpReply:
    """The plain acknowledgement of a message; one that came too late to change anything says so."""
    body = _success(envelope, at)
    if not applied:
        body["applied"] = False
    return json_reply(body)


def assigned(envelope: Envelope, task: Task, task_id: str, at: datetime) -> HttpReply:
    """The acknowledgement of an assignment; a repeated one gets the very first."""
    if task.asked.message.id == envelope.message_id:
        at = task.created_at
    return _answered(envelope, at, UPDATE, {"task_id": task_id, "status": "assigned"})


def pong(envelope: Envelope, at: datetime) -> HttpReply:
    """The echo of a ping, in its payload and beside it."""
    sent = _decode_ping(envelope.payload)
    payload: JsonObject = {"nonce": sent.nonce}
    if sent.echo is not msgspec.UNSET:
        payload["echo"] = sent.echo
    return _answered(envelope, at, PING, payload, payload)


def mail(answer: Mail) -> HttpReply:
    """What waited, each message as it would have been posted."""
    return json_reply({"messages": [msgspec.Raw(body) for body in answer.messages], "cursor": answer.cursor})


def refusal(request: HttpRequest, envelope: Envelope, error: DragomanError) -> HttpReply:
    """The error envelope for a message that was refused; the answer to an error is none, that could go on for ever."""
    if isinstance(error, TaskNotCancelable):
        return taken(envelope, request.at, applied=False)
    if envelope.type == ERROR and isinstance(error, NotFound):
        return taken(envelope, request.at)
    if isinstance(error, SignatureRequired):
        # A message has its signature in itself: where one is required, none is a wrong one.
        error = CapabilityMismatch(error.message, **{**error.details, "reason": "signature_invalid"})
    error = _misnamed(envelope, error)
    code, status = wire_error(ERRORS, error)
    body: JsonObject = {}
    if envelope.type != ERROR:
        payload: JsonObject = {
            "original_message_id": envelope.message_id if isinstance(envelope.message_id, str) else None,
            "error_code": code,
            "error_message": error.message,
            "details": _details(error),
        }
        own_id = uuid_of(request.id, "refusal")
        at = wire_time(request.at)
        body = envelope_of(own_id, at, _named(envelope.to), _named(envelope.sender), ERROR, payload)
    body |= {"status": "error", "error": error.message, "error_code": code}
    return HttpReply(status=status, headers=error_headers(error), body=_encode(body))


def _success(envelope: Envelope, at: datetime) -> JsonObject:
    return {"status": "success", "message_id": envelope.message_id, "processed_at": wire_time(at)}


def _answered(
    envelope: Envelope, at: datetime, kind: str, payload: JsonObject, beside: JsonObject | None = None
) -> HttpReply:
    """An acknowledgement that is a message itself, from the one that was written to."""
    body: JsonObject = {
        **_success(envelope, at),
        "version": VERSION,
        "timestamp": wire_time(at),
        "from": _named(envelope.to),
        "to": _named(envelope.sender),
        "type": kind,
        "payload": payload,
    }
    return json_reply(body if beside is None else {**body, **beside})


def _named(party: Json) -> str:
    return party if isinstance(party, str) and party else NOBODY


def _misnamed(envelope: Envelope, error: DragomanError) -> DragomanError:
    """A party that is neither a UUID nor in the registry is no party at all: the message itself is wrong."""
    if isinstance(error, AgentNotFound):
        name = error.details.get("agent_id")
        if name in (envelope.sender, envelope.to) and not is_uuid4(str(name)):
            return BadFrame(error.message, **error.details)
    return error


def _details(error: DragomanError) -> JsonObject:
    details = details_of(error)
    if "supported" in details:
        details["supported_types"] = details.pop("supported")
    return details
