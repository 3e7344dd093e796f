"""Just enough HTTP/1.1 for agents in a process of their own: requests in, answers and streams out, many at a time.

A module that is such an agent calls `listen` when it is run; a test starts it with `process`, which gives its port.
"""

import asyncio
import contextlib
import json
import re
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final, NamedTuple

from tests.support.hub import ROOT

LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
STREAM_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


class Request(NamedTuple):
    """One request: its path, its headers by their small names, its body as JSON."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class Connection(asyncio.Protocol):
    """One connection; requests on it are answered in turn."""

    def __init__(self, answer: "Answer") -> None:
        self._answer = answer
        self._held = b""
        self._chunked = False
        self._transport: asyncio.Transport | None = None

    @property
    def gone(self) -> bool:
        """Whether nobody listens any more."""
        return self._transport is None or self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody is there."""
        self._transport = None

    def data_received(self, data: bytes) -> None:
        """Hand on every request that is complete."""
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            head = self._held[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self._held) < whole:
                return
            body, self._held = self._held[end + 4 : whole], self._held[whole:]
            first, *lines = head.decode("latin-1").split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
            self._answer(Request(first.split(" ", 2)[1], headers, json.loads(body or b"{}")), self)

    def say(self, answer: object) -> None:
        """Answer with JSON."""
        said = json.dumps(answer).encode()
        self._write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(said) + said
        )

    def begin(self, *, chunked: bool) -> None:
        """Answer with a stream of events, whose end is marked, or is that of the connection."""
        self._chunked = chunked
        self._write(STREAM_HEAD + (b"Transfer-Encoding: chunked\r\n\r\n" if chunked else b"Connection: close\r\n\r\n"))

    def event(self, name: str, data: object) -> None:
        """One event of the stream, with a name where it has one."""
        said = b"%bdata: %b\n\n" % (f"event: {name}\n".encode() if name else b"", json.dumps(data).encode())
        self._write(b"%x\r\n%b\r\n" % (len(said), said) if self._chunked else said)

    def end(self) -> None:
        """The end of the stream."""
        if self._chunked:
            self._write(b"0\r\n\r\n")
        elif self._transport is not None:
            self._transport.close()

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)


Answer = Callable[[Request, Connection], None]


async def listen(answer: Answer) -> None:
    """Answer on a free port, whose number is the first line printed, until the process is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Connection(answer), "127.0.0.1", 0, backlog=1024)
    sys.stdout.write(f"{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await server.serve_forever()


class Process(NamedTuple):
    """A running module: its port, and how it is killed."""

    port: int
    kill: Callable[[], None]


@contextlib.contextmanager
def process(module: str, *arguments: str) -> Generator[Process]:
    """A module that listens, running within the block unless it is killed before."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=ROOT) as running:
        try:
            assert running.stdout is not None
            yield Process(int(running.stdout.readline()), running.kill)
        finally:
            running.kill()
