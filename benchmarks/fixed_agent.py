"""An agent that gives back the call's id after a set delay: what nginx cannot do, and the stand-in where it is missing.

Runs alone: `python -m benchmarks.fixed_agent PORT DELAY_MS`. Reads just enough HTTP for the callers measured here.
"""

import asyncio
import json
import re
import sys
from typing import Final

import uvloop

from benchmarks.calls import echo_answer, echo_card

LENGTH: Final = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
TRACE: Final = re.compile(rb"\r\nx-trace-id:\s*([^\r]+)", re.IGNORECASE)


class Answering(asyncio.Protocol):
    """One connection; requests on it are answered in turn."""

    def __init__(self, port: int, delay_s: float) -> None:
        self.card = json.dumps(echo_card(f"http://127.0.0.1:{port}/")).encode()
        self.delay_s = delay_s
        self.held = b""

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Keep the way back."""
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is complete."""
        self.held += data
        while (end := self.held.find(b"\r\n\r\n")) >= 0:
            head = self.held[:end]
            length = LENGTH.search(head)
            whole = end + 4 + (int(length[1]) if length else 0)
            if len(self.held) < whole:
                return
            self.held = self.held[whole:]
            trace = TRACE.search(head)
            body = self.card if head.startswith(b"GET") else echo_answer(trace[1].decode() if trace else "").encode()
            answer = (
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            )
            if self.delay_s and not head.startswith(b"GET"):
                asyncio.get_running_loop().call_later(self.delay_s, self.transport.write, answer)
            else:
                self.transport.write(answer)


async def serve(port: int, delay_s: float) -> None:
    """Listen until the process is ended."""
    server = await asyncio.get_running_loop().create_server(lambda: Answering(port, delay_s), "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(int(sys.argv[1]), float(sys.argv[2]) / 1e3))
