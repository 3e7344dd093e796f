"""An MCP request as it came: its revision, its session, its method; and how it is refused.

    until 2025-11-25   MCP-Protocol-Version after a handshake; the session's id in Mcp-Session-Id
    from 2026-07-28    the same header on every request, with its twin in `_meta`; no sessions

A session is a name that keeps the requests of two clients of one key apart. It gives no right, so nothing of it is
kept; whoever calls proves itself with every request.
"""

import re
from typing import Final

import msgspec

from dragoman.dialects.dialect import ErrorTable, wire_error
from dragoman.dialects.jsonrpc import RPC_ERRORS, Frame, read_frame, require_json
from dragoman.dialects.mcp.protocol import (
    ALONE,
    HEADER_MISMATCH,
    META,
    META_CAPABILITIES,
    META_VERSION,
    METHOD_HEADER,
    NAME_HEADER,
    NEWEST_ALONE,
    SESSION_HEADER,
    SESSIONS,
    TRACE_MEMBERS,
    UNSAID,
    UNSUPPORTED_VERSION,
    VERSION_HEADER,
    header_value,
)
from dragoman.dialects.mcp.results import Finish, error_of, refusal_of
from dragoman.dialects.refusals import JSON_HEADERS, error_headers
from dragoman.model.content import Message, Role
from dragoman.model.errors import (
    BadFrame,
    BadParams,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    NotJson,
    SessionOver,
    TooLarge,
    UnknownMethod,
    VersionNotSupported,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import SendTask

CALL: Final = "tools/call"
SESSION_PREFIX: Final = "mcp-session-"
_SESSION: Final = re.compile(rb"mcp-session-[A-Za-z0-9_-]{16,64}")
MOST_ID: Final = 256  # characters of a request's own id


class HeadersDiffer(BadFrame):
    """The request's headers say something else than its body."""


class UnknownTool(BadParams):
    """There is no such tool, or it is not this caller's to use."""


_ERRORS: Final[ErrorTable] = {
    **RPC_ERRORS,
    NotJson: (-32700, 400),
    BadFrame: (-32600, 400),
    HeadersDiffer: (HEADER_MISMATCH, 400),
    VersionNotSupported: (UNSUPPORTED_VERSION, 400),
    SessionOver: (-32600, 404),
}
_ALONE_STATUS: Final = {-32602: 400, -32601: 404}  # what earlier revisions say within a 200
# What is no fault of a tool, nor of what it was told: the protocol's own errors, also for tool calls.
_PROTOCOL: Final = (
    NotAuthenticated, NotAuthorized, NotJson, BadFrame, BadParams, UnknownMethod, TooLarge, WrongMediaType, WrongHost,
    SessionOver, VersionNotSupported,
)  # fmt: skip

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class McpAsked(msgspec.Struct, frozen=True, kw_only=True):
    """One request: what it asks, in which revision and session, or what is wrong with it."""

    request: HttpRequest
    frame: Frame
    params: JsonObject
    version: str
    session: str = ""
    error: DragomanError | None = None

    @property
    def alone(self) -> bool:
        """Whether it needs no session."""
        return self.version in ALONE

    @property
    def wants_answer(self) -> bool:
        """Whether it is a request, and not a notification."""
        return self.frame.id is not msgspec.UNSET

    @property
    def id(self) -> str | int:
        """The request's own id."""
        return self.frame.id if isinstance(self.frame.id, str | int) else 0

    @property
    def takes_events(self) -> bool:
        """Whether the answer may be a stream of events."""
        accept = self.request.headers.get(b"accept", b"*/*")
        return b"text/event-stream" in accept or b"*/*" in accept

    @property
    def meta(self) -> JsonObject:
        """What stands beside the request's own params."""
        meta: Json = self.params.get(META)
        return meta if is_object(meta) else {}

    @property
    def operation(self) -> SendTask | None:
        """A tool call, as far as it can be told from the request alone: with the trace that it names."""
        if self.frame.method != CALL:
            return None
        traced = {name: self.meta[name] for name in TRACE_MEMBERS if name in self.meta}
        return SendTask(message=Message(id="", role=Role.USER, parts=(), metadata=traced or None))

    def reply(self, result: JsonObject) -> HttpReply:
        """The answer; to a notification there is none."""
        if not self.wants_answer:
            return HttpReply(status=202)
        return HttpReply(status=200, headers=JSON_HEADERS, body=Finish(self.id, self.alone)(result))

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal: of a tool call as its result, which a model sees; of anything else as the protocol's error."""
        if self.frame.method == CALL and self.wants_answer and not isinstance(error, _PROTOCOL):
            return self.reply(refusal_of(error))
        code, status = wire_error(_ERRORS, error)
        if status == 200 and self.alone and isinstance(code, int):
            status = _ALONE_STATUS.get(code, 200)
        if not self.wants_answer and status == 200:
            status = 400 if isinstance(error, BadParams) else 202
        data: JsonObject = error.details if isinstance(error, VersionNotSupported) else error_of(error)
        shown: JsonObject = {"code": code, "message": error.message, "data": data}
        given = self.frame.id if self.wants_answer else None
        body = _encode({"jsonrpc": "2.0", "id": given, "error": shown})
        return HttpReply(status=status, headers=error_headers(error), body=body)


def read_request(request: HttpRequest) -> McpAsked:
    """A request; never raises: what is wrong with it stands in it."""
    frame = read_frame(request.body) if request.method == "POST" else Frame(id=msgspec.UNSET)
    params, error = _params_of(frame), frame.error
    said = request.headers.get(VERSION_HEADER)
    version = UNSAID if said is None else said.decode("ascii", "replace")[:32]
    session = request.headers.get(SESSION_HEADER, b"")
    if error is None:
        try:
            if request.method == "POST":
                require_json(request)
                if frame.id is None or (isinstance(frame.id, str) and len(frame.id) > MOST_ID):
                    raise BadFrame(f"id: expected an integer, or 1 to {MOST_ID} characters.")
                if params is None:
                    raise BadParams("params: expected an object", errors=[{"path": "params", "message": "no object"}])
            _check_version(version, frame, params or {}, request)
            if session and version not in ALONE and frame.method != "initialize" and not _SESSION.fullmatch(session):
                raise SessionOver
        except DragomanError as wrong:
            error = wrong.with_traceback(None)
    return McpAsked(
        request=request,
        frame=frame,
        params=params or {},
        version=version,
        session=session[:128].decode("ascii", "replace"),
        error=error,
    )


def _params_of(frame: Frame) -> JsonObject | None:
    """The params; None where they are no object."""
    try:
        params: Json = _decode(frame.params)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return {} if params is None else params if is_object(params) else None


def _check_version(version: str, frame: Frame, params: JsonObject, request: HttpRequest) -> None:
    """Raises VersionNotSupported, and for requests that stand alone BadParams, HeadersDiffer."""
    if version in SESSIONS:
        return
    if version not in ALONE:
        supported = [NEWEST_ALONE, *reversed(SESSIONS)]
        raise VersionNotSupported(
            f"MCP-Protocol-Version: this hub speaks {', '.join(supported)}.", supported=supported, requested=version
        )
    if request.method != "POST":
        raise UnknownMethod("This revision has nothing but POST.")
    if frame.id is msgspec.UNSET:
        return
    meta: Json = params.get(META)
    if not is_object(meta) or META_VERSION not in meta or META_CAPABILITIES not in meta:
        raise BadParams(f"params._meta: {META_VERSION} and {META_CAPABILITIES} are required in this revision")
    if meta[META_VERSION] != version or request.headers.get(METHOD_HEADER) != frame.method.encode():
        raise HeadersDiffer
    named: Json = params.get("name")
    if frame.method == CALL and isinstance(named, str) and request.headers.get(NAME_HEADER) != header_value(named):
        raise HeadersDiffer
