"""A2A 0.3 over HTTP+JSON, the callers' side: its requests read into operations, and the answers to them.

Its bodies are the protobuf's JSON (`rest_wire.py` turns it into 0.3's own); all else is as over JSON-RPC, save that a
caller who does not say `blocking` does not wait. A caller whose SDK encodes files twice is answered so, too.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.a2a_v03.answers import looks, task_object
from dragoman.dialects.a2a_v03.rest_errors import error_reply
from dragoman.dialects.a2a_v03.rest_push import named_config, read_config
from dragoman.dialects.a2a_v03.rest_wire import (
    files_in,
    given_message,
    is_encoded_twice,
    own_params,
    proto_event,
    proto_task,
)
from dragoman.dialects.a2a_v03.version import extensions_of, require_version
from dragoman.dialects.dialect import Level, Route, Streaming, in_mount, place_of, unasked
from dragoman.dialects.jsonrpc import bad_field
from dragoman.dialects.kinds import KindFrames, SendShape, bad_param, send_task
from dragoman.dialects.official_card import V03, card_reply, place_seen, write_v03_card
from dragoman.dialects.protojson import camelled
from dragoman.dialects.refusals import JSON_HEADERS
from dragoman.dialects.shapes import may_hold_doubles, whole_numbers
from dragoman.dialects.sse import frame, last_seen
from dragoman.model.answers import Accepted, Answer, CallbackList, Card, Done
from dragoman.model.callbacks import Callback
from dragoman.model.errors import BadFrame, BadParams, DragomanError, NotJson, WrongMediaType
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import (
    CancelTask,
    DeleteCallback,
    FollowTask,
    GetCallback,
    GetCard,
    GetTask,
    ListCallbacks,
    Operation,
    SetCallback,
    Unreadable,
)
from dragoman.model.task import Task

_SEND: Final = "rest_send"
_STREAM: Final = "rest_stream"
_PUSH: Final = "/v1/tasks/{task}/pushNotificationConfigs"


def _route(method: str, path: str, name: str) -> Route:
    return Route(method=method, path=path, name=f"rest_{name}", level=Level.BASE)


ROUTES: Final[tuple[Route, ...]] = (
    _route("POST", "/v1/message:send", "send"),
    _route("POST", "/v1/message:stream", "stream"),
    _route("GET", "/v1/tasks/{task}:subscribe", "subscribe"),
    _route("POST", "/v1/tasks/{task}:subscribe", "subscribe"),
    _route("POST", "/v1/tasks/{task}:cancel", "cancel"),
    _route("GET", "/v1/tasks/{task}", "get"),
    _route("POST", _PUSH, "push_set"),
    _route("GET", _PUSH, "push_list"),
    _route("GET", _PUSH + "/{config}", "push_get"),
    _route("DELETE", _PUSH + "/{config}", "push_delete"),
    _route("GET", "/v1/card", "card"),
)

_MEDIA_TYPES: Final = (b"application/json", b"application/a2a+json", b"")
_PYTHON: Final = b"python-httpx"  # how the SDKs name themselves that encode files twice

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class Asked(msgspec.Struct, frozen=True):
    """What a request asks for, and how its answer is to look."""

    operation: Operation
    history_length: int | None = None
    twice: bool = False


class RestExchange(msgspec.Struct, frozen=True):
    """One request of 0.3 over HTTP+JSON, and how to answer it."""

    request: HttpRequest
    asked: Asked

    @property
    def operation(self) -> Operation:
        """What was asked."""
        return self.asked.operation

    def reply(self, answer: Answer) -> HttpReply:
        """The answer in the protobuf's words."""
        match answer:
            case Task():
                return self._task(answer)
            case Accepted(task=task):
                return self._task(task)
            case Card():
                return self._card(answer)
            case Callback():
                return _json(named_config(self.request.params["task"], answer))
            case CallbackList(callbacks=callbacks):
                return _json({"configs": [named_config(self.request.params["task"], each) for each in callbacks]})
            case Done():
                return _json({})
            case _:
                raise unasked(answer, V03)

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The stream in the protobuf's words."""
        write = _twice_data if self.asked.twice else _data
        return Streaming(
            frames=KindFrames(looks(self.asked.history_length), write, task_id, context_id),
            broken=_broken,
        )

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal, in the words of every client."""
        return error_reply(error)

    def _task(self, task: Task) -> HttpReply:
        shown = proto_task(task_object(task, self.asked.history_length), twice=self.asked.twice)
        return _json({"task": shown} if self.request.route == _SEND else shown)

    def _card(self, answer: Card) -> HttpReply:
        mount = V03 if in_mount(self.request, V03) else ""
        place = place_seen(self.request, place_of(answer, self.request.hub, mount))
        return card_reply(self.request, write_v03_card(answer.agent, place), answer.agent.updated_at, answer.signer)


def read_rest(request: HttpRequest) -> RestExchange:
    """The exchange of one request; never raises."""
    try:
        _require_media_type(request)
        require_version(request)
        return RestExchange(request, _READERS[request.route](request))
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return RestExchange(request, Asked(Unreadable(error=error.with_traceback(None))))


def _read_send(request: HttpRequest) -> Asked:
    body = _body(request)
    files = files_in(given_message(body))
    twice = _speaks_python(request) and all(is_encoded_twice(file) for file in files)
    sent = _sent(own_params(body, twice=twice))
    length = None if sent.configuration is None else sent.configuration.historyLength
    try:
        streamed = request.route == _STREAM
        task = send_task(request, sent, V03, streamed=streamed, extensions=extensions_of(request))
    except BadParams as error:
        problem = _as_named_here(error)
    else:
        return Asked(task, history_length=length, twice=twice)
    raise problem


def _read_get(request: HttpRequest) -> Asked:
    task = GetTask(task_id=request.params["task"], agent=request.params.get("agent"))
    return Asked(task, history_length=_history_length(request), twice=_speaks_python(request))


def _read_cancel(request: HttpRequest) -> Asked:
    _body(request)
    task = CancelTask(task_id=request.params["task"], agent=request.params.get("agent"))
    return Asked(task, twice=_speaks_python(request))


def _read_card(request: HttpRequest) -> Asked:
    return Asked(GetCard(agent=request.params.get("agent"), public=True))


def _read_follow(request: HttpRequest) -> Asked:
    _body(request)
    after, agent = last_seen(request.headers), request.params.get("agent")
    follow = FollowTask(task_id=request.params["task"], after=after, agent=agent)
    return Asked(follow, twice=_speaks_python(request))


def _read_push_set(request: HttpRequest) -> Asked:
    callback = read_config(_body(request))
    return Asked(SetCallback(task_id=request.params["task"], callback=callback, agent=request.params.get("agent")))


def _read_push_list(request: HttpRequest) -> Asked:
    return Asked(ListCallbacks(task_id=request.params["task"], dialect=V03, agent=request.params.get("agent")))


def _read_push_get(request: HttpRequest) -> Asked:
    params = request.params
    return Asked(
        GetCallback(
            task_id=params["task"], dialect=V03, callback_id=params["config"] or None, agent=params.get("agent")
        )
    )


def _read_push_delete(request: HttpRequest) -> Asked:
    params = request.params
    return Asked(
        DeleteCallback(task_id=params["task"], dialect=V03, callback_id=params["config"], agent=params.get("agent"))
    )


_READERS: Final[Mapping[str, Callable[[HttpRequest], Asked]]] = {
    _SEND: _read_send,
    "rest_get": _read_get,
    "rest_cancel": _read_cancel,
    "rest_card": _read_card,
    _STREAM: _read_send,
    "rest_subscribe": _read_follow,
    "rest_push_set": _read_push_set,
    "rest_push_list": _read_push_list,
    "rest_push_get": _read_push_get,
    "rest_push_delete": _read_push_delete,
}


def _json(body: JsonObject) -> HttpReply:
    return HttpReply(status=200, headers=JSON_HEADERS, body=_encode(body))


def _data(shown: JsonObject) -> bytes:
    return _encode(proto_event(shown))


def _twice_data(shown: JsonObject) -> bytes:
    return _encode(proto_event(shown, twice=True))


def _broken(error: DragomanError) -> bytes:
    return frame(error_reply(error).body, name="error")


def _require_media_type(request: HttpRequest) -> None:
    """Before anything is read. Raises WrongMediaType."""
    kind = request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if request.method == "POST" and kind not in _MEDIA_TYPES:
        raise WrongMediaType("Send Content-Type: application/json.")


def _body(request: HttpRequest) -> JsonObject:
    """The body in camel case; an empty one is an empty object. Raises NotJson, BadFrame."""
    try:
        body: Json = _decode(request.body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        body = None
        problem = NotJson()
    else:
        problem = BadFrame("A request of A2A over HTTP is one JSON object.")
    if not is_object(body):
        raise problem
    # Clients that are built on protobuf know no integers.
    return camelled(whole_numbers(body) if may_hold_doubles(request.body) else body)


def _sent(params: JsonObject) -> SendShape:
    """The params as one of our types. Raises BadParams."""
    try:
        return msgspec.convert(params, SendShape)
    except msgspec.ValidationError as error:
        problem = _as_named_here(bad_field(error, "body"))
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise problem


def _as_named_here(error: BadParams) -> BadParams:
    """The same complaint, under the name that the caller knows."""
    (wrong,) = error.details["errors"]
    path: str = wrong["path"].replace("message.parts", "message.content")
    return bad_param(path.replace("pushNotificationConfig", "pushNotification"), wrong["message"])


def _history_length(request: HttpRequest) -> int | None:
    """How many turns are asked for; 0 is no limit. Raises BadParams."""
    for name, value in parse_qsl(request.url.partition("?")[2]):
        if name in ("historyLength", "history_length"):
            if not value.isascii() or not value.isdigit() or len(value) > 9:
                raise bad_param("historyLength", f"expected a whole number, got {value[:40]!r}")
            return int(value)
    return None


def _speaks_python(request: HttpRequest) -> bool:
    return request.headers.get(b"user-agent", b"").startswith(_PYTHON)
