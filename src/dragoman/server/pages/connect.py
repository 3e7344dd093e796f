"""The pages of agents that connect to the hub: a session opened and kept, its frames as a stream, what agents tell.

The protocol is in `docs/connect.md`; who may do what, and the words, are the desk's.
"""

from typing import Final

import msgspec

from dragoman.delivery.session import Frame
from dragoman.dialects.platform.answers import refusal
from dragoman.dialects.platform.inbound import decoded, require_json
from dragoman.dialects.sse import STREAM_HEADERS, frame, last_seen
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams, EventGap
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.server.desk import Acked, Desk
from dragoman.server.pages.page import REQUEST_PREFIX, Page, json_reply, query_of
from dragoman.server.streaming import ByteStream, StreamReply

PATH: Final = "/v1/agents/connect"
EVENTS_PATH: Final = "/v1/agents/calls/{call}/events"

_QUERY: Final = frozenset({"session", "after"})
_decode_object = msgspec.json.Decoder(JsonObject).decode


def pages(desk: Desk) -> tuple[Page, ...]:
    """The pages of connections."""

    async def opened(request: HttpRequest, caller: Caller, _: Arrival) -> HttpReply:
        return json_reply(200, await desk.open(caller, _object(request)))

    async def frames(request: HttpRequest, caller: Caller, _: Arrival) -> StreamReply:
        session_id, after = session_of(request)
        return StreamReply(headers=STREAM_HEADERS, body=ByteStream(desk.frames(caller, session_id, after), _framed))

    async def left(request: HttpRequest, caller: Caller, _: Arrival) -> HttpReply:
        desk.leave(caller, session_of(request)[0])
        return json_reply(200, {})

    async def told(request: HttpRequest, caller: Caller, _: Arrival) -> HttpReply:
        try:
            acked = await desk.told(caller, request.params["call"], _object(request))
        except EventGap as gap:
            reply = refusal(REQUEST_PREFIX + request.id, request.at, gap)
            body = {**_decode_object(reply.body), "expected": gap.details["expected"]}
            return HttpReply(status=reply.status, headers=reply.headers, body=msgspec.json.encode(body))
        return json_reply(200, Acked(acked=acked))

    return (
        Page(method="POST", path=PATH, answer=opened),
        Page(method="GET", path=PATH, answer=frames),
        Page(method="DELETE", path=PATH, answer=left),
        Page(method="POST", path=EVENTS_PATH, answer=told),
    )


def session_of(request: HttpRequest) -> tuple[str, int]:
    """The session that a request names, and the frame after which it wants to go on. Raises BadParams."""
    values = query_of(request, _QUERY)
    session_id = values.get("session")
    if not session_id:
        raise BadParams("session: required", errors=[{"path": "session", "message": "required"}])
    after = values.get("after", "0")
    if not after.isascii() or not after.isdigit() or len(after) > 10:
        raise BadParams("after: expected a number", errors=[{"path": "after", "message": "expected a number"}])
    seen = last_seen(request.headers)
    return session_id, int(after) if seen is None else seen


def _framed(said: Frame) -> bytes:
    return frame(said.body, name=said.event, seq=said.id or None)


def _object(request: HttpRequest) -> JsonObject:
    require_json(request)
    return decoded(_decode_object, request.body)
