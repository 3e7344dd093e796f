"""One request's way through the application: what it receives, and its answer, whose head waits for its first body.

ASGI asks for that: nothing is sent before the first `http.response.body`. So head and body leave in one write, and an
application that fails in between still gets its 500. A stream's head leaves at once, then each piece as it comes, for
as long as somebody reads.

Deliberately not here: deadlines and the connection's end, which are the protocol's.
"""

import asyncio
import logging
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from uvicorn.protocols.http.httptools_impl import HEADER_RE, STATUS_LINE, RequestResponseCycle

from dragoman.server.streaming import KEEP_ALIVE

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Sequence

    from uvicorn._types import (
        ASGI3Application,
        ASGIReceiveEvent,
        ASGISendEvent,
        HTTPScope,
    )
    from uvicorn.protocols.http.flow_control import FlowControl

    from dragoman.model.http import Headers
    from dragoman.server.streaming import AnyStream, StreamReply

# Beyond this size a copy costs more than a second write, which the loop joins with the first where it can.
ONE_WRITE_BYTES: Final = 64 * 1024
NO_BODY: Final = frozenset((204, 304))
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"
# What may not stand in a header, shown as something that may: every control character but the tab.
_CONTROL: Final = bytes((*range(0x09), *range(0x0A, 0x20), 0x7F))
_SHOWN: Final = bytes.maketrans(_CONTROL, b"?" * len(_CONTROL))
BROKE: Final = b'{"error":{"code":"INTERNAL_ERROR","message":"The hub could not do this; the fault is its own."}}'
BROKE_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"content-length", b"%d" % len(BROKE)),
    (b"connection", b"close"),
)

_log = logging.getLogger("dragoman.server")


class Connection(Protocol):
    """What an answer needs of the connection it belongs to."""

    transport: asyncio.Transport
    flow: "FlowControl"
    pipeline: "deque[tuple[RequestResponseCycle, ASGI3Application]]"
    tasks: "set[asyncio.Task[None]]"

    def on_response_complete(self) -> None:
        """The answer is written to its end."""
        ...

    def spoke(self) -> None:
        """A piece of a stream was written."""
        ...

    def fell_silent(self) -> None:
        """The stream has ended."""
        ...

    def close(self) -> None:
        """Close the connection once what was written has left."""
        ...


