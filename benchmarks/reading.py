"""Readers of many streams at once, on one loop: every line is looked at as it comes, and its way here is timed."""

import asyncio
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

import httptools
import msgspec
import uvloop

from benchmarks.http import Endpoint
from benchmarks.place import Void

Result = TypeVar("Result")

_decode = msgspec.json.Decoder().decode


class Reading(asyncio.Protocol):
    """One stream, from the request that asks for it to its end."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._parser = httptools.HttpResponseParser(self)
        self._body = b""
        self._text = ""  # the part of a line that has come
        self._pieces: list[str] = []
        self._now = 0
        self._asked = 0
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.call_id = ""
        self.lines = 0
        self.chunks = 0
        self.first_ms = 0.0
        self.late_ms: list[float] = []

    # -- the connection

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Ask."""
        self._transport = transport
        self._asked = time.monotonic_ns()
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Look at what came; the first fault ends it."""
        self._now = time.monotonic_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserCallbackError as error:
            self._broken(str(error.__context__))

    def connection_lost(self, exc: Exception | None) -> None:
        """A stream that ended before its end is broken."""
        self._broken(f"The stream broke off after {self.lines} lines: {exc}")

    # -- the parser

    def on_body(self, body: bytes) -> None:
        """More of the stream, or of the refusal that came instead."""
        self._body += body
        if self._parser.get_status_code() != 200:
            return
        *frames, self._body = self._body.split(b"\n\n")
        for frame in frames:
            self._take(frame)

    def on_message_complete(self) -> None:
        """The end: well if the last event said so."""
        if not self.ended.done():
            self._broken(f"status {self._parser.get_status_code()}, {self.lines} lines, then: {self._body[:500]!r}")

    # -- the events

    def _take(self, frame: bytes) -> None:
        name = data = b""
        for field in frame.split(b"\n"):
            if field.startswith(b"data: "):
                data = field[6:]
            elif field.startswith(b"event: "):
                name = field[7:]
        if name == b"chunk":
            self._chunk(_decode(data)["content"])
        elif name == b"start":
            self.call_id = _decode(data).get("call_id", "")
            _settle(self.begun)
        elif name == b"complete":
            self._complete(_decode(data))
        elif name == b"error":
            raise ValueError(data.decode())

    def _chunk(self, text: str) -> None:
        _settle(self.begun)
        self.chunks += 1
        self._pieces.append(text)
        *lines, self._text = (self._text + text).split("\n")
        for each in lines:
            number, said, _ = each.split(" ", 2)
            if int(number) != self.lines + 1:
                raise ValueError(f"line {number} after line {self.lines}")
            self.lines += 1
            if self.lines == 1:
                self.first_ms = (self._now - self._asked) / 1e6
            self.late_ms.append((self._now - int(said)) / 1e6)

    def _complete(self, said: dict[str, Any]) -> None:
        if said.get("status") != "completed" or self._text:
            raise ValueError(f"ended as {said.get('status')} within {self._text!r}")
        # The whole answer, where it comes once more, is what came in pieces.
        if said.get("result", {}).get("text", "".join(self._pieces)) != "".join(self._pieces):
            raise ValueError("the result is not what was streamed")
        _settle(self.ended)

    def _broken(self, why: str) -> None:
        for future in (self.begun, self.ended):
            if not future.done():
                future.set_exception(Void(f"A wrong stream: {why}"))
                future.exception()  # Seen: who waits for the other future is told by that one.
        self._transport.close()

    def close(self) -> None:
        """Leave."""
        self._transport.close()


def on_loop(work: Coroutine[None, None, Result]) -> Result:
    """Run to its end what reads streams."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


async def read(endpoint: Endpoint, request: bytes) -> Reading:
    """Open one stream."""
    loop = asyncio.get_running_loop()
    _, reading = await loop.create_connection(lambda: Reading(request), endpoint.host, endpoint.port)
    return reading


async def all_begun(readings: list[Reading], timeout_s: float = 30.0) -> None:
    """Wait until each has said its first word; Void where one is wrong."""
    await _all([each.begun for each in readings], timeout_s)


async def all_ended(readings: list[Reading], lines: int, timeout_s: float = 60.0) -> None:
    """Wait until each has ended well, with so many lines; Void where one has not."""
    await _all([each.ended for each in readings], timeout_s)
    for each in readings:
        each.close()
    wrong = [each for each in readings if each.lines != lines]
    if wrong:
        raise Void(f"{len(wrong)} streams have another number of lines than {lines}, {wrong[0].lines} for one")


async def _all(futures: list[asyncio.Future[None]], timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await asyncio.gather(*futures)
    except TimeoutError:
        left = sum(not each.done() for each in futures)
        raise Void(f"{left} of {len(futures)} streams were silent for {timeout_s:.0f} s") from None


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
