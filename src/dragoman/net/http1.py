"""One HTTP/1.1 connection: a request out in one write, with the others of its turn; an answer in through httptools.

Deadlines are numbers here (`due`); the pool's one sweep looks at them. Whose turn it is on the connection, and what
becomes of it afterwards, is decided by its owner in `origin.py`.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final, Protocol, final

import httptools

from dragoman.model.http import HttpReply
from dragoman.model.known_head import KnownHead
from dragoman.net.body import Body
from dragoman.net.errors import NetError, Reach
from dragoman.net.tls import ResumingContext

HEAD_BYTES: Final = 32 * 1024
HEAD_LINES: Final = 100
STALL_S: Final = 30.0
FOREVER: Final = float("inf")

_PATIENCE: Final = re.compile(rb"(?:^|[,;\s])timeout=\"?([0-9]{1,9})", re.IGNORECASE)


Write = Callable[[asyncio.Transport, bytes], None]


class Owner(Protocol):
    """Who hands out the connection and takes it back."""

    def now(self) -> float:
        """The time of the last sweep."""
        ...

    def release(self, connection: "Connection") -> None:
        """The answer is complete and the connection may serve again."""
        ...

    def discard(self, connection: "Connection", kind: Reach | None = None) -> None:
        """The connection is of no use any more; `kind` if a request failed on it."""
        ...

    def went_stale(self, connection: "Connection") -> None:
        """The peer closed, or spoke out of turn, while nothing was asked."""
        ...

    def gone(self, connection: "Connection") -> None:
        """The socket is closed."""
        ...


@final
class Connection(asyncio.Protocol):
    """A socket to one origin, asked one thing at a time."""

    __slots__ = (
        "_barren",
        "_body",
        "_cap",
        "_deadline",
        "_ended",
        "_fault",
        "_future",
        "_headers",
        "_idle_s",
        "_keep",
        "_known",
        "_loop",
        "_only_head",
        "_owner",
        "_parser",
        "_parts",
        "_paused",
        "_repeated",
        "_reply_headers",
        "_size",
        "_status",
        "_transport",
        "_until_close",
        "_write",
        "broken",
        "busy",
        "context",
        "due",
        "freed",
        "patience_s",
        "retire",
        "uses",
    )

    def __init__(self, owner: Owner, loop: asyncio.AbstractEventLoop, retire: float, write: Write) -> None:
        """Be ready for `attach`."""
        self._owner = owner
        self._write = write
        self._loop = loop
        self._parser = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._future: asyncio.Future[HttpReply] | None = None
        self._body: Body | None = None
        self._headers: dict[bytes, bytes] = {}
        self._reply_headers: dict[bytes, bytes] = {}
        self._parts: list[bytes] = []
        self._status = 0
        self._size = 0
        self._cap = 0
        self._barren = 0
        self._repeated = 0
        self._deadline = FOREVER
        self._idle_s = FOREVER
        self._fault: Reach | None = None
        self._ended = self._keep = self._until_close = self._only_head = self._paused = False
        self._known = KnownHead()  # the head of the answer that was parsed last
        self.context: ResumingContext | None = None
        self.retire = retire
        self.due = FOREVER
        self.freed = 0.0
        self.patience_s = FOREVER
        self.uses = 0
        self.busy = False
        self.broken = False

    # What the owner and the client call.

    def attach(self, transport: asyncio.Transport, context: ResumingContext | None) -> None:
        """Begin; the event loop's transport has just connected."""
        self._transport = transport
        self.context = context
        if self.broken:
            transport.abort()

    def usable(self) -> bool:
        """Whether a request may be written now."""
        return not self.broken and self._transport is not None and not self._transport.is_closing()

    @property
    def answering(self) -> bool:
        """Whether anything of the answer has arrived."""
        return self._barren > 0 or self._size > 0

    def ask(self, data: bytes, deadline: float, cap: int, only_head: bool) -> asyncio.Future[HttpReply]:
        """Write a request; the future brings the whole reply, or its head alone where the body is streamed."""
        future = self._future = self._loop.create_future()
        self.due = self._deadline = deadline
        self._cap = cap
        self._only_head = only_head
        self.busy = True
        self.uses += 1
        if self._transport is not None:
            self._write(self._transport, data)
        return future

    def stream_to(self, body: Body, idle_s: float) -> None:
        """Let the answer to the next request go to `body` as it comes, with at most `idle_s` between its bytes."""
        self._body = body
        self._idle_s = idle_s

    def forsake(self, future: asyncio.Future[HttpReply]) -> None:
        """The asking task was cancelled: abort, unless the answer was complete already."""
        if self._future is future:
            self._drop()

    def abandon(self, body: Body) -> None:
        """Nobody reads this answer any further."""
        if self._body is body:
            self._drop()

    def expire(self) -> None:
        """The deadline, or the idle time, has passed."""
        if self.busy:
            self.fail(Reach.TIMEOUT)
        else:
            self._owner.discard(self)

    def end(self) -> None:
        """The client is closing."""
        if self.busy:
            self.fail(Reach.CLOSED)
        else:
            self._owner.discard(self)

    def remember_session(self, name: str) -> None:
        """Let the next handshake with this peer be a short one."""
        if self.context is not None and self._transport is not None:
            self.context.remember(name, self._transport.get_extra_info("ssl_object"))

    def pause(self) -> None:
        """Let the peer wait for a slow reader; only the whole deadline counts meanwhile."""
        self.due = self._deadline
        self._paused = True
        if self._transport is not None:
            self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        self.due = min(self._deadline, self._owner.now() + self._idle_s)
        self._paused = False
        if self._transport is not None:
            self._transport.resume_reading()

    def abort(self) -> None:
        """Close the socket at once: `close` would wait for the peer to read."""
        self.broken = True
        if self._transport is not None:
            self._transport.abort()

    def fail(self, kind: Reach) -> None:
        """End the request with an error, and the connection with it."""
        future, body = self._future, self._body
        self._future = self._body = None
        self.busy = False
        error = NetError(kind, sent=True)
        if future is not None and not future.done():
            future.set_exception(error)
        elif body is not None:
            body.end(error)
        self._owner.discard(self, kind)

    # What the event loop calls.

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more will come."""
        self._lost()
        self._owner.gone(self)

    def eof_received(self) -> None:
        """The peer has said all it will: for some answers that is the end, for all others a failure."""
        if self.busy and self._until_close:
            self._keep = False
            self._finish()
        else:
            self._lost()

    def pause_writing(self) -> None:
        """The peer does not take the request: it has 30 s to go on."""
        self.due = min(self._deadline, self._owner.now() + STALL_S)

    def resume_writing(self) -> None:
        """The peer reads again."""
        self.due = self._deadline

    def data_received(self, data: bytes) -> None:
        """Parse; a complete answer gives the connection back before the asking task runs again."""
        if not self.busy:
            self._lost()
            return
        whole = not self._barren and not self._size and self._body is None  # if it ends in this piece
        if whole and self._came_again(data):
            return
        self._barren += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.fail(self._fault or Reach.PROTOCOL)
            return
        if self._ended:
            if whole and self._keep and self.uses > 1:
                self._known.learn(data, self._reply_headers)
            self._finish()
        elif self._barren > HEAD_BYTES:
            self.fail(Reach.PROTOCOL)

    def _came_again(self, data: bytes) -> bool:
        """Hand on an answer that differs from the one before in nothing that was judged; whether it was one."""
        again, future = self._known.again(data), self._future
        if again is None or future is None or self._only_head or len(again[1]) > self._cap:
            return False
        self._future = None
        self.busy = False
        if not future.done():
            headers, body = again
            future.set_result(HttpReply(status=self._status, headers=headers, body=body))
        self._owner.release(self)
        return True

    # What the parser calls.

    def on_message_begin(self) -> None:
        """Refuse a second answer to one request."""
        if self._ended:
            raise self._refused(Reach.PROTOCOL)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Collect; what comes after the head (trailers) is collected and forgotten."""
        headers = self._headers
        name = name.lower()
        if name in headers:
            self._repeated += 1
            value = headers[name] + b", " + value
        headers[name] = value

    def on_headers_complete(self) -> None:
        """Judge the head: sizes, framing, encoding."""
        headers, self._headers = self._headers, {}
        self._known.forget()
        parser = self._parser
        status = self._status = parser.get_status_code()
        # Fewer bytes than the bound have arrived in all: then the head is within it too.
        if len(headers) + self._repeated > HEAD_LINES or (self._barren > HEAD_BYTES and _weight(headers) > HEAD_BYTES):
            raise self._refused(Reach.PROTOCOL)
        if status < 200:
            if status == 101:
                raise self._refused(Reach.PROTOCOL)
            return
        self._keep = parser.should_keep_alive()
        self._reply_headers = headers
        self._frame(status, headers)
        if b"keep-alive" in headers:
            self.patience_s = _patience(headers[b"keep-alive"])
        if self._body is not None:
            self._announce(status, headers)

    def on_body(self, data: bytes) -> None:
        """Count while reading, and keep or hand on."""
        self._barren = 0
        self._size += len(data)
        if self._size > self._cap:
            raise self._refused(Reach.TOO_LARGE)
        if self._body is None:
            self._parts.append(data)
        else:
            self.due = min(self._deadline, self._owner.now() + self._idle_s)
            self._body.feed(data)

    def on_message_complete(self) -> None:
        """Note the end; 1xx answers only precede the real one."""
        if self._status >= 200:
            self._ended = True
        # Trailers must not become headers of the next answer.
        if self._headers:
            self._headers = {}
        self._repeated = 0

    # Private.

    def _frame(self, status: int, headers: dict[bytes, bytes]) -> None:
        """Find out where the body will end; the parser itself has refused two lengths at once."""
        coding = headers.get(b"transfer-encoding")
        length = headers.get(b"content-length")
        if coding is not None and coding.lower() != b"chunked":
            raise self._refused(Reach.PROTOCOL)
        if b"content-encoding" in headers and headers[b"content-encoding"].lower() not in (b"", b"identity"):
            raise self._refused(Reach.COMPRESSED)
        if self._only_head:
            self._keep = False
            self._ended = True
        elif length is not None:
            if int(length) > self._cap and status != 304:
                raise self._refused(Reach.TOO_LARGE)
        elif coding is None and status not in (204, 304):
            self._until_close = True

    def _announce(self, status: int, headers: dict[bytes, bytes]) -> None:
        """The head of a streamed answer goes to whoever asked, before its body is there."""
        future, self._future = self._future, None
        self.due = min(self._deadline, self._owner.now() + self._idle_s)
        if future is not None and not future.done():
            future.set_result(HttpReply(status=status, headers=headers))

    def _refused(self, kind: Reach) -> NetError:
        self._fault = kind
        return NetError(kind, sent=True)

    def _drop(self) -> None:
        self._future = self._body = None
        self.busy = False
        self._owner.discard(self)

    def _lost(self) -> None:
        if self.busy:
            self.fail(Reach.RESET)
        elif not self.broken:
            self._owner.went_stale(self)

    def _finish(self) -> None:
        future, body = self._future, self._body
        self._future = self._body = None
        self.busy = False
        if body is not None:
            body.end()
        elif future is not None and not future.done():
            future.set_result(HttpReply(status=self._status, headers=self._reply_headers, body=b"".join(self._parts)))
        if not self._keep:
            self._owner.discard(self)
            return
        self._parts = []
        self._size = self._barren = 0
        self._ended = False
        if self._paused:
            self.resume()
        self._owner.release(self)


def _weight(headers: Mapping[bytes, bytes]) -> int:
    return sum(len(name) + len(value) + 4 for name, value in headers.items())


@lru_cache(maxsize=256)
def _patience(value: bytes) -> float:
    """How long the peer says it keeps an idle connection."""
    found = _PATIENCE.search(value)
    return float(found[1]) if found else FOREVER
