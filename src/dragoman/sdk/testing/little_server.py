"""A little HTTP server for tests, on a free port of the loopback address: one function answers every request.

HTTP/1.1 with kept connections and bodies of a length that is said; nothing else, and nothing for production.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, Self

import msgspec

from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.ports.clock import Clock

HOST: Final = "127.0.0.1"
HEAD_BYTES: Final = 64 * 1024
BODY_BYTES: Final = 64 * 1024 * 1024


class Streamed(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that goes on for a while; it ends with its connection."""

    headers: Headers
    pieces: AsyncIterator[bytes]


Answerer = Callable[[HttpRequest], Awaitable[HttpReply | Streamed]]


class LittleServer:
    """Serves within its block; `url` has no final slash."""

    def __init__(self, answer: Answerer, clock: Clock) -> None:
        self._answer = answer
        self._clock = clock
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connected, HOST, 0, limit=HEAD_BYTES)
        self.url = f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
            serving = list(self._open)
            for task in serving:
                task.cancel()
            if serving:
                await asyncio.wait(serving)
            await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine that runs is some task's
        self._open.add(task)
        try:
            # Cancelled only at the end of the block; asyncio would report a cancelled one as broken.
            with contextlib.suppress(
                ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError
            ):
                while (request := await self._read(reader)) is not None:
                    answer = await self._answer(request)
                    if isinstance(answer, Streamed):
                        await _write_stream(writer, answer)
                        return
                    writer.write(_head(answer.status, answer.headers, len(answer.body)))
                    writer.write(b"" if request.method == "HEAD" else answer.body)
                    await writer.drain()
        finally:
            self._open.discard(task)
            writer.close()

    async def _read(self, reader: asyncio.StreamReader) -> HttpRequest | None:
        """The next request of a connection; None where nothing that can be read follows."""
        first, *lines = (await reader.readuntil(b"\r\n\r\n"))[:-4].split(b"\r\n")
        words = first.split(b" ")
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)}
        length = headers.get(b"content-length", b"0")
        if len(words) != 3 or not length.isdigit() or int(length) > BODY_BYTES or b"transfer-encoding" in headers:
            return None
        return HttpRequest(
            method=words[0].decode("ascii", "replace"),
            url=words[1].decode("ascii", "replace"),
            headers=headers,
            body=await reader.readexactly(int(length)),
            id=self._clock.new_id(""),
            at=self._clock.now(),
            hub=self.url,
        )


def _head(status: int, headers: Headers, length: int | None) -> bytes:
    lines = [b"HTTP/1.1 %d OK" % status, *(name + b": " + value for name, value in headers.items())]
    lines.append(b"connection: close" if length is None else b"content-length: %d" % length)
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _write_stream(writer: asyncio.StreamWriter, answer: Streamed) -> None:
    writer.write(_head(200, answer.headers, None))
    async for piece in answer.pieces:
        writer.write(piece)
        await writer.drain()
