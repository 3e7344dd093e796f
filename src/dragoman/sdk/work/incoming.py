"""One call as the hub gives it to an agent: read once, tolerant of what is missing, in the words of handlers."""

from datetime import UTC, datetime, timedelta
from typing import Final, Literal

import msgspec

from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonArray, JsonObject, is_array, is_object
from dragoman.ports.clock import Clock
from dragoman.sdk.content import (
    Artifact,
    Data,
    Message,
    Text,
    artifact_from_wire,
    message_from_wire,
    message_of_input,
)

CallerKind = Literal["agent", "key", "anonymous"]

MAX_REMEMBERED: Final = 50  # turns of a conversation, as many as a hub sends


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Who calls: an agent, somebody with a key, or nobody known."""

    id: str
    name: str
    kind: CallerKind = "anonymous"
    dialect: str = "platform"
    scopes: tuple[str, ...] = ()


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier call that this one refers to, and what came of it."""

    call_id: str
    artifacts: tuple[Artifact, ...] = ()


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One call, as far as whoever carries it out has to know it."""

    id: str
    message: Message
    skill: str | None = None
    input: Json = None
    attempt: int = 1
    caller: Caller
    conversation_id: str
    priority: str = "normal"
    metadata: JsonObject
    history: tuple[Message, ...] = ()
    references: tuple[Reference, ...] = ()
    answers: tuple[JsonObject, ...] = ()
    deadline: datetime | None = None
    time_s: float | None = None  # what is left of it
    trace_id: str | None = None
    span_id: str | None = None
    traceparent: str | None = None


def read_call(call: JsonObject, clock: Clock) -> Call:
    """The call that a frame brings. Raises BadParams where its message makes no sense."""
    options, context = _object(call, "options"), _object(call, "context")
    given = call.get("input")
    said = call.get("message")
    deadline, time_s = _time(call, options, clock)
    call_id = _text(call, "call_id") or ""
    return Call(
        id=call_id,
        message=message_of_input(given if given is not None else {}) if said is None else _message(said),
        skill=_text(call, "skill"),
        input=given,
        attempt=attempt if type(attempt := call.get("attempt")) is int else 1,
        caller=_caller(call),
        conversation_id=_text(context, "conversation_id") or call_id,
        priority=_text(options, "priority") or "normal",
        metadata=_object(context, "metadata"),
        history=tuple(message_from_wire(each) for each in _array(call, "history")[-MAX_REMEMBERED:]),
        references=tuple(_reference(each) for each in _array(call, "references") if is_object(each)),
        answers=tuple(each for each in _array(call, "answers") if is_object(each)),
        deadline=deadline,
        time_s=time_s,
        trace_id=_text(call, "trace_id"),
        span_id=_text(call, "span_id"),
        traceparent=_text(call, "traceparent"),
    )


def _message(said: Json) -> Message:
    """What was said; an object that holds nothing but text is that text."""
    message = message_from_wire(said)
    match message.parts:
        case (Data(value={"text": str(text), **rest}),) if not rest:
            return msgspec.structs.replace(message, parts=(Text(text),))
        case _:
            return message


def _caller(call: JsonObject) -> Caller:
    said = _object(call, "caller")
    caller_id = _text(said, "id") or _text(call, "caller_agent_id") or "anonymous"
    kind = said.get("kind")
    return Caller(
        id=caller_id,
        name=_text(said, "name") or caller_id,
        kind=kind if kind in ("agent", "key", "anonymous") else "anonymous",
        dialect=_text(said, "dialect") or "platform",
        scopes=tuple(each for each in _array(said, "scopes") if isinstance(each, str)),
    )


def _reference(value: JsonObject) -> Reference:
    artifacts = tuple(artifact_from_wire(each) for each in _array(value, "artifacts"))
    return Reference(call_id=_text(value, "call_id") or "", artifacts=artifacts)


def _time(call: JsonObject, options: JsonObject, clock: Clock) -> tuple[datetime | None, float | None]:
    """When it has to be done, and how long that is: by what is left, since two clocks never agree."""
    deadline: datetime | None = None
    said = _text(call, "deadline")
    if said is not None:
        try:
            read = msgspec.convert(said, datetime)
        except msgspec.ValidationError:
            raise BadParams("deadline: a time, as ISO 8601 has it") from None
        deadline = read if read.tzinfo else read.replace(tzinfo=UTC)
    left_ms = options.get("timeout_ms")
    if isinstance(left_ms, int | float) and left_ms > 0:
        left_s = left_ms / 1000
        return deadline or clock.now() + timedelta(seconds=left_s), left_s
    return deadline, None if deadline is None else (deadline - clock.now()).total_seconds()


def _text(value: JsonObject, name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None


def _object(value: JsonObject, name: str) -> JsonObject:
    found = value.get(name)
    return found if is_object(found) else {}


def _array(value: JsonObject, name: str) -> JsonArray:
    found = value.get(name)
    return found if is_array(found) else []
