"""Raw clients: slow, greedy, malformed and rude ones, with sockets and no HTTP library.

`CASES` are eighteen requests that a server must refuse, or close within its limits, whatever runs behind it. They take
a `Target`, so that they run against a tiny application and against a hub alike:

    target = Target.at("http://127.0.0.1:8700", path="/readyz", method="GET")
    assert faults(target, Limits()) == []
    assert good(target)
"""

import select
import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self
from urllib.parse import urlsplit

CONNECT_S: Final = 5.0
SLACK_S: Final = 3.0  # a busy machine, and the error of the server's sweep
KIB: Final = 1024
RESET: Final = struct.pack("ii", 1, 0)


@dataclass(frozen=True, kw_only=True)
class Target:
    """A server, and a request that it takes."""

    host: str
    port: int
    path: str = "/"
    method: str = "POST"
    body: bytes = b'{"hello":"world"}'
    headers: tuple[str, ...] = ("Content-Type: application/json",)
    good_statuses: frozenset[int] = frozenset({200})
    early_statuses: frozenset[int] = frozenset()  # what the application says before it has read a body

    @classmethod
    def at(cls, base: str, *, path: str = "/", method: str = "POST", headers: tuple[str, ...] = ()) -> Self:
        """The server at that address; a GET has no body."""
        parts = urlsplit(base)
        body = b"" if method == "GET" else b'{"hello":"world"}'
        return cls(
            host=parts.hostname or "", port=parts.port or 80, path=path, method=method, headers=headers, body=body
        )

    @property
    def host_line(self) -> str:
        return f"Host: {self.host}:{self.port}"

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=CONNECT_S)

    def head(self, *lines: str, method: str = "POST", path: str | None = None) -> bytes:
        """A request line, a Host and these lines, without the empty one."""
        return "\r\n".join(
            (f"{method} {path or self.path} HTTP/1.1", self.host_line, *self.headers, *lines, "")
        ).encode("latin-1")

    def good(self) -> bytes:
        """A request that the server takes."""
        length = (f"Content-Length: {len(self.body)}",) if self.body else ()
        return self.head(*length, method=self.method) + b"\r\n" + self.body


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer as it was read: head in lower case, body without its framing."""

    status: int
    headers: tuple[str, ...]
    body: bytes


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of a connection."""

    status: int | None  # None: closed without a word
    closed: bool
    elapsed_s: float
    seen: bytes


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How long the server lets a client take."""

    header_s: float = 10.0
    body_s: float = 30.0
    reader_s: float = 30.0


class When(StrEnum):
    """By which limit a case has to end."""

    AT_ONCE = "at once"
    HEADER = "header"
    BODY = "body"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One way to misbehave, and what the server may do about it."""

    name: str
    send: Callable[[Target], bytes]
    statuses: frozenset[int]
    when: When = When.AT_ONCE
    silently: bool = field(default=False)  # it may also close without a word

    def limit_s(self, limits: Limits) -> float:
        return {When.AT_ONCE: 0.0, When.HEADER: limits.header_s, When.BODY: limits.body_s}[self.when]

    def fault(self, target: Target, outcome: Outcome, limits: Limits) -> str | None:
        """Why the server did not stand this case; None if it did."""
        if not outcome.closed:
            return f"{self.name}: still open after {outcome.elapsed_s:.1f} s; seen {outcome.seen[:80]!r}"
        if self.limit_s(limits) and outcome.elapsed_s < self.limit_s(limits) / 3:
            return f"{self.name}: closed after {outcome.elapsed_s:.1f} s, which is no time at all"
        if outcome.status is None:
            return None if self.silently else f"{self.name}: closed without an answer"
        if outcome.status not in self.statuses | target.early_statuses:
            return f"{self.name}: answered {outcome.status}, expected {sorted(self.statuses)}"
        return None


def _lines(count: int) -> tuple[str, ...]:
    return tuple(f"X-Line-{number}: v" for number in range(count))


BAD: Final = frozenset({400})
LATE: Final = frozenset({408})
LARGE: Final = frozenset({431})

