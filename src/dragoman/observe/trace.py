"""Trace context: read from whatever headers a caller sent, written in every form an agent may read.

W3C `traceparent` rules the ids; an opaque `X-Trace-ID` keeps its own spelling and always maps to the same W3C id.
Malformed values are ignored, never an error. Who cannot set headers may say `traceparent` or `trace_id` in the metadata
of its message; what an agent is sent has headers alone, since agents feed bodies to models.
"""

import re
from hashlib import blake2b, sha256
from typing import Final

import msgspec

from dragoman.model.http import NO_HEADERS, Headers
from dragoman.model.json import Json, JsonObject
from dragoman.model.operations import Operation, SendTask, Signed
from dragoman.model.task import Trace

MAX_GIVEN: Final = 128

_TRACEPARENT: Final = re.compile(rb"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_HEX: Final = "0123456789abcdef"
_NO_TRACE: Final = b"0" * 32
_NO_SPAN: Final = b"0" * 16


def read_trace(headers: Headers, request_id: str) -> Trace:
    """The trace of a request, and a span for this hop; what is not given derives from the request's own id."""
    derived = blake2b(request_id.encode(), digest_size=16).hexdigest()
    span_id = derived[:16]
    parent = headers.get(b"traceparent")
    given = _given(headers[b"x-trace-id"]) if b"x-trace-id" in headers else None
    span = _given(headers[b"x-span-id"]) if b"x-span-id" in headers else None
    if parent is not None:
        match = _TRACEPARENT.fullmatch(parent)
        if match is not None and match[1] != _NO_TRACE and match[2] != _NO_SPAN:
            state = headers.get(b"tracestate")
            return Trace(
                trace_id=match[1].decode(),
                span_id=span_id,
                parent_span_id=match[2].decode(),
                state=state.decode("ascii", "ignore")[:512] if state else None,
                given_id=given,
                given_span=span,
                sampled=int(match[3], 16) & 1 == 1,
            )
    if given is None:
        # It begins with the id's time (save two digits that change every 34 years): random keys would each touch a
        # page of their own of the store's index.
        return Trace(trace_id=request_id[2:10].encode().hex().ljust(16, "0") + derived[16:], span_id=span_id)
    return Trace(
        trace_id=_derived("trace_", given, 32),
        span_id=span_id,
        parent_span_id=None if span is None else _derived("span_", span, 16),
        given_id=given,
        given_span=span,
    )


def said_trace(operation: Operation | None) -> Headers:
    """The trace that a message names in its own metadata, in the form of headers; none where it names none."""
    if not isinstance(operation, SendTask):
        return said_trace(operation.operation) if isinstance(operation, Signed) else NO_HEADERS
    for metadata in (operation.message.metadata, operation.metadata):
        if metadata is not None and (found := _named_in(metadata)):
            return found
    return NO_HEADERS


def trace_beside(trace: Trace, name: str) -> Trace:
    """The same place in a trace, with a span of its own: for one of several calls that came in one request."""
    return msgspec.structs.replace(trace, span_id=blake2b(name.encode(), digest_size=8).hexdigest())


def trace_id_of(spelling: str) -> str:
    """The W3C id of a trace, by any spelling of it."""
    return _derived("trace_", spelling, 32)


def trace_headers(trace: Trace, request_id: str) -> dict[bytes, bytes]:
    """What an agent is sent: this hop's span in every form."""
    headers = {
        b"traceparent": f"00-{trace.trace_id}-{trace.span_id}-{'01' if trace.sampled else '00'}".encode(),
        b"x-trace-id": (trace.given_id or f"trace_{trace.trace_id}").encode("ascii", "ignore"),
        b"x-span-id": f"span_{trace.span_id}".encode(),
        b"x-request-id": request_id.encode("ascii", "ignore"),
    }
    if trace.parent_span_id is not None:
        shown = trace.given_span or f"span_{trace.parent_span_id}"
        headers[b"x-parent-span-id"] = shown.encode("ascii", "ignore")
    if trace.state is not None:
        headers[b"tracestate"] = trace.state.encode("ascii", "ignore")
    return headers


def _named_in(metadata: JsonObject) -> dict[bytes, bytes]:
    found: dict[bytes, bytes] = {}
    for header, member in ((b"traceparent", "traceparent"), (b"tracestate", "tracestate"), (b"x-trace-id", "trace_id")):
        value: Json = metadata.get(member)
        if isinstance(value, str) and value.isascii():
            found[header] = value.encode()
    return found


def _given(value: bytes) -> str | None:
    if not value or len(value) > MAX_GIVEN or not value.isascii():
        return None
    text = value.decode("ascii")
    return text if text.isprintable() else None


def _derived(prefix: str, given: str, digits: int) -> str:
    own = given.removeprefix(prefix)
    # Nothing is left without hex digits: a tenth of what a pattern costs. All zeros are no id.
    if len(own) == digits and not own.strip(_HEX) and own.strip("0"):
        return own
    return sha256(given.encode()).hexdigest()[:digits]
