"""A2A 0.3 over HTTP+JSON, the callers' side: its requests read into operations, and the answers to them.

Its bodies are the protobuf's JSON (`rest_wire.py` turns it into 0.3's own); all else is as over JSON-RPC, save that a
caller who does not say `blocking` does not wait. A caller whose SDK encodes files twice is answered so, too.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.a2a_v03.answers import task_object
from dragoman.dialects.a2a_v03.rest_errors import error_reply
from dragoman.dialects.a2a_v03.rest_wire import files_in, given_message, is_encoded_twice, own_params, proto_task
from dragoman.dialects.a2a_v03.version import extensions_of, require_version
from dragoman.dialects.dialect import Level, Route, in_mount, place_of, unasked
from dragoman.dialects.jsonrpc import bad_field
from dragoman.dialects.kinds import SendShape, bad_param, send_task
from dragoman.dialects.official_card import V03, card_reply, write_v03_card
from dragoman.dialects.protojson import camelled
from dragoman.dialects.refusals import JSON_HEADERS
from dragoman.dialects.shapes import may_hold_doubles, whole_numbers
from dragoman.model.answers import (
    Accepted,
    Answer,
    Card,
)
from dragoman.model.errors import (
    BadFrame,
    BadParams,
    DragomanError,
    NotJson,
    NotSupported,
    PushNotSupported,
    WrongMediaType,
)
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import CancelTask, GetCard, GetTask, Operation, Unreadable
from dragoman.model.task import Task

_SEND: Final = "rest_send"
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
    _route("POST", _PUSH, "push"),
    _route("GET", _PUSH, "push"),
    _route("GET", _PUSH + "/{config}", "push"),
    _route("DELETE", _PUSH + "/{config}", "push"),
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
            case _:
                raise unasked(answer, V03)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal, in the words of every client."""
        return error_reply(error)

    def _task(self, task: Task) -> HttpReply:
        shown = proto_task(task_object(task, self.asked.history_length), twice=self.asked.twice)
        body = {"task": shown} if self.request.route == _SEND else shown
        return HttpReply(status=200, headers=JSON_HEADERS, body=_encode(body))

    def _card(self, answer: Card) -> HttpReply:
        place = place_of(answer, self.request.hub, V03 if in_mount(self.request, V03) else "")
        return card_reply(self.request, write_v03_card(answer.agent, place), answer.agent.updated_at)


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
    configuration = sent.configuration
    if configuration is not None and configuration.pushNotificationConfig is not None:
        raise PushNotSupported()
    length = None if configuration is None else configuration.historyLength
    try:
        task = send_task(request, sent, extensions_of(request))
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


def _no_stream(request: HttpRequest) -> Asked:
    raise NotSupported("Streams are not offered: the card says streaming false.")


def _no_push(request: HttpRequest) -> Asked:
    raise PushNotSupported()


_READERS: Final[Mapping[str, Callable[[HttpRequest], Asked]]] = {
    _SEND: _read_send,
    "rest_get": _read_get,
    "rest_cancel": _read_cancel,
    "rest_card": _read_card,
    "rest_stream": _no_stream,
    "rest_subscribe": _no_stream,
    "rest_push": _no_push,
}


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
    return bad_param(wrong["path"].replace("message.parts", "message.content"), wrong["message"])


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
