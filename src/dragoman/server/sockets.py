"""WebSockets: who may open one and whose messages come over it; then it carries a conversation.

The handshake is read as the request for a mailbox would be, so that it is refused in the dialect's own words: as plain
HTTP where the server can, else by closing. A frame is a request of its own, with the handshake's credential.
"""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from copy import copy
from functools import partial
from typing import Final

from dragoman.dialects.dialect import Dialect, Exchange
from dragoman.dialects.dialogue import Dialogue
from dragoman.hub.boxes import Boxes
from dragoman.hub.files import Files
from dragoman.hub.handle import Hub
from dragoman.model.call import Caller
from dragoman.model.errors import DragomanError, Overloaded
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import ReadMail, Unreadable
from dragoman.ports.clock import Clock
from dragoman.server.conversation import Conversation, Line, Over
from dragoman.server.drain import Drain
from dragoman.server.exchange import DialectRoute, Exchanger, Receive, Scope, Send

LOG: Final = logging.getLogger("dragoman.server")

# What the handshake said for the whole connection; ids, keys and traces are of one message each.
_LASTING: Final = frozenset({b"host", b"origin", b"authorization", b"x-api-key"})
_REFUSED: Final = 1008
_BROKEN: Final = 1011
_CODES: Final = {Over.DRAINED: 1012, Over.STALLED: 1013, Over.REFUSED: _REFUSED, Over.TOO_LARGE: 1009}
_HTTP: Final = "websocket.http.response"


class SocketRoute:
    """A path where a dialect is spoken over a WebSocket."""

    def __init__(self, dialect: Dialect, dialogue: Dialogue, cap: int, hub: Hub, files: Files) -> None:
        self.dialogue: Final = dialogue
        self.cap: Final = cap
        self.opening: Final = DialectRoute(dialect, dialogue.opening, cap, hub, files)
        self.messages: Final = DialectRoute(dialect, dialogue.messages, cap, hub, files)


class Sockets:
    """Serves WebSockets."""

    def __init__(self, *, exchanger: Exchanger, boxes: Boxes, clock: Clock, drain: Drain, patience_s: float) -> None:
        self._exchanger = exchanger
        self._boxes = boxes
        self._clock = clock
        self._drain = drain
        self._patience_s = patience_s

    async def serve(
        self, scope: Scope, receive: Receive, send: Send, route: SocketRoute, params: Mapping[str, str]
    ) -> None:
        """One connection, from its handshake to its end."""
        await receive()
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        client: tuple[str, int] | None = scope.get("client")
        address = client[0] if client else ""
        lasting = {name: value for name, value in raw if name in _LASTING}
        asked = route.opening.read(self._opening(scope, route, lasting, params))
        try:
            caller, box_name = await self._admit(raw, address, asked)
        except DragomanError as error:
            self._exchanger.declined(error, address, route.messages.said(asked)[1].slug)
            await decline(scope, send, self._exchanger.challenged(asked.refuse(error), dict(raw), error))
            return
        await send({"type": "websocket.accept"})
        headers = {**lasting, **route.dialogue.headers}
        path: str = scope["path"]
        line = Line(
            hear=partial(hear, receive),
            say=partial(say, send, asyncio.Lock()),
            answer=partial(self._answer, route, params, path, headers, address),
            check=partial(self._exchanger.caller, raw, address),
            drained=self._drain.begun,
            cap=route.cap,
            patience_s=self._patience_s,
        )
        try:
            async with self._boxes.open(caller.tenant, box_name) as box:
                over = await Conversation(line, route.dialogue, box).run()
            code = _CODES.get(over)
        except Exception:
            # The boundary: a bug of ours is for the log, the other side connects again.
            LOG.exception("a connection broke inside the hub")
            code = _BROKEN
        if code is not None:
            await close(send, code)

    async def _admit(self, raw: list[tuple[bytes, bytes]], address: str, asked: Exchange) -> tuple[Caller, str]:
        """Who connects, and whose mailbox it is that is opened. Raises DragomanError."""
        caller = await self._exchanger.caller(raw, address)
        if self._drain.draining:
            raise Overloaded("The hub is shutting down.", retry_after_s=2, reason="draining")
        match asked.operation:
            case ReadMail(box=name):
                return caller, await self._boxes.name(caller, name)
            case Unreadable(error=error):
                raise copy(error)
            case other:
                raise AssertionError(f"a handshake is no {type(other).__name__}")

    def _opening(
        self, scope: Scope, route: SocketRoute, headers: Mapping[bytes, bytes], params: Mapping[str, str]
    ) -> HttpRequest:
        query: bytes = scope["query_string"]
        return HttpRequest(
            method="GET",
            url=f"{scope['path']}?{query.decode('ascii', 'replace')}",
            headers=headers,
            id=self._clock.new_id(""),
            at=self._clock.now(),
            route=route.opening.name,
            params=params,
        )

    async def _answer(
        self,
        route: SocketRoute,
        params: Mapping[str, str],
        path: str,
        headers: dict[bytes, bytes],
        address: str,
        frame: bytes,
        trace: str | None,
    ) -> HttpReply:
        if trace is not None:
            headers = {**headers, b"traceparent": trace.encode("ascii", "replace")}
        reply = await self._exchanger.post(route.messages, params, path, headers, frame, address)
        if not isinstance(reply, HttpReply):
            raise AssertionError("no frame is answered by a stream")
        return reply


async def decline(scope: Scope, send: Send, reply: HttpReply) -> None:
    """Refuse a handshake, in words where the server has a way to send them."""
    if _HTTP in (scope.get("extensions") or {}):
        headers = {**reply.headers, b"content-length": b"%d" % len(reply.body)}
        await send({"type": f"{_HTTP}.start", "status": reply.status, "headers": [*headers.items()]})
        await send({"type": f"{_HTTP}.body", "body": reply.body})
    else:
        await send({"type": "websocket.close", "code": _REFUSED})


async def hear(receive: Receive) -> bytes | None:
    """The next message, whether text or not; None when there will be no more."""
    message = await receive()
    if message["type"] != "websocket.receive":
        return None
    text: str | None = message.get("text")
    frame: bytes = message.get("bytes") or b"" if text is None else text.encode()
    return frame


async def say(send: Send, turn: asyncio.Lock, frame: bytes) -> None:
    """Send one message, whole, after those before it. Raises OSError where the other side is gone."""
    async with turn:
        try:
            await send({"type": "websocket.send", "text": frame.decode()})
        except RuntimeError as error:
            # The server's word for a connection that its reader has found closed: what is said crosses with that.
            raise ConnectionResetError from error


async def close(send: Send, code: int) -> None:
    """End a connection; the other side may be gone already."""
    with suppress(OSError, RuntimeError):
        await send({"type": "websocket.close", "code": code})
