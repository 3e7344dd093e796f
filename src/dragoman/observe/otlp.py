"""Spans in the words of OTLP: one ExportTraceServiceRequest, as protobuf (what every receiver takes) or as JSON.

Pure. Written from the protocol's own definition (opentelemetry-proto, trace/v1), of which a hub needs 30 fields: the
numbers below are theirs. Protobuf is a sequence of fields, each a number with its wire type, then its value.
"""

import struct
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from dragoman import __version__
from dragoman.model.json import JsonObject
from dragoman.model.task import Trace
from dragoman.observe.span import Span, SpanKind, Value

PROTOBUF: Final = "http/protobuf"
JSON: Final = "http/json"
SCOPE: Final = "dragoman"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final = {SpanKind.INTERNAL: 1, SpanKind.SERVER: 2, SpanKind.CLIENT: 3}
_FAILED: Final = 2  # STATUS_CODE_ERROR; one that did not fail says nothing, as instrumentation should
_SAMPLED: Final = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_encode_json = msgspec.json.Encoder().encode


class Codec(msgspec.Struct, frozen=True, kw_only=True):
    """One form of the request: each span by itself, as soon as it is known, and the whole of many."""

    media_type: bytes
    span: Callable[[Trace, Span], bytes]
    whole: Callable[[Mapping[str, Value], Sequence[bytes]], bytes]


def nanoseconds(at: datetime) -> int:
    """A time as OTLP has it."""
    return (at - _EPOCH) // timedelta(microseconds=1) * 1000


# -- protobuf


def _whole(resource: Mapping[str, Value], spans: Sequence[bytes]) -> bytes:
    scope = _field(1, SCOPE.encode()) + _field(2, __version__.encode())
    scoped = _field(1, scope) + b"".join([_field(2, each) for each in spans])
    return _field(1, _field(1, _attributes(1, resource)) + _field(2, scoped))


def _span(trace: Trace, span: Span) -> bytes:
    fields = [
        _field(1, bytes.fromhex(trace.trace_id)),
        _field(2, bytes.fromhex(span.span_id)),
        _field(5, span.name.encode()),
        _number(6, _KINDS[span.kind]),
        _fixed(7, nanoseconds(span.started_at)),
        _fixed(8, nanoseconds(span.ended_at or span.started_at)),
        _attributes(9, span.attributes),
    ]
    if trace.state:
        fields.append(_field(3, trace.state.encode()))
    if span.parent_id:
        fields.append(_field(4, bytes.fromhex(span.parent_id)))
    for event in span.events:
        told = _fixed(1, nanoseconds(event.at)) + _field(2, event.name.encode()) + _attributes(3, event.attributes)
        fields.append(_field(11, told))
    if span.linked:
        fields.append(_field(13, _field(1, bytes.fromhex(trace.trace_id)) + _field(2, bytes.fromhex(span.linked))))
    if span.failed:
        fields.append(_field(15, _field(2, span.failed.encode()) + _number(3, _FAILED)))
    fields.append(_tag(16, _FIXED32) + struct.pack("<I", _SAMPLED))
    return b"".join(fields)


def _attributes(number: int, values: Mapping[str, Value]) -> bytes:
    return b"".join(
        _field(number, _field(1, name.encode()) + _field(2, _value(value))) for name, value in values.items()
    )


def _value(value: Value) -> bytes:
    match value:
        case bool():
            return _number(2, int(value))
        case int():
            return _number(3, value)
        case float():
            return _tag(4, _FIXED64) + struct.pack("<d", value)
        case str():
            return _field(1, value.encode("utf-8", "replace"))


def _field(number: int, value: bytes) -> bytes:
    return _tag(number, _BYTES) + _varint(len(value)) + value


def _number(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def _fixed(number: int, value: int) -> bytes:
    return _tag(number, _FIXED64) + struct.pack("<Q", value)


def _tag(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _varint(value: int) -> bytes:
    made = bytearray()
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


# -- JSON


def _json_whole(resource: Mapping[str, Value], spans: Sequence[bytes]) -> bytes:
    scope: JsonObject = {"name": SCOPE, "version": __version__}
    scoped: JsonObject = {"scope": scope, "spans": [msgspec.Raw(each) for each in spans]}
    shown: JsonObject = {"resource": {"attributes": _json_attributes(resource)}, "scopeSpans": [scoped]}
    return _encode_json({"resourceSpans": [shown]})


def _json_span(trace: Trace, span: Span) -> bytes:
    shown: JsonObject = {
        "traceId": trace.trace_id,
        "spanId": span.span_id,
        "name": span.name,
        "kind": _KINDS[span.kind],
        "startTimeUnixNano": str(nanoseconds(span.started_at)),
        "endTimeUnixNano": str(nanoseconds(span.ended_at or span.started_at)),
        "attributes": _json_attributes(span.attributes),
        "flags": _SAMPLED,
    }
    if trace.state:
        shown["traceState"] = trace.state
    if span.parent_id:
        shown["parentSpanId"] = span.parent_id
    if span.events:
        shown["events"] = [
            {
                "timeUnixNano": str(nanoseconds(event.at)),
                "name": event.name,
                "attributes": _json_attributes(event.attributes),
            }
            for event in span.events
        ]
    if span.linked:
        shown["links"] = [{"traceId": trace.trace_id, "spanId": span.linked}]
    if span.failed:
        shown["status"] = {"code": _FAILED, "message": span.failed}
    return _encode_json(shown)


def _json_attributes(values: Mapping[str, Value]) -> list[JsonObject]:
    return [{"key": name, "value": _json_value(value)} for name, value in values.items()]


def _json_value(value: Value) -> JsonObject:
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case str():
            return {"stringValue": value}


CODECS: Final[Mapping[str, Codec]] = {
    PROTOBUF: Codec(media_type=b"application/x-protobuf", span=_span, whole=_whole),
    JSON: Codec(media_type=b"application/json", span=_json_span, whole=_json_whole),
}
