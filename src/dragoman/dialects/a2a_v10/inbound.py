"""The caller's side of A2A 1.0, in both framings: JSON-RPC on one URL, and HTTP with a path for each operation.

Decides nothing: whether the caller may, and what becomes of it, is the hub's. The media type and the version are looked
at before what is asked is.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.a2a_v10.answers import public_card, result_of
from dragoman.dialects.a2a_v10.errors import RPC as RPC_TABLE
from dragoman.dialects.a2a_v10.errors import RPC_UNSAID, details, http_error
from dragoman.dialects.a2a_v10.requests import METHODS
from dragoman.dialects.a2a_v10.streams import http_stream, rpc_stream
from dragoman.dialects.a2a_v10.version import require_version, speaks_v10
from dragoman.dialects.a2a_v10.view import PLAIN, Asked, View
from dragoman.dialects.dialect import RPC, Level, Route, Streaming
from dragoman.dialects.jsonrpc import Frame, Id, error_reply, read_frame, require_json, result_reply
from dragoman.dialects.refusals import JSON_HEADERS, error_headers
from dragoman.model.answers import Answer, Card
from dragoman.model.errors import BadFrame, DragomanError, NotJson, UnknownMethod, WrongMediaType
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, is_object
from dragoman.model.operations import FollowTask, GetCard, Operation, SendTask, Unreadable, Wait

_CARD: Final = "card"
# Which method each path means.
_PATHS: Final[Mapping[str, str]] = {
    "send": "SendMessage",
    "stream": "SendStreamingMessage",
    "cancel": "CancelTask",
    "subscribe": "SubscribeToTask",
    "list": "ListTasks",
    "get": "GetTask",
    "extended": "GetExtendedAgentCard",
    "push-create": "CreateTaskPushNotificationConfig",
    "push-list": "ListTaskPushNotificationConfigs",
    "push-get": "GetTaskPushNotificationConfig",
    "push-delete": "DeleteTaskPushNotificationConfig",
}
_BODIES: Final = frozenset({"send", "stream"})  # what is asked stands in the body; elsewhere in the path and the query
_PUSH: Final = "/tasks/{task}/pushNotificationConfigs"
_A2A_JSON: Final = b"application/a2a+json"
_JSON_TYPES: Final = frozenset({b"", b"application/json", _A2A_JSON})
_PRIVATE: Final[Headers] = {**JSON_HEADERS, b"cache-control": b"private"}  # a card that may differ per caller

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def _route(method: str, path: str, name: str) -> Route:
    return Route(method=method, path=path, name=name, level=Level.BASE, tenant=True)


ROUTES: Final = (
    _route("POST", "/message:send", "send"),
    _route("POST", "/message:stream", "stream"),
    _route("POST", "/tasks/{task}:cancel", "cancel"),
    # Text and proto of the specification disagree on the verb: both are served.
    _route("POST", "/tasks/{task}:subscribe", "subscribe"),
    _route("GET", "/tasks/{task}:subscribe", "subscribe"),
    _route("GET", "/tasks", "list"),
    _route("GET", "/tasks/{task}", "get"),
    _route("POST", _PUSH, "push-create"),
    _route("GET", _PUSH, "push-list"),
    _route("GET", _PUSH + "/{config}", "push-get"),
    _route("DELETE", _PUSH + "/{config}", "push-delete"),
    _route("GET", "/extendedAgentCard", "extended"),
    Route(method="GET", path="/.well-known/agent-card.json", name=_CARD, level=Level.BASE),
    Route(method="GET", path="/.well-known/agent.json", name=_CARD, level=Level.BASE),
)


class RpcExchange(msgspec.Struct, frozen=True):
    """One JSON-RPC request, and how to answer it."""

    request: HttpRequest
    id: Id
    operation: Operation
    view: View = PLAIN

    def reply(self, answer: Answer) -> HttpReply:
        """The result."""
        try:
            result = result_of(answer, self.view, self.request.hub)
        except DragomanError as error:
            return self.refuse(error)
        return result_reply(self.id, result, _PRIVATE if self.view.extended else JSON_HEADERS)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The error, with the specification's details."""
        table = RPC_TABLE if speaks_v10(self.request) else RPC_UNSAID
        return error_reply(self.id, error, table, details)

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The results, one after the other."""
        return rpc_stream(self.id, task_id, context_id, self.view.history)


class HttpExchange(msgspec.Struct, frozen=True):
    """One request of the HTTP binding, or for the public card, and how to answer it."""

    request: HttpRequest
    operation: Operation
    view: View = PLAIN

    def reply(self, answer: Answer) -> HttpReply:
        """The result itself, without a frame."""
        if self.request.route == _CARD and isinstance(answer, Card):
            return public_card(self.request, answer)
        try:
            result = result_of(answer, self.view, self.request.hub)
        except DragomanError as error:
            return self.refuse(error)
        headers = _PRIVATE if self.view.extended else JSON_HEADERS
        if _wants_a2a_json(self.request.headers):
            headers = {**headers, b"content-type": _A2A_JSON}
        return HttpReply(status=200, headers=headers, body=_encode(result))

    def refuse(self, error: DragomanError) -> HttpReply:
        """The error in the specification's body."""
        status, body = http_error(error)
        return HttpReply(status=status, headers=error_headers(error), body=_encode(body))

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The results, one after the other."""
        return http_stream(task_id, context_id, self.view.history)


def read(request: HttpRequest) -> RpcExchange | HttpExchange:
    """The exchange of one request; never raises."""
    if request.route == RPC:
        return read_framed(request, read_frame(request.body))
    try:
        asked = _read_http(request)
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return HttpExchange(request, Unreadable(error=error.with_traceback(None)))
    return HttpExchange(request, asked.operation, asked.view)


def read_framed(request: HttpRequest, frame: Frame) -> RpcExchange:
    """The exchange of one JSON-RPC request; never raises. Of what does not come as JSON no id is echoed."""
    request_id = None
    try:
        require_json(request)
        request_id = frame.id
        if frame.error is not None:
            raise frame.error
        method = METHODS.get(frame.method)
        if method is None:
            raise UnknownMethod(f"There is no method {frame.method[:80]!r} in A2A 1.0.", method=frame.method[:80])
        require_version(request)
        asked = method.by_frame(request, frame)
        if request_id is msgspec.UNSET:
            asked = _unheard(asked)
    except DragomanError as error:
        return RpcExchange(request, request_id, Unreadable(error=error.with_traceback(None)))
    return RpcExchange(request, request_id, asked.operation, asked.view)


def _unheard(asked: Asked) -> Asked:
    """What a request asks that wants no answer: of a stream nothing is left but the call."""
    operation = asked.operation
    if isinstance(operation, FollowTask):
        raise BadFrame("id: required, for a stream is an answer.")
    if isinstance(operation, SendTask) and operation.wait is Wait.STREAM:
        return Asked(msgspec.structs.replace(operation, wait=Wait.NONE), asked.view)
    return asked


def _read_http(request: HttpRequest) -> Asked:
    name = request.route
    if name == _CARD:
        return Asked(GetCard(agent=request.params.get("agent"), public=True))
    if name not in _PATHS:
        raise UnknownMethod(f"{request.method} {request.url.partition('?')[0]} is not part of A2A 1.0.")
    method = METHODS[_PATHS[name]]
    if request.method == "POST":
        _require_known_type(request.headers)
    require_version(request)
    if name in _BODIES:
        return method.by_body(request, request.body or b"{}")
    if request.method == "POST":
        return method.by_body(request, _with_names(request))
    texts = dict(parse_qsl(request.url.partition("?")[2], keep_blank_values=True))
    return method.by_texts(request, texts | _named(request))


def _named(request: HttpRequest) -> dict[str, str]:
    """The members of a request that stand in its path."""
    task, config = request.params.get("task"), request.params.get("config")
    if not request.route.startswith("push-"):
        return {} if task is None else {"id": task}
    return {"taskId": task or ""} | ({} if config is None else {"id": config})


def _with_names(request: HttpRequest) -> bytes:
    """The body of what is asked of one task, which may be empty, with what the path names."""
    try:
        body: Json = _decode(request.body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
    if not is_object(body):
        raise NotJson("The body is not a JSON object.")
    return _encode({**body, **_named(request)})


def _require_known_type(headers: Headers) -> None:
    if _type_of(headers.get(b"content-type", b"")) not in _JSON_TYPES:
        raise WrongMediaType("Send Content-Type: application/json or application/a2a+json.")


def _wants_a2a_json(headers: Headers) -> bool:
    """Whether the answer is to be `application/a2a+json`: the request was, or it accepts that and not plain JSON."""
    if _type_of(headers.get(b"content-type", b"")) == _A2A_JSON:
        return True
    accepted = {_type_of(each) for each in headers.get(b"accept", b"").split(b",")}
    return _A2A_JSON in accepted and b"application/json" not in accepted


def _type_of(value: bytes) -> bytes:
    return value.partition(b";")[0].strip().lower()