CASES: Final = (
    Case(name="idle", send=lambda _: b"", statuses=LATE, when=When.HEADER, silently=True),
    Case(name="partial header", send=lambda t: t.head("X-Half: y")[:-5], statuses=LATE, when=When.HEADER),
    Case(
        name="stalled body",
        send=lambda t: t.head("Content-Length: 100") + b"\r\nabc",
        statuses=LATE,
        when=When.BODY,
    ),
    Case(
        name="stalled chunk",
        send=lambda t: t.head("Transfer-Encoding: chunked") + b"\r\n64\r\nabc",
        statuses=LATE,
        when=When.BODY,
    ),
    Case(name="64 KiB header", send=lambda t: t.head("X: " + "a" * 64 * KIB) + b"\r\n", statuses=LARGE),
    Case(name="1 MiB header", send=lambda t: t.head("X: " + "a" * KIB * KIB) + b"\r\n", statuses=LARGE),
    Case(name="10,000 header lines", send=lambda t: t.head(*_lines(10_000)) + b"\r\n", statuses=LARGE),
    Case(
        name="64 KiB URL",
        send=lambda t: t.head(method="GET", path="/" + "a" * 64 * KIB) + b"\r\n",
        statuses=frozenset({414, 431}),
    ),
    Case(
        name="two Content-Length",
        send=lambda t: t.head("Content-Length: 3", "Content-Length: 3") + b"\r\nabc",
        statuses=BAD,
    ),
    Case(
        name="Content-Length with Transfer-Encoding",
        send=lambda t: t.head("Content-Length: 3", "Transfer-Encoding: chunked") + b"\r\n0\r\n\r\n",
        statuses=BAD,
    ),
    Case(name="no Host", send=lambda t: f"GET {t.path} HTTP/1.1\r\nX: y\r\n\r\n".encode(), statuses=BAD),
    Case(name="two Hosts", send=lambda t: t.head(t.host_line, method="GET") + b"\r\n", statuses=BAD),
    Case(
        name="bare LF",
        send=lambda t: (t.head(method="GET") + b"\r\n").replace(b"\r\n", b"\n"),
        statuses=BAD,
    ),
    Case(name="NUL in a header", send=lambda t: t.head("X: a\x00b", method="GET") + b"\r\n", statuses=BAD),
    Case(name="Content-Length: +3", send=lambda t: t.head("Content-Length: +3") + b"\r\nabc", statuses=BAD),
    Case(
        name="Transfer-Encoding: xchunked",
        send=lambda t: t.head("Transfer-Encoding: xchunked") + b"\r\n0\r\n\r\n",
        statuses=BAD,
    ),
    Case(
        name="LF in a chunk extension",
        send=lambda t: t.head("Transfer-Encoding: chunked") + b"\r\n3;a\nb\r\nabc\r\n0\r\n\r\n",
        statuses=BAD,
    ),
    Case(name="space before the colon", send=lambda t: t.head("X : y", method="GET") + b"\r\n", statuses=BAD),
)


def attempt(target: Target, case: Case, limits: Limits) -> Outcome:
    """Send the case's bytes, then only read, until the server ends it or its limit and some slack are over."""
    started = time.monotonic()
    until = started + case.limit_s(limits) + SLACK_S
    with target.connect() as client:
        seen, closed = _exchange(client, case.send(target), until)
    return Outcome(status=_status(seen), closed=closed, elapsed_s=time.monotonic() - started, seen=seen)


def faults(target: Target, limits: Limits, cases: Iterable[Case] = CASES) -> list[str]:
    """All cases at once, each on a connection of its own: what the server did not stand."""

    def fault(case: Case) -> str | None:
        return case.fault(target, attempt(target, case, limits), limits)

    with ThreadPoolExecutor(max_workers=len(CASES)) as clients:
        return [found for found in clients.map(fault, cases) if found]


