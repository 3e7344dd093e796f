"""A stream as an answer: the items of a task in the words of the dialect that asked, as bytes to be sent.

One reader is one of these, the reader of the hub behind it, and the task that serves the request: no task, timer or
queue of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final, Generic, Self, TypeVar, final

import msgspec

from dragoman.delivery.session import Frame
from dragoman.model.answers import Items
from dragoman.model.changes import Change
from dragoman.model.errors import DragomanError
from dragoman.model.http import Headers
from dragoman.model.task import StreamItem

LOG: Final = logging.getLogger("dragoman.server")
Item = TypeVar("Item")
Counted = Callable[[bool], None]

# What is sent to a reader that has heard nothing for a while, so that nobody in between takes it for dead.
KEEP_ALIVE: Final = b":\n\n"
SILENT_S: Final = 8.0  # swept once a second, a silence lasts less than 10 s
# To a reader whose hub stops: come back soon.
COME_BACK: Final = b"retry: 1000\n\n"
EXTENSION: Final = "dragoman.stream"  # of the ASGI scope: who sends a stream better than by ASGI's messages

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


@final
class ByteStream(Generic[Item]):
    """The bytes of one stream, as they come."""

    __slots__ = ("_broken", "_frames", "_items", "_linked", "_nothing_left", "_stopping", "counted")

    def __init__(
        self,
        items: Items[Item],
        frames: Callable[[Item], bytes],
        linked: Callable[[Item], Item] | None = None,
        broken: Callable[[DragomanError], bytes] | None = None,
        nothing_left: bytes = b"",
    ) -> None:
        self._items = items
        self._frames = frames
        self._linked = linked  # where the dialect has no place for files
        self._broken = broken  # where the dialect has words for it
        self._nothing_left = nothing_left  # said where nothing else is
        self._stopping = False
        self.counted: Counted | None = None  # told once when nobody reads any more, and whether it was cut off

    @property
    def cut(self) -> bool:
        """Whether its reader was too slow, and has to come back for the rest."""
        return self._items.cut

    def __aiter__(self) -> Self:
        """Iterate once, to the end."""
        return self

    async def __anext__(self) -> bytes:
        """The frames of all items that have gathered."""
        while True:
            try:
                piece = self._worded(await anext(self._items))
            except StopAsyncIteration:
                if self._stopping:
                    self._stopping = False
                    return COME_BACK
                if not self._nothing_left or self._items.cut:
                    raise
                last, self._nothing_left = self._nothing_left, b""
                return last
            except Exception:
                if self._broken is None:
                    raise
                LOG.exception("a stream broke inside the hub")
                self._items.close()
                return self._broken(DragomanError("The hub failed; come back for the rest."))
            if piece:
                self._nothing_left = b""
                return piece

    def _worded(self, items: Sequence[Item]) -> bytes:
        frames, linked = self._frames, self._linked
        if len(items) == 1:
            return frames(items[0] if linked is None else linked(items[0]))
        return b"".join([frames(item if linked is None else linked(item)) for item in items])

    def stop(self, *, carried: bool) -> None:
        """The hub stops: the reader is told to come back; one whose call runs here only if `carried`."""
        if carried or not self._items.carried:
            self._stopping = True
            self._items.stop()

    def close(self) -> None:
        """Nobody reads any more."""
        self._items.close()
        counted, self.counted = self.counted, None
        if counted is not None:
            counted(self.cut)


AnyStream = ByteStream[StreamItem] | ByteStream[Change] | ByteStream[Frame]


class StreamReply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An answer that goes on for a while."""

    status: int = 200
    headers: Headers
    body: AnyStream


async def send_stream(reply: StreamReply, receive: Receive, send: Send) -> None:
    """Send a stream by ASGI's own messages, for servers that have no better way."""
    await send({"type": "http.response.start", "status": reply.status, "headers": [*reply.headers.items()]})
    await send({"type": "http.response.body", "body": b"", "more_body": True})
    body = reply.body
    async with asyncio.TaskGroup() as group:
        leaving = group.create_task(_closed_with(receive, body))
        try:
            while (piece := await _next_piece(body)) is not None:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        finally:
            body.close()
            leaving.cancel()
    if not body.cut:
        await send({"type": "http.response.body", "body": b""})


async def _next_piece(body: AnyStream) -> bytes | None:
    """What comes next, or a sign of life where nothing does; None at the end."""
    try:
        async with asyncio.timeout(SILENT_S):
            return await anext(body, None)
    except TimeoutError:
        return KEEP_ALIVE


async def _closed_with(receive: Receive, body: AnyStream) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    body.close()
