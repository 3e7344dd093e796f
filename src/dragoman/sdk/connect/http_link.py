"""The link over HTTP: POSTs up, Server-Sent Events down.

The session is opened and kept with the token that the user gave. What the hub hands out in return is a token of the
agent itself, short-lived and renewed by every heartbeat: calls that handlers make are shown that one.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Final, final
from urllib.parse import quote

import msgspec

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.client.http import Events, HubHttp, Reply
from dragoman.sdk.connect.links import Frame, Gap, SessionOver, Stale
from dragoman.sdk.errors import HubUnreachable, error_of_reply

CONNECT: Final = "/v1/agents/connect"
SESSION_OVER: Final = "SESSION_OVER"
ANSWER_S: Final = 20.0  # for the answer to a POST
SILENT_S: Final = 25.0  # without a byte a stream is lost; the hub says something every 10 s
STREAM_S: Final = 24 * 3600.0  # then a new one is opened

_decode = msgspec.json.Decoder(JsonObject).decode


@final
class HttpLink:
    """A hub at the other end of HTTP; `acting` is what the agent's own calls go over, if it makes any."""

    def __init__(self, http: HubHttp, acting: HubHttp | None = None) -> None:
        self._http = http
        self._acting = acting

    async def open(self, hello: JsonObject) -> JsonObject:
        """Open a session or renew it, and take the token that comes with it."""
        renews = "session_id" in hello
        reply = await self._http.ask("POST", CONNECT, body=hello, timeout_s=ANSWER_S, repeatable=renews)
        told = _answer(reply)
        token = told.get("token")
        if self._acting is not None and isinstance(token, str) and token:
            self._acting.use_token(token)
        return told

    async def frames(self, session_id: str, after: int) -> AsyncGenerator[Frame]:
        """What the hub says, until the connection is lost."""
        path = f"{CONNECT}?session={quote(session_id, safe='')}"
        headers = {"last-event-id": str(after)} if after else {}
        async with AsyncExitStack() as stack:
            events = await self._begin(stack, path, headers)
            if not events.is_stream:
                raise _refusal(events.status, events.headers, await events.whole())
            async for event in events:
                yield _frame(event.id, event.name, event.data)

    async def tell(self, session_id: str, call_id: str, attempt: int, events: Sequence[JsonObject]) -> int:
        """Tell events of a call."""
        body = {"session_id": session_id, "attempt": attempt, "events": events}
        path = f"/v1/agents/calls/{quote(call_id, safe='')}/events"
        reply = await self._http.ask("POST", path, body=body, timeout_s=ANSWER_S, repeatable=True)
        if reply.status == 410 or (reply.status == 404 and not _session_over(reply.body)):
            raise Stale  # A call that the hub does not know is over, too.
        if reply.status == 409 and (expected := _number(reply.body, "expected")) is not None:
            raise Gap(expected)
        acked = _number(_answer(reply), "acked")
        if acked is None:
            raise _strange()
        return acked

    async def leave(self, session_id: str) -> None:
        """End the session."""
        path = f"{CONNECT}?session={quote(session_id, safe='')}"
        reply = await self._http.ask("DELETE", path, timeout_s=ANSWER_S)
        if reply.status >= 300:
            raise _refusal(reply.status, reply.headers, reply.body)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()
        if self._acting is not None:
            await self._acting.close()

    async def _begin(self, stack: AsyncExitStack, path: str, headers: dict[str, str]) -> Events:
        stream = self._http.stream("GET", path, headers=headers, timeout_s=STREAM_S, idle_s=SILENT_S)
        try:
            async with asyncio.timeout(SILENT_S):
                return await stack.enter_async_context(stream)
        except TimeoutError:
            raise HubUnreachable(f"{self._http.url} does not answer", sent=True) from None


def _answer(reply: Reply) -> JsonObject:
    if reply.status != 200:
        raise _refusal(reply.status, reply.headers, reply.body)
    if not is_object(reply.body):
        raise _strange()
    return reply.body


def _refusal(status: int, headers: Mapping[str, str], body: Json) -> Exception:
    if status == 404 and _session_over(body):
        return SessionOver()
    return error_of_reply(status, headers, body)


def _session_over(body: Json) -> bool:
    error = body.get("error") if is_object(body) else None
    return is_object(error) and error.get("code") == SESSION_OVER


def _frame(number: str, name: str, data: bytes) -> Frame:
    try:
        said = _decode(data)
    except msgspec.DecodeError:
        said = {}
    return Frame(int(number) if number.isascii() and number.isdigit() else 0, name, said)


def _number(body: Json, name: str) -> int | None:
    value = body.get(name) if is_object(body) else None
    return value if type(value) is int else None


def _strange() -> HubUnreachable:
    return HubUnreachable("what answers there is no hub", sent=True, next="Check that DRAGOMAN_URL leads to a hub.")
