"""What each method of MCP is answered with, at the hub's own `/mcp`.

POST     one request or notification; a tool call is answered by a stream of its progress and, at last, its result
GET      what changes among the tools; or the rest of a call's stream, to a client that comes back for it
DELETE   ends a session
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, Self, final

import msgspec

from dragoman import __version__
from dragoman.dialects.jsonrpc import given_ids
from dragoman.dialects.mcp import TASK_PREFIX
from dragoman.dialects.mcp.protocol import (
    META,
    META_SERVER,
    META_SUBSCRIPTION,
    NEWEST_ALONE,
    NEWEST_SESSION,
    PROGRESS_TOKEN,
    SESSION_HEADER,
    SESSIONS,
    SLUG,
    member,
    notification_bytes,
    text_in,
)
from dragoman.dialects.mcp.results import CallFrames, Finish, Place, read_place, result_of
from dragoman.dialects.mcp.tools import ANSWER, ANSWER_TOOL, answer_given, parts_given
from dragoman.dialects.refusals import JSON_HEADERS
from dragoman.dialects.sse import STREAM_HEADERS
from dragoman.hub.authorize import authorize
from dragoman.hub.handle import Hub
from dragoman.hub.registry import Registry
from dragoman.model.answers import Accepted, Changes, Items, Stream
from dragoman.model.call import Arrival, Caller
from dragoman.model.changes import AgentChanged, Change
from dragoman.model.content import Message, Part, Role
from dragoman.model.errors import BadParams, DragomanError, SessionOver, UnknownMethod
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import CancelTask, Discover, FollowTask, SendTask, Wait, WatchChanges
from dragoman.model.task import Task
from dragoman.server.exchange import Reply, Spoken
from dragoman.server.mcp.requests import SESSION_PREFIX, McpAsked, read_request
from dragoman.server.mcp.toolbox import Toolbox
from dragoman.server.streaming import ByteStream, StreamReply

PATH: Final = "/mcp"
METHODS: Final = ("POST", "GET", "DELETE")
REQUESTS: Final = ("initialize", "ping", "tools/list", "tools/call")
REQUESTS_ALONE: Final = ("server/discover", "subscriptions/listen", "ping", "tools/list", "tools/call")
SPOKEN: Final = Spoken(slug=SLUG, task_prefix=TASK_PREFIX, inline=True)
MOST_REMEMBERED: Final = 10_000  # calls that may be cancelled by their request's id; sessions that were ended
STREAMED_S: Final = 3600.0  # what a call may take, for which no client names a time
FRESH_MS: Final = 60_000  # how long a list may be taken for current by who is not told of changes

SERVER: Final[JsonObject] = {"name": "dragoman", "title": "Dragoman", "version": __version__}
CAPABILITIES: Final[JsonObject] = {"tools": {"listChanged": True}}
INSTRUCTIONS: Final = (
    "Each tool is a skill of an agent that is registered at this hub; descriptions are the agents' own words. "
    f"Where an agent asks something instead of answering, the tool {ANSWER} answers it."
)
_LIST_CHANGED: Final = notification_bytes("notifications/tools/list_changed")
_encode = msgspec.json.Encoder().encode


class McpRoute:
    """The hub's own MCP server."""

    def __init__(self, *, hub: Hub, registry: Registry, cap: int) -> None:
        self._hub = hub
        self._tools = Toolbox(hub, registry)
        self._calls: OrderedDict[tuple[str, str, str, str], str] = OrderedDict()  # of whom, and by which name → task
        self._ended: OrderedDict[str, None] = OrderedDict()  # sessions
        self.name = SLUG
        self.cap = cap
        self.public = False

    def read(self, request: HttpRequest) -> McpAsked:
        """The request."""
        return read_request(request)

    def said(self, asked: McpAsked) -> tuple[SendTask | None, Spoken]:
        """What is asked, where that is a call, in MCP's own words."""
        return asked.operation, SPOKEN

    async def answer(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> Reply:
        """The answer to one request. Raises DragomanError."""
        if caller.anonymous:
            # A stranger to whom no agent is open learns no more here than anywhere.
            await self._hub.handle(caller, Discover(limit=1), arrival)
        if asked.error is not None:
            raise copy(asked.error)
        if asked.session in self._ended:
            raise SessionOver
        match asked.request.method:
            case "GET":
                return await self._listened(asked, caller, arrival)
            case "DELETE":
                return self._end(asked)
            case _:
                return await self._posted(asked, caller, arrival)

    def worded(self, asked: McpAsked, given: Reply) -> Reply:
        """The answers are worded where they are made."""
        return given

    async def _posted(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> Reply:
        method = asked.frame.method
        if not asked.wants_answer:
            if method == "notifications/cancelled":
                await self._cancel(asked, caller, arrival)
            return HttpReply(status=202)
        if method not in (REQUESTS_ALONE if asked.alone else REQUESTS):
            raise UnknownMethod(f"There is no method {method[:100]!r} here.", method=method[:100])
        match method:
            case "tools/call":
                return await self._called(asked, caller, arrival)
            case "tools/list":
                return await self._listed(asked, caller, arrival)
            case "ping":
                return asked.reply({})
            case "initialize":
                return self._initialized(asked)
            case "server/discover":
                return asked.reply(_discovered())
            case _:
                return await self._subscribed(asked, caller, arrival)

    # -- sessions

    def _initialized(self, asked: McpAsked) -> HttpReply:
        wanted: Json = asked.params.get("protocolVersion")
        if not isinstance(wanted, str):
            raise BadParams("protocolVersion: required", errors=[{"path": "protocolVersion", "message": "required"}])
        result = {
            "protocolVersion": wanted if wanted in SESSIONS else NEWEST_SESSION,
            "capabilities": CAPABILITIES,
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }
        headers = {**JSON_HEADERS, SESSION_HEADER: f"{SESSION_PREFIX}{asked.request.id}".encode()}
        return HttpReply(status=200, headers=headers, body=Finish(asked.id, alone=False)(result))

    def _end(self, asked: McpAsked) -> HttpReply:
        if not asked.session:
            raise BadParams("Mcp-Session-Id: required", errors=[{"path": "Mcp-Session-Id", "message": "required"}])
        self._ended[asked.session] = None
        if len(self._ended) > MOST_REMEMBERED:
            self._ended.popitem(last=False)
        return HttpReply(status=204)

    # -- tools

    async def _listed(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> HttpReply:
        cursor: Json = asked.params.get("cursor")
        if cursor is not None and not isinstance(cursor, str):
            raise BadParams("cursor: expected a text", errors=[{"path": "cursor", "message": "no text"}])
        tools, following = await self._tools.page(caller, cursor, arrival)
        result: JsonObject = {"tools": tools if cursor is not None else [*tools, ANSWER_TOOL]}
        if following is not None:
            result["nextCursor"] = following
        if asked.alone:
            result |= {"ttlMs": FRESH_MS, "cacheScope": "private", META: {META_SERVER: SERVER}}
        return asked.reply(result)

    async def _called(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> Reply:
        name, arguments = _called_with(asked.params)
        continues: str | None = None
        if name == ANSWER:
            agent_id, skill_id = None, None
            continues, parts = answer_given(arguments)
        else:
            agent, skill = await self._tools.find(caller, name, arrival)
            agent_id, skill_id, parts = agent.id, skill.id, parts_given(skill, arguments)
        operation = self._operation(asked, agent_id, skill_id, continues, parts)
        self._remember(asked, caller, continues or arrival.task_id)
        answer = await self._hub.handle(caller, operation, arrival)
        if isinstance(answer, Stream):
            token = asked.meta.get(PROGRESS_TOKEN)
            place = Place(answer.task_id, 0, asked.id, token if isinstance(token, str | int) else None)
            return self._streamed(answer, place, alone=asked.alone, primed=asked.version == NEWEST_SESSION)
        task = answer.task if isinstance(answer, Accepted) else answer
        assert isinstance(task, Task)  # noqa: S101 - what is asked for
        return asked.reply(result_of(task))

    def _operation(
        self, asked: McpAsked, agent: str | None, skill: str | None, continues: str | None, parts: tuple[Part, ...]
    ) -> SendTask:
        streams = asked.takes_events
        key, request_id = given_ids(asked.request)
        return SendTask(
            message=Message(id=f"msg-{asked.request.id}", role=Role.USER, parts=parts),
            agent=agent,
            skill=skill,
            continues=continues,
            wait=Wait.STREAM if streams else Wait.END,
            timeout_s=STREAMED_S if streams else None,
            idempotency_key=key,
            request_id=request_id,
            # Where no session could tell of it, who stops listening has cancelled.
            cancel_on_disconnect=asked.alone,
        )

    def _streamed(self, stream: Stream, place: Place, *, alone: bool, primed: bool) -> StreamReply:
        frames = CallFrames(place, Finish(place.request_id, alone), primed=primed)
        return StreamReply(headers=STREAM_HEADERS, body=ByteStream(stream.items, frames))

    async def _cancel(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> None:
        """Stop a call, if it is this client's, and still under way."""
        named: Json = asked.params.get("requestId")
        task_id = self._calls.pop(_key(asked, caller, named), None)
        if task_id is None or (caller.anonymous and not asked.session):
            return
        reason = text_in(asked.params, "reason")[:1024] or None
        try:
            await self._hub.handle(caller, CancelTask(task_id=task_id, reason=reason), arrival)
        except DragomanError:
            return  # It has ended meanwhile: nobody waits for an answer to a notification.

    def _remember(self, asked: McpAsked, caller: Caller, task_id: str) -> None:
        if asked.alone:
            return
        self._calls[_key(asked, caller, asked.id)] = task_id
        if len(self._calls) > MOST_REMEMBERED:
            self._calls.popitem(last=False)

    # -- what is told unasked

    async def _listened(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> Reply:
        authorize(caller, WatchChanges())
        if b"text/event-stream" not in asked.request.headers.get(b"accept", b""):
            raise BadParams("Accept: GET is answered here with text/event-stream alone, so ask for that.")
        last = asked.request.headers.get(b"last-event-id")
        place = None if last is None else read_place(last[:2048])
        if place is not None:
            following = FollowTask(task_id=place.task_id, after=place.seq, ended_ok=True)
            stream = await self._hub.handle(caller, following, arrival)
            assert isinstance(stream, Stream)  # noqa: S101 - what is asked for
            return self._streamed(stream, place, alone=False, primed=True)
        return await self._changes(caller, arrival, _LIST_CHANGED)

    async def _subscribed(self, asked: McpAsked, caller: Caller, arrival: Arrival) -> Reply:
        """The changes for which a client asks by a request of its own: acknowledged first, each under its id."""
        wanted = member(asked.params, "notifications").get("toolsListChanged") is True
        meta: JsonObject = {META_SUBSCRIPTION: asked.id}
        honoured: JsonObject = {"toolsListChanged": True} if wanted else {}
        params: JsonObject = {"notifications": honoured, META: meta}
        first = notification_bytes("notifications/subscriptions/acknowledged", params)
        told = notification_bytes("notifications/tools/list_changed", {META: meta}) if wanted else b""
        return await self._changes(caller, arrival, told, first)

    async def _changes(self, caller: Caller, arrival: Arrival, told: bytes, first: bytes = b"") -> StreamReply:
        answer = await self._hub.handle(caller, WatchChanges(agents=True, tasks=False), arrival)
        assert isinstance(answer, Changes)  # noqa: S101 - what is asked for
        items = Begun(answer.items, AgentChanged(at=arrival.at, agent_id="", agent=None)) if first else answer.items
        return StreamReply(headers=STREAM_HEADERS, body=ByteStream(items, _change_frames(told, first)))


@final
class Begun:
    """The items of a stream after one that says that it has begun."""

    __slots__ = ("_first", "_items")

    def __init__(self, items: Items[Change], first: Change) -> None:
        self._items = items
        self._first: Change | None = first

    @property
    def cut(self) -> bool:
        """Whether the reader was too slow."""
        return self._items.cut

    @property
    def carried(self) -> bool:
        """Whether what it tells of is being done here."""
        return self._items.carried

    def __aiter__(self) -> Self:
        """Iterate once, to the end."""
        return self

    async def __anext__(self) -> Sequence[Change]:
        """What has come since."""
        first, self._first = self._first, None
        return await anext(self._items) if first is None else (first,)

    def stop(self) -> None:
        """The hub stops."""
        self._items.stop()

    def close(self) -> None:
        """Nobody reads any more."""
        self._items.close()


def _called_with(params: JsonObject) -> tuple[str, JsonObject]:
    """What is called. Raises BadParams."""
    name, arguments = params.get("name"), params.get("arguments")
    if not isinstance(name, str) or not 0 < len(name) <= 256:
        raise BadParams("name: required, 1 to 256 characters", errors=[{"path": "name", "message": "required"}])
    if arguments is not None and not is_object(arguments):
        raise BadParams("arguments: expected an object", errors=[{"path": "arguments", "message": "no object"}])
    return name, arguments or {}


def _discovered() -> JsonObject:
    return {
        "supportedVersions": [NEWEST_ALONE],
        "capabilities": CAPABILITIES,
        "instructions": INSTRUCTIONS,
        "ttlMs": FRESH_MS,
        "cacheScope": "private",
        META: {META_SERVER: SERVER},
    }


def _key(asked: McpAsked, caller: Caller, request_id: Json) -> tuple[str, str, str, str]:
    return caller.tenant, caller.id, asked.session, _encode(request_id).decode()


def _change_frames(told: bytes, first: bytes) -> Callable[[Change], bytes]:
    framed, begun = _framed(told) if told else b"", _framed(first)

    def frames(change: Change) -> bytes:
        if not isinstance(change, AgentChanged):
            return b""
        return framed if change.agent_id else begun

    return frames


def _framed(data: bytes) -> bytes:
    return b"event: message\ndata: %b\n\n" % data
