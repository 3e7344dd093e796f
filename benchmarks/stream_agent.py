"""An agent that streams: so many lines, so many a second, each with its number and the time it was said.

Runs alone: `python -m benchmarks.stream_agent PORT`. `POST /go` lets the calls begin that were told to wait. Each
stream keeps its own pace, so a hundred of them do not speak in chorus.
"""

import asyncio
import json
import re
import sys
from typing import Any, Final

import uvloop

from benchmarks.telling import chunk, event, line

LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
NOTHING: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n\r\n{}"
ALIVE: Final = b"3\r\n:\n\n\r\n"
ALIVE_S: Final = 10.0  # an agent that is silent for a minute is given up
LAST: Final = b"0\r\n\r\n"

waiting: set["Telling"] = set()


class Telling(asyncio.Protocol):
    """One connection; a stream on it ends before the next request begins."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.held = b""
        self.next: asyncio.TimerHandle | None = None
        self.said = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Keep the way back."""
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        """Nobody listens any more."""
        waiting.discard(self)
        if self.next is not None:
            self.next.cancel()

    def data_received(self, data: bytes) -> None:
        """Serve a request that is complete."""
        self.held += data
        end = self.held.find(b"\r\n\r\n")
        length = LENGTH.search(self.held, 0, end) if end >= 0 else None
        whole = end + 4 + (int(length[1]) if length else 0)
        if end < 0 or len(self.held) < whole:
            return
        head, body, self.held = self.held[:end], self.held[end + 4 : whole], self.held[whole:]
        if head.startswith(b"POST /a2a "):
            self.tell(json.loads(body)["input"])
            return
        self.transport.write(NOTHING)
        if head.startswith(b"POST /go "):
            for each in list(waiting):
                waiting.discard(each)
                each.begin()

    def tell(self, wanted: dict[str, Any]) -> None:
        """Answer with a stream."""
        self.lines, self.pause_s, self.said = wanted["lines"], 1 / wanted["per_s"], 0
        self.transport.write(HEAD)
        if wanted["waits"]:
            waiting.add(self)
        else:
            self.begin()

    def begin(self) -> None:
        """Say the first line now, and from now on the others."""
        self.began = self.loop.time()
        self.say()

    def say(self) -> None:
        """Say one line, or that this was all."""
        if self.said == self.lines:
            done = event("complete", b'{"status":"completed"}')
            self.transport.write(b"%x\r\n%b\r\n" % (len(done), done) + LAST)
            return
        self.said += 1
        piece = chunk(line(self.said))
        self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        # From the beginning, not from the last line: what comes late does not make the rest late.
        self.next = self.loop.call_at(self.began + self.said * self.pause_s, self.say)


async def serve(port: int) -> None:
    """Listen until the process is ended; calls that wait are shown to be alive."""
    server = await asyncio.get_running_loop().create_server(Telling, "127.0.0.1", port, backlog=1024)
    async with server:
        while True:
            await asyncio.sleep(ALIVE_S)
            for each in waiting:
                each.transport.write(ALIVE)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1])))