def converse(target: Target, *pieces: bytes, until_closed: bool = False, timeout_s: float = CONNECT_S) -> list[Reply]:
    """Send the pieces one by one and read: as many answers as pieces hold requests, or all up to the close."""
    with target.connect() as client:
        client.settimeout(timeout_s)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            client.sendall(piece)
        if until_closed:
            seen, closed = _exchange(client, b"", time.monotonic() + timeout_s)
            if not closed:
                raise TimeoutError(f"Still open; seen {seen!r}")
            return list(replies(seen))
        return [read_reply(client)]


def read_reply(client: socket.socket) -> Reply:
    """One answer, off an open connection; what lies behind it is not expected."""
    seen = b""
    while True:
        piece = client.recv(256 * KIB)
        if not piece:
            raise ConnectionError(f"Closed inside an answer: {seen[:200]!r}")
        seen += piece
        if found := next(replies(seen), None):
            return found


def replies(seen: bytes) -> Iterator[Reply]:
    """The complete answers in these bytes, interim ones included."""
    while b"\r\n\r\n" in seen:
        head, rest = seen.split(b"\r\n\r\n", 1)
        lines = tuple(line.lower() for line in head.decode("latin-1").split("\r\n"))
        status = int(lines[0].split(" ")[1])
        length = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), 0)
        if "transfer-encoding: chunked" in lines:
            body, rest, complete = _unchunk(rest)
            if not complete:
                return
        elif len(rest) < length:
            return
        else:
            body, rest = rest[:length], rest[length:]
        yield Reply(status=status, headers=lines[1:], body=body)
        seen = rest


def good(target: Target) -> bool:
    """Whether a well-behaved client is served."""
    return converse(target, target.good())[0].status in target.good_statuses


def reset_at_every_offset(target: Target) -> int:
    """Cut off a good request after each of its bytes, each time with a reset; the number of resets."""
    request = target.good()
    for offset in range(len(request) + 1):
        with target.connect() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            client.sendall(request[:offset])
    return len(request) + 1


def never_read(target: Target, limits: Limits) -> Outcome:
    """Ask and ask, and never take an answer, until the server hangs up."""
    started = time.monotonic()
    until = started + limits.reader_s + 2 * SLACK_S
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * KIB)  # before connecting, or it is too late
        client.settimeout(CONNECT_S)
        client.connect((target.host, target.port))
        client.setblocking(False)
        poller = select.poll()
        poller.register(client, select.POLLOUT)
        request = target.good() * 16
        closed = False
        while time.monotonic() < until and not closed:
            events = poller.poll(100)
            closed = any(event & (select.POLLERR | select.POLLHUP) for _, event in events)
            try:
                if events and not closed:
                    sent = client.send(request)
                    request = request[sent:] or target.good() * 16
            except BlockingIOError:
                pass
            except (ConnectionError, BrokenPipeError):
                closed = True
    return Outcome(status=None, closed=closed, elapsed_s=time.monotonic() - started, seen=b"")


def _exchange(client: socket.socket, data: bytes, until: float) -> tuple[bytes, bool]:
    client.setblocking(False)
    poller = select.poll()
    poller.register(client, select.POLLIN | (select.POLLOUT if data else 0))
    seen = b""
    while (left := until - time.monotonic()) > 0:
        for _, event in poller.poll(left * 1000):
            try:
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR):
                    piece = client.recv(256 * KIB)
                    if not piece:
                        return seen, True
                    seen += piece
                elif event & select.POLLOUT:
                    data = data[client.send(data) :]
                    if not data:
                        poller.modify(client, select.POLLIN)
            except (ConnectionError, BrokenPipeError):
                return seen, True
    return seen, False


def _status(seen: bytes) -> int | None:
    return int(seen.split(b" ", 2)[1]) if seen.startswith(b"HTTP/1.1 ") else None


def _unchunk(data: bytes) -> tuple[bytes, bytes, bool]:
    body = b""
    while b"\r\n" in data:
        size, rest = data.split(b"\r\n", 1)
        length = int(size, 16)
        if len(rest) < length + 2:
            break
        body, data = body + rest[:length], rest[length + 2 :]
        if length == 0:
            return body, data, True
    return body, data, False
