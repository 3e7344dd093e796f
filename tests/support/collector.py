"""A collector of spans: a real HTTP server that takes OTLP in both forms and decodes it, without the hub's code.

The binary form is read by the rules of protobuf's wire alone, with the field numbers of opentelemetry-proto.
"""

import contextlib
import json
import struct
import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any, Final

import msgspec

from tests.support.stub_server import StubHandler, on_free_port

PATIENCE_S: Final = 20.0


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """A span as a collector has it."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    start_ns: int
    end_ns: int
    attributes: Mapping[str, Any]
    events: tuple[str, ...]
    links: tuple[tuple[str, str], ...]  # trace and span of each
    error: str  # the message of a status that is an error
    resource: Mapping[str, Any]


class Collector:
    """What has arrived so far; `status` is what the next requests are answered with."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.hold = threading.Event()  # while it is not set, nothing is answered
        self.hold.set()
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self.spans: list[Received] = []
        self._changed = threading.Condition()

    def take(self, path: str, headers: Mapping[str, str], raw: bytes) -> int:
        """One request."""
        with self._changed:
            self.requests.append((path, headers))
            self._changed.notify_all()
        self.hold.wait(PATIENCE_S)
        with self._changed:
            if self.status == 200:
                self.spans += read_otlp(raw, headers["content-type"])
            self._changed.notify_all()
        return self.status

    def until(self, wanted: Callable[[list[Received]], bool]) -> list[Received]:
        """All spans, once they are as they should be."""
        with self._changed:
            assert self._changed.wait_for(lambda: wanted(self.spans), PATIENCE_S), [one.name for one in self.spans]
            return list(self.spans)

    def asked(self, times: int) -> None:
        """Return when so many requests have come."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= times, PATIENCE_S), self.requests


@contextlib.contextmanager
def collecting() -> Generator[Collector]:
    """A collector that runs within the block."""
    collector = Collector()

    class Handler(StubHandler):
        def do_POST(self) -> None:  # noqa: N802 - the name that the parent calls
            status = collector.take(self.path, self.read_headers(), self.read_body())
            with contextlib.suppress(OSError):
                self.say(status, {}, b"")

    with on_free_port(Handler) as collector.url:
        try:
            yield collector
        finally:
            collector.hold.set()


def read_otlp(raw: bytes, media_type: str) -> list[Received]:
    """The spans of one request."""
    return _from_json(raw) if media_type == "application/json" else _from_protobuf(raw)


# -- protobuf: a field is a number and a wire type, then its value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        match key & 7:
            case 0:
                value, at = _varint(data, at)
                yield key >> 3, value
            case 1:
                yield key >> 3, data[at : at + 8]
                at += 8
            case 2:
                size, at = _varint(data, at)
                assert at + size <= len(data)
                yield key >> 3, data[at : at + size]
                at += size
            case 5:
                yield key >> 3, data[at : at + 4]
                at += 4
            case other:
                raise AssertionError(f"no wire type {other}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value, shift = 0, 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at


def _all(data: bytes, number: int) -> list[bytes]:
    return [value for found, value in _fields(data) if found == number and isinstance(value, bytes)]


def _one(data: bytes, number: int) -> bytes:
    return (_all(data, number) or [b""])[0]


def _attributes(pairs: list[bytes]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        ((kind, value),) = _fields(_one(pair, 2))
        if kind == 1 and isinstance(value, bytes):
            found[_one(pair, 1).decode()] = value.decode()
        elif kind == 4 and isinstance(value, bytes):
            found[_one(pair, 1).decode()] = struct.unpack("<d", value)[0]
        else:
            assert isinstance(value, int)
            found[_one(pair, 1).decode()] = bool(value) if kind == 2 else value - (value >> 63 << 64)
    return found


def _from_protobuf(raw: bytes) -> list[Received]:
    spans: list[Received] = []
    for group in _all(raw, 1):
        resource = _attributes(_all(_one(group, 1), 1))
        for scoped in _all(group, 2):
            for span in _all(scoped, 2):
                numbers = {number: value for number, value in _fields(span) if isinstance(value, int)}
                status = _one(span, 15)
                spans.append(
                    Received(
                        trace_id=_one(span, 1).hex(),
                        span_id=_one(span, 2).hex(),
                        parent_id=_one(span, 4).hex(),
                        name=_one(span, 5).decode(),
                        kind=numbers[6],
                        start_ns=struct.unpack("<Q", _one(span, 7))[0],
                        end_ns=struct.unpack("<Q", _one(span, 8))[0],
                        attributes=_attributes(_all(span, 9)),
                        events=tuple(_one(event, 2).decode() for event in _all(span, 11)),
                        links=tuple((_one(link, 1).hex(), _one(link, 2).hex()) for link in _all(span, 13)),
                        error=_one(status, 2).decode() if (3, 2) in list(_fields(status)) else "",
                        resource=resource,
                    )
                )
    return spans


# -- JSON


def _from_json(raw: bytes) -> list[Received]:
    return [
        Received(
            trace_id=span["traceId"],
            span_id=span["spanId"],
            parent_id=span.get("parentSpanId", ""),
            name=span["name"],
            kind=span["kind"],
            start_ns=int(span["startTimeUnixNano"]),
            end_ns=int(span["endTimeUnixNano"]),
            attributes=_json_attributes(span["attributes"]),
            events=tuple(event["name"] for event in span.get("events", ())),
            links=tuple((link["traceId"], link["spanId"]) for link in span.get("links", ())),
            error=span.get("status", {}).get("message", "") if span.get("status", {}).get("code") == 2 else "",
            resource=_json_attributes(group["resource"]["attributes"]),
        )
        for group in json.loads(raw)["resourceSpans"]
        for scoped in group["scopeSpans"]
        for span in scoped["spans"]
    ]


def _json_attributes(pairs: list[Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        ((kind, value),) = pair["value"].items()
        found[pair["key"]] = int(value) if kind == "intValue" else value
    return found
