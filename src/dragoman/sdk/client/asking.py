"""A call as it is put to the hub: the body, the headers, and the time there is for it.

What the running handler passes on by itself is added here: the trace, the conversation, the call that this one is
made for, and what is left of that one's time.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, TypedDict, TypeGuard

import msgspec

from dragoman.dialects.uuids import uuid_of
from dragoman.model.errors import AgentTimeout
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.objects import plain_part
from dragoman.ports.clock import Clock
from dragoman.sdk.content import Data, File, Message, Part, Text, message_of, to_model
from dragoman.sdk.errors import put_into_words
from dragoman.sdk.scope import Scope

Priority = Literal["low", "normal", "high", "urgent"]
Delivery = Literal["at_least_once", "at_most_once"]
Said = str | Text | Data | File | Message | Sequence[Part]

CALL_MS: Final = 30_000
STREAM_MS: Final = 3_600_000
ACCEPTED_MS: Final = 86_400_000
MARGIN_S: Final = 0.05  # what a handler keeps to answer with, when a call that it makes runs out of time


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One logical call: the same words on every try."""

    body: JsonObject
    headers: Mapping[str, str]
    timeout_s: float
    repeatable: bool  # even where an earlier try may have arrived


class CallOptions(TypedDict, total=False):
    """How a call is to be made.

    `message`, in place of an input: what is said to the agent, in words or parts. `timeout_ms` counts everything, None
    is the default. The same `idempotency_key` with the same input never runs twice within 24 hours.
    `delivery="at_most_once"`: never sent to the agent a second time, whatever happens in between.
    """

    message: Said | None
    timeout_ms: int | None
    priority: Priority
    conversation_id: str | None
    metadata: Mapping[str, Json] | None
    idempotency_key: str | None
    delivery: Delivery | None


class Filters(TypedDict, total=False):
    """Which agents are looked for; `limit`: at most so many."""

    q: str | None
    tag: str | Sequence[str] | None
    capability: str | None
    dialect: str | None
    status: str | None
    min_rating: float | None
    max_p95_ms: int | None
    min_availability: float | None
    limit: int | None


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants."""

    target: str | None = None
    skill: str | None = None
    input: Mapping[str, Json] | None = None
    message: Said | None = None
    timeout_ms: int | None = None
    priority: Priority = "normal"
    conversation_id: str | None = None
    metadata: Mapping[str, Json] | None = None
    idempotency_key: str | None = None
    delivery: Delivery | None = None
    continues: str | None = None  # the call that this one goes on with


def ask_for(call: Call, *, scope: Scope | None, clock: Clock, most_ms: int, waited: bool = True) -> Asked:
    """The request for a call. Raises AgentTimeout where the handler that makes it has no time left for it.

    `waited`: a call that nobody waits for may go on when the handler that made it is done.
    """
    timeout_ms = _time_for(call, scope, clock, most_ms) if waited else call.timeout_ms
    options: JsonObject = {}
    if timeout_ms is not None:
        options["timeout_ms"] = timeout_ms
    if call.priority != "normal":
        options["priority"] = call.priority
    if call.delivery is not None:
        options["delivery"] = call.delivery
    context = _context(call, scope)
    body: JsonObject = {}
    for name, value in (("target_agent_id", call.target), ("skill", call.skill)):
        if value is not None:
            body[name] = value
    body |= _content(call)
    if options:
        body["options"] = options
    if context:
        body["context"] = context
    return Asked(
        body=body,
        headers=_headers(call, scope, clock),
        timeout_s=(timeout_ms or most_ms) / 1000,
        repeatable=call.delivery != "at_most_once" or call.idempotency_key is not None,
    )


def message_body(said: Said) -> JsonObject:
    """What somebody says, as the member of a request: words as `message`, one object as `input`, else parts."""
    message = Message(parts=tuple(said)) if _is_parts(said) else message_of(said)
    match message.parts:
        case (Text(text=text, metadata=None),):
            return {"message": text}
        case (Data(value=value, metadata=None),) if is_object(value):
            return {"input": value}
        case parts:
            return {"message": [plain_part(part) for part in to_model(parts)]}


def _is_parts(said: Said) -> TypeGuard[Sequence[Part]]:
    return isinstance(said, Sequence) and not isinstance(said, str)


def _content(call: Call) -> JsonObject:
    if call.message is None:
        return {"input": dict(call.input or {})}
    if call.input is not None:
        raise TypeError("a call has an input or a message, not both")
    return message_body(call.message)


def _context(call: Call, scope: Scope | None) -> JsonObject:
    context: JsonObject = {}
    conversation_id = call.conversation_id or (scope.conversation_id if scope else None)
    if conversation_id is not None:
        context["conversation_id"] = conversation_id
    if scope is not None:
        context["parent_execution_id"] = scope.call_id
    if call.continues is not None:
        context["continue_call_id"] = call.continues
    if call.metadata:
        context["metadata"] = dict(call.metadata)
    return context


def _headers(call: Call, scope: Scope | None, clock: Clock) -> dict[str, str]:
    headers = {"x-request-id": f"req_{uuid_of(clock.new_id('req_'))}"}
    if call.idempotency_key is not None:
        headers["idempotency-key"] = call.idempotency_key
    return headers | _trace_headers(scope)


def _trace_headers(scope: Scope | None) -> dict[str, str]:
    if scope is None:
        return {}
    known = (("traceparent", scope.traceparent), ("x-trace-id", scope.trace_id), ("x-span-id", scope.span_id))
    return {name: value for name, value in known if value}


def _time_for(call: Call, scope: Scope | None, clock: Clock, most_ms: int) -> int:
    wanted = most_ms if call.timeout_ms is None else call.timeout_ms
    if scope is None or scope.deadline is None:
        return wanted
    left_ms = int((scope.deadline - clock.monotonic() - MARGIN_S) * 1000)
    if left_ms <= 0:
        error = AgentTimeout("No time is left for this call", reason="no_time_left")
        error.trace_id = scope.trace_id
        raise put_into_words(error, "The handler that makes it has reached its own deadline; nothing was sent.")
    return min(wanted, left_ms)
