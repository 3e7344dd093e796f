"""The envelope on one connection: envelopes and acknowledgements both ways, told apart at one look.

An acknowledgement may say more than that a message came: an error, how far the task is, its outcome. That is a report
like one that is posted, and becomes one here.
"""

from typing import Final

import msgspec

from dragoman.dialects.dialogue import UNREADABLE, Dialogue, Glance
from dragoman.dialects.envelope.errors import INTERNAL_ERROR
from dragoman.dialects.envelope.inbound import MAILBOX, MESSAGES
from dragoman.dialects.envelope.wire import (
    ASSIGNMENT,
    COMPLETION,
    ERROR,
    PATH,
    STATES,
    TRACEPARENT,
    UPDATE,
    Completion,
    Envelope,
    Update,
    envelope_of,
)
from dragoman.dialects.hints import HINTS
from dragoman.dialects.uuids import uuid_of
from dragoman.model.http import JSON_TYPE
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.states import TaskState

_ACKS: Final = ("success", "error")
_ENDS: Final = ("completed", "failed")


class _Frame(msgspec.Struct, frozen=True):
    """A message or an acknowledgement, as far as it says which of the two it is."""

    message_id: Json = None
    type: Json = None
    status: Json = None
    payload: msgspec.Raw = msgspec.Raw(b"")


class _Told(msgspec.Struct, frozen=True):
    """What a payload names."""

    task_id: Json = None
    original_message_id: Json = None
    metadata: Json = None


_decode_frame = msgspec.json.Decoder(_Frame).decode
_decode_told = msgspec.json.Decoder(_Told).decode
_decode_envelope = msgspec.json.Decoder(Envelope).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_NOTHING: Final = _Told()


def glance(frame: bytes) -> Glance:
    """What kind of frame this is; what cannot be read is a message, for its refusal says why."""
    try:
        seen = _decode_frame(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return UNREADABLE
    told = _told(seen.payload)
    answers: Json = None
    if seen.type == ERROR and told.original_message_id is not None:
        answers = told.original_message_id
    elif seen.status in _ACKS:
        answers = seen.message_id
    return Glance(
        id=_text(seen.message_id),
        answers=_text(answers),
        about=_text(told.task_id),
        trace=_trace(told.metadata),
        speaks=bool(seen.type),
    )


def report(sent: bytes, ack: bytes) -> bytes | None:
    """The message that reports what an acknowledgement of an assignment says; None where it only says that it came."""
    asked = _decode_envelope(sent)
    try:
        answer: Json = _decode(ack)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None  # More than that it came cannot be read.
    task_id = _told(asked.payload).task_id
    if asked.type != ASSIGNMENT or not isinstance(task_id, str) or not is_object(answer):
        return None
    said: Json = answer.get("payload")
    payload: JsonObject = said if is_object(said) else {}
    if answer.get("type") == ERROR or answer.get("status") == "error":
        kind, told = ERROR, _error(asked, task_id, answer, payload)
    else:
        kind, told = _outcome(task_id, answer, payload)
    if not told:
        return None
    message_id = uuid_of(str(asked.message_id), "answer")
    return _encode(envelope_of(message_id, str(asked.timestamp), str(asked.to), str(asked.sender), kind, told))


def _error(asked: Envelope, task_id: str, answer: JsonObject, payload: JsonObject) -> JsonObject:
    code = payload.get("error_code") or answer.get("error_code")
    said = payload.get("error_message") or answer.get("error")
    details = payload.get("details")
    return {
        "original_message_id": asked.message_id,
        "error_code": code if isinstance(code, str) else INTERNAL_ERROR,
        "error_message": said if isinstance(said, str) else "The agent gave no reason.",
        "details": {**(details if is_object(details) else {}), "task_id": task_id},
    }


def _outcome(task_id: str, answer: JsonObject, payload: JsonObject) -> tuple[str, JsonObject]:
    """The kind of the report and its payload, of members that it may have; that the task was taken is no report."""
    status = payload.get("status")
    if status in _ENDS and (answer.get("type") == COMPLETION or "result" in payload):
        result = payload.get("result")
        whole: Json = result if is_object(result) else {} if result is None else {"result": result}
        return COMPLETION, {**_members(payload, Completion), "task_id": task_id, "result": whole}
    if not isinstance(status, str) or STATES.get(status, TaskState.SUBMITTED) is TaskState.SUBMITTED:
        return UPDATE, {}
    return UPDATE, {**_members(payload, Update), "task_id": task_id}


def _members(payload: JsonObject, shape: type[msgspec.Struct]) -> JsonObject:
    return {name: payload[name] for name in shape.__struct_fields__ if name in payload}


def _told(payload: msgspec.Raw) -> _Told:
    try:
        return _decode_told(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _NOTHING


def _trace(metadata: Json) -> str | None:
    """The trace in the `dragoman` block: frames have no headers."""
    hints: Json = metadata.get(HINTS) if is_object(metadata) else None
    return _text(hints.get(TRACEPARENT)) if is_object(hints) else None


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


DIALOGUE: Final = Dialogue(
    paths=(f"{PATH}/ws", f"/a2a{PATH}/ws"),
    opening=MAILBOX,
    messages=MESSAGES,
    headers={b"content-type": JSON_TYPE},
    glance=glance,
    report=report,
)
