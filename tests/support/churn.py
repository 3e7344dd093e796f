"""Thousands of readers in a process of their own: they open streams, hear what is said, and leave when they are told.

The pieces they hear are those of `stream_agents.py`: numbered, and stamped with the time of their sending. A test talks
to the process by lines of JSON, one answer to each. Runs alone: `python -m tests.support.churn PORT TOKEN`.
"""

import asyncio
import contextlib
import json
import re
import socket
import struct
import subprocess
import sys
import time
from collections import deque
from collections.abc import Generator, Sequence
from typing import Any, Final

import msgspec
import uvloop

from tests.support.figures import raise_file_limit
from tests.support.hub import ROOT, HubProcess

AT_ONCE: Final = 200
OPEN_S: Final = 30.0
STEP_S: Final = 0.02
PIECE: Final = re.compile(rb'id: (\d+)\nevent: chunk\ndata: {"content":"([^\n]*) "}\n\n')
RESET: Final = struct.pack("ii", 1, 0)  # who leaves leaves at once: thousands of lingering ports would use them up


class Heard(msgspec.Struct, frozen=True, kw_only=True):
    """What all readers together have heard: how many of them a piece, how late, and what went wrong."""

    readers: int
    heard: int  # readers that have the piece
    faults: list[str]
    last_id: int = 0  # the highest number of an event that came
    p50_ms: float = 0.0
    p99_ms: float = 0.0
    worst_ms: float = 0.0


class Stream(asyncio.Protocol):
    """One reader of one stream."""

    __slots__ = ("_churn", "_held", "_request", "began", "last_id", "piece", "transport")

    def __init__(self, churn: "Streams", request: bytes) -> None:
        self._churn = churn
        self._request = request
        self._held = b""
        self.began: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.last_id = 0
        self.piece = -1  # the last that was heard
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # TCP has no other
        """Ask for the stream."""
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.transport = transport
        transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wanted, or a fault."""
        if self in self._churn.open:
            self._churn.fault(f"a stream broke off after event {self.last_id}: {exc}")
            self._churn.open.remove(self)
        if not self.began.done():
            self.began.set_exception(ConnectionError("the stream did not begin"))

    def data_received(self, data: bytes) -> None:
        """Events, whole ones only; what is between them is the framing of HTTP."""
        held = self._held + data if self._held else data
        end = held.rfind(b"\n\n") + 2
        if end < 2:
            self._held = held
            return
        self._held = held[end:]
        if not self.began.done():
            if not held.startswith(b"HTTP/1.1 200 "):
                self._churn.fault(f"a stream was refused: {held[:200]!r}")
            self.began.set_result(None)
        now = time.monotonic()
        for number, content in PIECE.findall(held, 0, end):
            self._hear(int(number), content, now)

    def _hear(self, number: int, content: bytes, now: float) -> None:
        if number <= self.last_id:
            self._churn.fault(f"event {number} came after {self.last_id}")
        self.last_id = number
        for said in content.split(b" "):
            piece, _, sent = said.rstrip(b"x").partition(b"@")
            if int(piece) != self.piece + 1:
                self._churn.fault(f"piece {int(piece)} came after {self.piece}")
            self.piece = int(piece)
            self._churn.late_s.append(now - float(sent))


class Streams:
    """All readers of this process."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n"
        self._faults: list[str] = []
        self.open: set[Stream] = set()
        self._order: deque[Stream] = deque()
        self.late_s: list[float] = []

    def fault(self, what: str) -> None:
        """Note what may not happen."""
        self._faults.append(what)

    async def do(self, told: dict[str, Any]) -> Heard:
        """What one line asks for."""
        match told["do"]:
            case "open":
                await self._open(told["paths"], told["count"])
            case "leave":
                self._leave(told["count"])
            case "hear":
                await self._hear(told["piece"], told["within_s"])
            case other:
                raise ValueError(other)
        late = sorted(self.late_s)
        self.late_s = []
        heard = sum(1 for each in self.open if each.piece == told.get("piece", -1))
        last_id = max((each.last_id for each in self.open), default=0)
        answer = Heard(readers=len(self.open), heard=heard, faults=self._faults[:10], last_id=last_id)
        if not late:
            return answer
        return msgspec.structs.replace(
            answer,
            p50_ms=late[len(late) // 2] * 1000,
            p99_ms=late[int(len(late) * 0.99)] * 1000,
            worst_ms=late[-1] * 1000,
        )

    async def _open(self, paths: Sequence[str], count: int) -> None:
        for first in range(0, count, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, count))
            async with asyncio.timeout(OPEN_S):
                await asyncio.gather(*(self._begin(paths[number % len(paths)]) for number in numbers))
        self.late_s = []  # what was said before they came is not late

    async def _begin(self, path: str) -> None:
        request = f"GET {path} HTTP/1.1\r\n{self._head}".encode()
        loop = asyncio.get_running_loop()
        try:
            _, stream = await loop.create_connection(lambda: Stream(self, request), "127.0.0.1", self._port)
            await stream.began
        except OSError as error:
            self.fault(f"a stream could not be opened: {error}")
            return
        self.open.add(stream)
        self._order.append(stream)

    def _leave(self, count: int) -> None:
        for _ in range(count):
            stream = self._order.popleft()
            self.open.discard(stream)
            if stream.transport is not None:
                stream.transport.abort()

    async def _hear(self, piece: int, within_s: float) -> None:
        until = time.monotonic() + within_s
        while any(each.piece < piece for each in self.open):
            if time.monotonic() > until:
                return
            await asyncio.sleep(STEP_S)


class Churn:
    """The running readers, as a test sees them."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    def open(self, paths: Sequence[str], count: int) -> Heard:
        """Open so many streams, of each of these paths in turn; returns when each has its first event."""
        return self._tell({"do": "open", "paths": list(paths), "count": count})

    def leave(self, count: int) -> Heard:
        """Let those that came first go, so many."""
        return self._tell({"do": "leave", "count": count})

    def hear(self, piece: int, within_s: float = 20.0) -> Heard:
        """Wait until every reader has heard a piece; how late the pieces were since the last time."""
        return self._tell({"do": "hear", "piece": piece, "within_s": within_s})

    def _tell(self, what: dict[str, Any]) -> Heard:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(what).encode() + b"\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Heard)


@contextlib.contextmanager
def churn(hub: HubProcess) -> Generator[Churn]:
    """Readers of that hub, in a process that runs within the block."""
    command = [sys.executable, "-m", "tests.support.churn", str(hub.port), hub.token or ""]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        try:
            yield Churn(process)
        finally:
            process.kill()


async def _serve(port: int, token: str) -> None:
    raise_file_limit()
    streams = Streams(port, token)
    while line := await asyncio.to_thread(sys.stdin.readline):
        sys.stdout.write(msgspec.json.encode(await streams.do(json.loads(line))).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(int(sys.argv[1]), sys.argv[2]))
