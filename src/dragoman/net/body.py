"""The body of a streamed answer: an iterator of bytes with a bounded buffer.

Beyond 256 KiB unread the socket is no longer read, below 64 KiB it is again: a slow reader slows the peer, it does not
fill our memory. Closing the iterator before its end aborts the connection.
"""

import asyncio
from collections import deque
from typing import Final, Protocol, Self, final

from dragoman.net.errors import NetError

HIGH_BYTES: Final = 256 * 1024
LOW_BYTES: Final = 64 * 1024


class Source(Protocol):
    """The connection that fills a body."""

    def pause(self) -> None:
        """Read no more from the peer."""
        ...

    def resume(self) -> None:
        """Read again."""
        ...

    def abandon(self, body: "Body") -> None:
        """Abort, if this body is still the one being read."""
        ...


@final
class Body:
    """What has arrived and was not taken yet; one reader."""

    __slots__ = ("_chunks", "_ended", "_error", "_paused", "_source", "_unread", "_waiter")

    def __init__(self, source: Source) -> None:
        """Start empty."""
        self._source: Source | None = source
        self._chunks: deque[bytes] = deque()
        self._unread = 0
        self._paused = False
        self._ended = False
        self._error: NetError | None = None
        self._waiter: asyncio.Future[None] | None = None

    def feed(self, data: bytes) -> None:
        """Take what the peer sent."""
        self._chunks.append(data)
        self._unread += len(data)
        if self._unread > HIGH_BYTES and not self._paused and self._source is not None:
            self._paused = True
            self._source.pause()
        self._wake()

    def end(self, error: NetError | None = None) -> None:
        """Nothing more will come; what arrived before an error is still read first."""
        self._ended = True
        self._error = error
        self._source = None
        self._wake()

    def __aiter__(self) -> Self:
        """Iterate once, to the end."""
        return self

    async def __anext__(self) -> bytes:
        """What has arrived since, at most some 64 KiB at a time; raises NetError where the answer broke off."""
        while not self._chunks:
            if self._ended:
                error, self._error = self._error, None
                if error is not None:
                    raise error
                raise StopAsyncIteration
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        return self._take()

    async def aclose(self) -> None:
        """Read no further: an unfinished answer aborts its connection."""
        source, self._source = self._source, None
        self._ended = True
        self._chunks.clear()
        if source is not None:
            source.abandon(self)

    def _take(self) -> bytes:
        chunks = self._chunks
        data = chunks.popleft()
        if chunks and len(data) < LOW_BYTES:
            taken = [data]
            size = len(data)
            while chunks and size < LOW_BYTES:
                taken.append(chunks.popleft())
                size += len(taken[-1])
            data = b"".join(taken)
        self._unread -= len(data)
        if self._paused and self._unread < LOW_BYTES and self._source is not None:
            self._paused = False
            self._source.resume()
        return data

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
