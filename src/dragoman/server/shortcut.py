"""The shortcut: a plain POST on a hot path goes from the parser to what serves it and its answer out again, past ASGI.

    on_headers_complete ─▶ plain? ─▶ ShortAnswer ─▶ serve(headers, body, address) ─▶ head and body in one write
                             └── no ─▶ Answer ─▶ the ASGI application

Only a short body of a length that was said, every header once, nothing expected or offered. What is answered may be a
stream, too. The application serves these paths as well: without this file the hub does the same, a little slower.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from dragoman.model.http import HttpReply
from dragoman.server.answer import Answer, Connection
from dragoman.server.streaming import StreamReply

SHORT_BYTES: Final = 64 * 1024  # all of it is held before anything is served, and the client need never wait

Serve = Callable[
    [dict[bytes, bytes], bytes, str], Awaitable[HttpReply | StreamReply]
]  # headers, body, the client's address
Find = Callable[[bytes], Serve | None]
REMEMBERED: Final = 10_000

_log = logging.getLogger("dragoman.server")
_NOT_PLAIN: Final = frozenset((b"transfer-encoding", b"expect", b"upgrade"))


class HotPaths(dict[bytes, Serve | None]):
    """What serves a POST past ASGI, by its URL, if it may take the shortcut: looked for once, then remembered."""

    def __init__(self) -> None:
        super().__init__()
        self._find: Find | None = None

    def open(self, find: Find) -> None:
        """From now on there is somebody to serve."""
        self._find = find

    def close(self) -> None:
        """Nobody serves any more."""
        self._find = None
        self.clear()

    def __missing__(self, url: bytes) -> Serve | None:
        found = None if self._find is None else self._find(url)
        if found is not None:
            if len(self) >= REMEMBERED:
                self.clear()
            self[url] = found
        return found


def is_plain(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request with these headers, each of which came once, may take the shortcut."""
    length = headers.get(b"content-length")
    return length is not None and int(length) <= SHORT_BYTES and _NOT_PLAIN.isdisjoint(headers)


class ShortAnswer(Answer):
    """One request on a hot path, and its answer; a client that leaves is seen as on the long way."""

    _waiter: asyncio.Future[None] | None = None  # for the end of the body

    def __init__(self, connection: Connection, *, keep_alive: bool) -> None:
        self.connection = connection
        self.transport = connection.transport
        self.flow = connection.flow
        self.keep_alive = keep_alive
        # Its own from the beginning: what only the class has is dear to read, and these are read often.
        self.disconnected = self.headless = self.chunked_encoding = self.response_complete = False
        self.arrived = self.head = b""
        self.more_body = True
        self._waiter = None

    def wake(self) -> None:
        """More of the body is there, or the client is gone."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def run(self, serve: Serve, headers: dict[bytes, bytes], address: str) -> None:
        """Serve the request once its body is complete; what fails becomes a 500."""
        try:
            while self.more_body and not self.disconnected:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
            if self.disconnected:
                return
            reply = await serve(headers, self.arrived, address)
            if not isinstance(reply, HttpReply):
                headers, self.arrived = {}, b""  # A stream lasts: it holds nothing that it does not need.
                await self.stream(reply)
                return
            if self.flow.write_paused and not self.disconnected:
                await self.flow.drain()
            if not self.disconnected:
                self.open(reply.status, reply.headers)
                self.write(reply.body)
        except Exception:  # noqa: BLE001 - whatever it was, the client gets an answer and the log the reason
            _log.exception("A hot path failed.")
            await self.break_off()
        finally:
            if self.task is not None:
                self.connection.tasks.discard(self.task)
