"""A client of Server-Sent Events over a plain socket: it can be cut and come back, and never waits for ever."""

import contextlib
import http.client
import json
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

PATIENCE_S: Final = 20.0


class SseItem(NamedTuple):
    """One event as it came; a comment has the name `:`."""

    name: str
    data: Any
    id: str


class SseStream:
    """An open stream, or the refusal that came instead."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.last_id = ""
        self.retry = ""

    @property
    def is_stream(self) -> bool:
        """Whether events come, and no refusal."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def body(self) -> bytes:
        """What came instead of a stream."""
        return self._response.read()

    def __iter__(self) -> Iterator[SseItem]:
        """The events up to the end; comments are left out. Raises where the stream breaks off or is silent for long."""
        for item in self.items():
            if item.name != ":":
                yield item

    def items(self) -> Iterator[SseItem]:
        """The events and the comments."""
        name, data, seen = "", list[str](), False
        while line := self._response.readline():
            text = line.decode().rstrip("\r\n")
            if text.startswith(":"):
                yield SseItem(":", text[1:], self.last_id)
                continue
            field, _, value = text.partition(":")
            value = value.removeprefix(" ")
            match field:
                case "id":
                    self.last_id = value
                case "event":
                    name = value
                case "retry":
                    self.retry = value
                case "data":
                    data.append(value)
                    seen = True
                case "":
                    if seen:
                        yield SseItem(name, json.loads("\n".join(data) or "null"), self.last_id)
                    name, data, seen = "", [], False
                case _:
                    raise AssertionError(f"a stream has no field {field!r}")

    def take(self, count: int) -> list[SseItem]:
        """The next events, so many."""
        found: list[SseItem] = []
        for item in self:
            found.append(item)
            if len(found) == count:
                break
        return found

    def close(self) -> None:
        """Leave without reading on."""
        self._response.close()
        self._connection.close()


@contextlib.contextmanager
def sse(
    url: str, body: Any = None, *, headers: Mapping[str, str] | None = None, patience_s: float = PATIENCE_S
) -> Generator[SseStream]:
    """Ask for a stream: by POST where there is a body, else by GET."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=patience_s)
    sent = {"Accept": "text/event-stream", **(headers or {})}
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    if body is None:
        connection.request("GET", path, headers=sent)
    else:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request("POST", path, raw, {"Content-Type": "application/json", **sent})
    stream = SseStream(connection, connection.getresponse())
    try:
        yield stream
    finally:
        stream.close()
