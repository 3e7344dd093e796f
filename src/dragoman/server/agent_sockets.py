"""The WebSocket of an agent that connects: the frames of its session down, what it tells and its heartbeats up.

    up     {"call_id", "attempt", "events": […]}      answered  {"event": "acked" | "refused", "data": {…}}
    up     {"heartbeat": {"received", "running"}}     answered  {"event": "renewed", "data": {…}}

What is told of one call is taken in the order in which it came. At most `AT_ONCE` messages are worked on at once.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final

import msgspec

from dragoman.delivery.session import Frame, FrameReader
from dragoman.dialects.dialect import wire_error
from dragoman.dialects.platform.answers import error_body, refusal
from dragoman.dialects.platform.errors import ERRORS
from dragoman.model.call import Caller
from dragoman.model.errors import DragomanError, EventGap, NotAuthenticated, NotJson, SessionOver
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.ports.clock import Clock
from dragoman.server.body import check_depth
from dragoman.server.desk import Desk
from dragoman.server.drain import Drain
from dragoman.server.exchange import Exchanger, Receive, Scope, Send
from dragoman.server.pages.connect import session_of
from dragoman.server.pages.page import REQUEST_PREFIX
from dragoman.server.sockets import close, decline, hear, say

LOG: Final = logging.getLogger("dragoman.server")
AT_ONCE: Final = 16
MOST_BYTES: Final = 1024 * 1024  # of one message
DEPTH: Final = 64

_DONE: Final = 1000
_REFUSED: Final = 1008
_TOO_LARGE: Final = 1009
_BROKEN: Final = 1011
_DRAINED: Final = 1012

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JsonObject).decode

Say = Callable[[bytes], Awaitable[None]]


class AgentSockets:
    """Serves the WebSockets of agents."""

    def __init__(self, *, exchanger: Exchanger, desk: Desk, clock: Clock, drain: Drain) -> None:
        self._exchanger = exchanger
        self._desk = desk
        self._clock = clock
        self._drain = drain

    async def serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, from its handshake to its end."""
        await receive()
        raw: list[tuple[bytes, bytes]] = scope["headers"]
        client: tuple[str, int] | None = scope.get("client")
        address = client[0] if client else ""
        asked = self._opening(scope)
        try:
            caller = await self._exchanger.caller(raw, address)
            if caller.anonymous:
                raise NotAuthenticated
            session_id, after = session_of(asked)
            reader = self._desk.frames(caller, session_id, after)
        except DragomanError as error:
            self._exchanger.declined(error, address)
            await decline(scope, send, self._exchanger.challenged(_refused(asked, error), asked.headers, error))
            return
        await send({"type": "websocket.accept"})
        socket = _Socket(
            desk=self._desk,
            caller=caller,
            session_id=session_id,
            check=partial(self._exchanger.caller, raw, address),
            say=partial(say, send, asyncio.Lock()),
        )
        try:
            code = await socket.run(receive, reader)
        except Exception:
            # The boundary: a bug of ours is for the log, the other side connects again.
            LOG.exception("an agent's connection broke inside the hub")
            code = _BROKEN
        finally:
            reader.close()
        if code is not None:
            if code == _DONE and self._drain.draining:
                code = _DRAINED
            await close(send, code)

    def _opening(self, scope: Scope) -> HttpRequest:
        query: bytes = scope["query_string"]
        return HttpRequest(
            method="GET",
            url=f"{scope['path']}?{query.decode('ascii', 'replace')}",
            headers=dict(scope["headers"]),
            id=self._clock.new_id(""),
            at=self._clock.now(),
        )


class _Socket:
    """One open connection."""

    def __init__(
        self, *, desk: Desk, caller: Caller, session_id: str, check: Callable[[], Awaitable[Caller]], say: Say
    ) -> None:
        self._desk = desk
        self._caller = caller
        self._session_id = session_id
        self._check = check  # raises where the other side may say nothing any more
        self._say = say
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._over: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

    async def run(self, receive: Receive, reader: FrameReader) -> int | None:
        """Carry it to its end; the code to close it with, none where the other side is gone."""
        async with asyncio.TaskGroup() as group:
            parts = (group.create_task(self._listen(receive, group)), group.create_task(self._speak(reader)))
            code = await self._over
            for part in parts:
                part.cancel()
        return code

    def _end(self, code: int | None) -> None:
        if not self._over.done():
            self._over.set_result(code)

    async def _speak(self, reader: FrameReader) -> None:
        try:
            async for frames in reader:
                for each in frames:
                    await self._say(_framed(each))
        except OSError:
            return self._end(None)
        self._end(_DONE)

    async def _listen(self, receive: Receive, group: asyncio.TaskGroup) -> None:
        while True:
            await self._slots.acquire()
            message = await hear(receive)
            if message is None:
                return self._end(None)
            if len(message) > MOST_BYTES:
                return self._end(_TOO_LARGE)
            group.create_task(self._answer(message))

    async def _answer(self, message: bytes) -> None:
        try:
            answer = await self._answered(message)
            with suppress(OSError):
                await self._say(_encode(answer))
        finally:
            self._slots.release()

    async def _answered(self, message: bytes) -> JsonObject:
        about: JsonObject = {}
        try:
            said = _read(message)
            heartbeat: Json = said.get("heartbeat")
            if is_object(heartbeat):
                self._caller = await self._check()
                renewed = await self._desk.open(self._caller, {**heartbeat, "session_id": self._session_id})
                return {"event": "renewed", "data": renewed}
            call_id = str(said.pop("call_id", ""))
            about = {"call_id": call_id, "attempt": said.get("attempt")}
            acked = await self._desk.told(self._caller, call_id, {**said, "session_id": self._session_id})
            return {"event": "acked", "data": {**about, "acked": acked}}
        except DragomanError as error:
            if isinstance(error, SessionOver):
                self._end(_DONE)
            elif isinstance(error, NotAuthenticated):
                self._end(_REFUSED)
            data: JsonObject = {**about, "status": wire_error(ERRORS, error)[1], "error": error_body(error)}
            if isinstance(error, EventGap):
                data["expected"] = error.details["expected"]
            return {"event": "refused", "data": data}


def _read(message: bytes) -> JsonObject:
    check_depth(message, DEPTH)
    try:
        return _decode(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise NotJson("Send a JSON object.") from None


def _framed(frame: Frame) -> bytes:
    said: JsonObject = {"event": frame.event, "data": msgspec.Raw(frame.body)}
    return _encode({"id": frame.id, **said} if frame.id else said)


def _refused(asked: HttpRequest, error: DragomanError) -> HttpReply:
    return refusal(REQUEST_PREFIX + asked.id, asked.at, error)
