"""Server-Sent Events: what a stream of them says, read piece by piece, and how one is written.

Pieces may end anywhere, inside a line or a character. Lines end in LF, CR or CRLF; comments and unknown fields mean
nothing; an event without data is none.
"""

from types import MappingProxyType
from typing import Final

import msgspec

from dragoman.model.errors import BadAgentReply
from dragoman.model.http import Headers

EVENT_BYTES: Final = 1024 * 1024  # the most that one event may hold, where nobody says otherwise
STREAM_TYPE: Final = b"text/event-stream"
STREAM_HEADERS: Final[Headers] = MappingProxyType(
    {
        b"content-type": STREAM_TYPE,
        b"cache-control": b"no-cache",
        b"connection": b"keep-alive",
        b"x-accel-buffering": b"no",  # a proxy that gathers an answer would hold every event back
    }
)
_BOM: Final = b"\xef\xbb\xbf"


class SseEvent(msgspec.Struct, frozen=True, gc=False):
    """One event: its name, if it has one, and its data."""

    name: str
    data: bytes
    id: str = ""


class SseParser:
    """Reads one stream."""

    __slots__ = ("_began", "_data", "_id", "_most", "_name", "_rest", "_size")

    def __init__(self, most_bytes: int = EVENT_BYTES) -> None:
        self._most = most_bytes
        self._rest = b""
        self._began = False
        self._name = ""
        self._id = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[SseEvent]:
        """The events that this piece completes. Raises BadAgentReply for one that is too large."""
        text = self._rest + piece if self._rest else piece
        if not self._began:
            if len(text) < len(_BOM) and _BOM.startswith(text):
                self._rest = text
                return []
            self._began = True
            text = text.removeprefix(_BOM)
        if b"\r" in text:
            # A CR at the very end may be the first half of a line's end.
            held = b"\r" if text.endswith(b"\r") else b""
            text = text.removesuffix(b"\r").replace(b"\r\n", b"\n").replace(b"\r", b"\n") + held
        *lines, self._rest = text.split(b"\n")
        if self._size + len(self._rest) > self._most:
            raise _too_large()
        return self._read(lines) if lines else []

    def _read(self, lines: list[bytes]) -> list[SseEvent]:
        events: list[SseEvent] = []
        for line in lines:
            if not line:
                if self._data:
                    events.append(SseEvent(self._name, b"\n".join(self._data), self._id))
                    self._data = []
                    self._size = 0
                self._name = ""
                continue
            field, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if field == b"data":
                self._data.append(value)
                self._size += len(value) + 1
                if self._size > self._most:
                    raise _too_large()
            elif field == b"event":
                self._name = value.decode("utf-8", "replace")
            elif field == b"id" and b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
        return events


def frame(data: bytes, *, name: str = "", seq: int | None = None) -> bytes:
    """One event as it is sent, its data on one line."""
    head = b"" if seq is None else b"id: %d\n" % seq
    if name:
        head += b"event: %b\n" % name.encode()
    return b"%bdata: %b\n\n" % (head, data)


def last_seen(headers: Headers) -> int | None:
    """The number after which a reader wants to go on; None where it names none, or none of ours."""
    said = headers.get(b"last-event-id", b"").strip()
    return int(said) if said.isdigit() and len(said) <= 10 else None


def is_stream(headers: Headers) -> bool:
    """Whether an answer with these headers is a stream of events."""
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == STREAM_TYPE


def _too_large() -> BadAgentReply:
    return BadAgentReply("The agent sent an event that is too large.", reason="event_too_large")