class Answer(RequestResponseCycle):
    """Uvicorn's cycle of one request and one response, with one write where two were."""

    # How every request begins. Here and not in `__init__`: the parent's sets twice as many, for every request.
    task: "asyncio.Task[None] | None" = None
    disconnected = False
    arrived = b""
    more_body = True
    waiting_for_100_continue = False
    headless = False  # the client asked for the head alone
    head = b""
    response_started = False  # bytes have left
    response_complete = False
    chunked_encoding = False
    expected_content_length = 0
    streaming: "AnyStream | None" = None  # what is being sent for as long as it goes on

    def __init__(
        self,
        connection: Connection,
        scope: "HTTPScope",
        *,
        expect_100_continue: bool,
        keep_alive: bool,
    ) -> None:
        self.scope = scope
        self.connection = connection
        self.transport = connection.transport
        self.flow = connection.flow
        self.message_event = asyncio.Event()
        self.keep_alive = keep_alive
        self.waiting_for_100_continue = expect_100_continue
        self.headless = scope["method"] == "HEAD"

    def wake(self) -> None:
        """More of the body is there, or the client is gone."""
        self.message_event.set()

    def abandon(self) -> None:
        """The client is gone."""
        self.disconnected = not self.response_complete
        self.end_stream()
        self.wake()

    def end_stream(self) -> None:
        """A client that has left reads no stream any more."""
        if self.streaming is not None and self.disconnected:
            self.streaming.close()

    async def stream(self, reply: "StreamReply") -> None:
        """Send a stream as it comes: the head at once, then what has gathered in one write."""
        body = reply.body
        if self.disconnected:
            body.close()
            return
        self.streaming = body
        try:
            self.open(reply.status, reply.headers)
            self.write(b"", more_body=True)
            self.connection.spoke()
            async for piece in body:
                if self.flow.write_paused:
                    await self.flow.drain()
                if self.disconnected:
                    return
                self.write(piece, more_body=True)
                self.connection.spoke()
        finally:
            body.close()
            self.streaming = None
            self.connection.fell_silent()
        if body.cut:
            self.transport.abort()  # Not ended but broken off: what is missing is there for who comes back.
        elif not self.disconnected:
            self.write(b"")

    def keep_alive_stream(self) -> None:
        """Say that the stream is still there."""
        if self.streaming is not None and not self.disconnected and not self.flow.write_paused:
            self.write(KEEP_ALIVE, more_body=True)

    async def run_asgi(self, app: "ASGI3Application") -> None:
        """Run the application; what it leaves undone becomes a 500, or a broken connection once bytes have left."""
        try:
            await app(self.scope, self.receive, self.send)
            if not self.response_complete and not self.disconnected:
                _log.error("The application returned without a complete answer.")
                await self.break_off()
        except Exception:  # noqa: BLE001 - whatever it was, the client gets an answer and the log the reason
            _log.exception("The application failed.")
            await self.break_off()
        finally:
            self.scope.pop("extensions", None)  # It holds this answer, which holds it.
            if self.task is not None:
                self.connection.tasks.discard(self.task)

    async def break_off(self) -> None:
        """End what was not answered: with a 500, or by closing once bytes have left."""
        if self.response_started:
            self.connection.close()
        elif not self.disconnected:
            await self.send_500_response()

    async def send_500_response(self) -> None:
        """Answer for an application that did not; a head that it left waiting is forgotten."""
        self.head, self.chunked_encoding, self.expected_content_length = b"", False, 0
        await self.send({"type": "http.response.start", "status": 500, "headers": BROKE_HEADERS})
        await self.send({"type": "http.response.body", "body": BROKE, "more_body": False})

    async def receive(self) -> "ASGIReceiveEvent":
        """The next piece of the body, or that the client is gone."""
        if not self.disconnected and not self.response_complete:
            answering = self.head or self.response_started
            if self.waiting_for_100_continue and not answering and not self.transport.is_closing():
                self.transport.write(CONTINUE)
            self.waiting_for_100_continue = False
            # Requests that wait behind this one are enough; more of them would be read into memory without bound.
            if self.flow.read_paused and not self.connection.pipeline:
                self.flow.resume_reading()
            if not self.message_event.is_set():
                await self.message_event.wait()
            self.message_event.clear()
        if self.disconnected or self.response_complete:
            return {"type": "http.disconnect"}
        body = self.arrived
        self.arrived = b""
        return {"type": "http.request", "body": body, "more_body": self.more_body}

    async def send(self, message: "ASGISendEvent") -> None:
        """Take the head and hold it; take a body and write both."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.body":
            if self.response_complete or not (self.head or self.response_started):
                raise RuntimeError("A body was sent where no answer is open.")
            self.write(message.get("body", b""), more_body=message.get("more_body", False))
            if self.response_complete:
                self.wake()  # whoever still waits for more of the request
        elif message["type"] == "http.response.start":
            if self.head or self.response_started:
                raise RuntimeError("An answer was started twice.")
            pairs = [*message.get("headers", ())]
            self.open(message["status"], dict(pairs), pairs)
        else:
            raise RuntimeError(f"An HTTP answer has no message {message['type']!r}.")

    def write(self, body: bytes, *, more_body: bool = False) -> None:
        """Write a piece of the body, and before the first one the head; RuntimeError for one of the wrong length."""
        if self.headless:
            body = b""
        elif self.chunked_encoding:
            if body:
                body = b"%x\r\n%b\r\n" % (len(body), body)
            if not more_body:
                body += b"0\r\n\r\n"
        else:
            self.expected_content_length = left = self.expected_content_length - len(body)
            if left and (left < 0 or not more_body):
                raise RuntimeError(f"The body is {'longer' if left < 0 else 'shorter'} than its content-length.")
        head = self.head
        if head:
            self.head, self.response_started = b"", True
            if len(body) <= ONE_WRITE_BYTES:
                body = head + body
            else:
                self.transport.write(head)
        if body:
            self.transport.write(body)
        if not more_body:
            self.response_complete = True
            self.connection.on_response_complete()

    def open(self, status: int, named: "Headers", lines: "Sequence[tuple[bytes, bytes]] | None" = None) -> None:
        """Make the head, which says how the body ends; RuntimeError where a header would say more than one line.

        `named` are its headers by their names, `lines` all of them where one may come more than once.
        """
        if lines is None:
            names, values = tuple(named), tuple(named.values())
        else:
            names, values = tuple([name for name, _ in lines]), tuple([value for _, value in lines])
        said = b"".join(values)  # one look at all of them instead of one at each
        if said.translate(_SHOWN) != said:
            raise RuntimeError("A header's value has a line break or a control character in it.")
        head = _lines(status, names) % values
        if b"connection" in named and b"close" in [token.strip() for token in named[b"connection"].lower().split(b",")]:
            self.keep_alive = False
        elif not self.keep_alive:
            head += b"connection: close\r\n"
        if b"transfer-encoding" in named and named[b"transfer-encoding"].lower() == b"chunked":
            self.chunked_encoding = True
        elif b"content-length" in named:
            self.expected_content_length = int(named[b"content-length"])
        elif not self.headless and status not in NO_BODY:
            self.chunked_encoding = True
            head += b"transfer-encoding: chunked\r\n"
        self.head = head + b"\r\n"


@lru_cache(maxsize=1024)
def _lines(status: int, names: tuple[bytes, ...]) -> bytes:
    """The lines of a head with these names, and a place for each value: few answers differ in their names."""
    for name in names:
        if not name or name != name.lower() or HEADER_RE.search(name):
            raise RuntimeError(f"{name!r} is no header's name.")
    return STATUS_LINE[status] + b"".join([name.replace(b"%", b"%%") + b": %b\r\n" for name in names])
