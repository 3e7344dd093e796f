"""A span: one stretch of time in a trace. Its id derives from its call, its kind and its number."""

from datetime import datetime
from enum import StrEnum
from hashlib import blake2b

import msgspec

Value = str | int | float | bool


class SpanKind(StrEnum):
    """Which side of an exchange a span stands for."""

    SERVER = "server"
    CLIENT = "client"
    INTERNAL = "internal"


class SpanEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened at one moment of a span."""

    at: datetime
    name: str
    attributes: dict[str, Value] = {}


class Span(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stretch of time. Without an end it goes on; `failed` is the code of its error."""

    span_id: str
    call_id: str
    name: str
    kind: SpanKind
    started_at: datetime
    ended_at: datetime | None = None
    parent_id: str | None = None
    linked: str | None = None  # the span that it belongs to without being below it
    failed: str | None = None
    attributes: dict[str, Value] = {}
    events: tuple[SpanEvent, ...] = ()


def span_id_of(call_id: str, kind: str, number: int | str = 0) -> str:
    """The id of one of a call's spans."""
    return blake2b(f"{call_id} {kind} {number}".encode(), digest_size=8).hexdigest()
