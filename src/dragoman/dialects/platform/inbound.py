"""The platform's caller side: its requests read into operations.

Does not decide anything: whether the caller may, and what becomes of it, is the hub's.
"""

from collections.abc import Callable, Mapping
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.dialect import RPC, Streaming, place_of, unasked
from dragoman.dialects.jsonrpc import bad_field, given_ids, require_json
from dragoman.dialects.platform.answers import (
    accepted,
    agent_page,
    call_answer,
    call_status,
    json_reply,
    rated,
    refusal,
    registered,
    versions_page,
)
from dragoman.dialects.platform.card import write_card
from dragoman.dialects.platform.streams import frames_for
from dragoman.dialects.platform.wire import (
    MAX_CALLBACK_HEADERS,
    AcceptedRequest,
    CallbackTarget,
    CallRequest,
    CancelRequest,
    Context,
    Options,
    RatingRequest,
    RawRegistration,
    RegistryRequest,
)
from dragoman.dialects.sse import last_seen
from dragoman.dialects.steps import read_steps
from dragoman.model.agent import AgentStatus
from dragoman.model.answers import (
    Accepted,
    AgentPage,
    Answer,
    Card,
    Rated,
    Registered,
    Versions,
)
from dragoman.model.callbacks import Callback
from dragoman.model.content import Message, Part, Role, Text
from dragoman.model.errors import BadParams, DragomanError, NotAuthorized, NotFound, NotJson, UnknownMethod
from dragoman.model.http import JSON_TYPE, HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.objects import parts_of_object, read_plain_part
from dragoman.model.operations import (
    CancelTask,
    Discover,
    FollowTask,
    GetCard,
    GetTask,
    Operation,
    Priority,
    RateTask,
    RegisterAgent,
    SendTask,
    Unreadable,
    Wait,
)
from dragoman.model.task import Task

Shape = TypeVar("Shape")

SLUG: Final = "platform"
TASK_PREFIX: Final = "a2a_call_"
MAX_PAGE: Final = 100
STREAMED_S: Final = 3600.0  # what a stream may take that names no time
_POLLS: Final = frozenset({"status", "cancel"})  # they ask how a call stands, whatever became of it

_decode_call = msgspec.json.Decoder(CallRequest).decode
_decode_accepted = msgspec.json.Decoder(AcceptedRequest).decode
_decode_cancel = msgspec.json.Decoder(CancelRequest).decode
_decode_rating = msgspec.json.Decoder(RatingRequest).decode
_decode_registry = msgspec.json.Decoder(RegistryRequest).decode
_decode_raw = msgspec.json.Decoder(RawRegistration).decode
_USER: Final = Role.USER
_NO_OPTIONS: Final = Options()
_NO_CONTEXT: Final = Context()
_PRIORITIES: Final[Mapping[str | None, Priority]] = {
    None: Priority.NORMAL,
    "low": Priority.LOW,
    "normal": Priority.NORMAL,
    "medium": Priority.NORMAL,
    "high": Priority.HIGH,
    "urgent": Priority.URGENT,
}
_FILTERS: Final = frozenset(
    {"skill", "q", "tag", "capability", "dialect", "status", "min_rating", "max_p95_ms", "min_availability"}
    | {"limit", "cursor"}
)
# Headers that the hub or the protocol sets itself, and prefixes of those it never takes from a caller.
_OWN_HEADERS: Final = frozenset(
    {"host", "connection", "te", "trailer", "upgrade", "expect", "forwarded", "cookie", "traceparent"}
    | {"transfer-encoding", "x-signature", "x-timestamp"}
)
_OWN_PREFIXES: Final = ("content-", "proxy-", "x-forwarded-", "webhook-")


class PlatformExchange(msgspec.Struct, frozen=True):
    """One platform request, and how to answer it."""

    request: HttpRequest
    operation: Operation

    def reply(self, answer: Answer) -> HttpReply:
        """The answer in the platform's words."""
        match answer:
            case Task():
                return call_status(answer) if self.request.route in _POLLS else call_answer(answer)
            case Accepted():
                return accepted(answer)
            case AgentPage():
                return agent_page(answer)
            case Card():
                return self._card(answer)
            case Registered():
                return registered(answer, self.request.hub)
            case Rated():
                return rated(answer)
            case Versions():
                return versions_page(answer)
            case _:
                raise unasked(answer, SLUG)

    def _card(self, answer: Card) -> HttpReply:
        """The card in the platform's words; with `original=1` as it came, for those who may see where the agent is."""
        if ("original", "1") not in parse_qsl(self.request.url.partition("?")[2]):
            return json_reply(200, write_card(answer.agent, place_of(answer, self.request.hub)))
        original = answer.agent.card.original
        if not answer.owner:
            return self.refuse(NotAuthorized(f"The original card of {answer.agent.id} is for its owner."))
        if original is None:
            return self.refuse(NotFound(f"{answer.agent.id} has no card but the one that is shown."))
        return HttpReply(status=200, headers={b"content-type": JSON_TYPE}, body=original.as_it_came)

    def stream(self, task_id: str, context_id: str) -> Streaming:
        """The stream in the platform's words."""
        return frames_for(task_id)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal in the platform's words, with the id the call would have had."""
        return refusal(TASK_PREFIX + self.request.id, self.request.at, error)


def read(request: HttpRequest) -> PlatformExchange:
    """The exchange of one request; never raises."""
    try:
        return PlatformExchange(request, _READERS[request.route](request))
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return PlatformExchange(request, Unreadable(error=error.with_traceback(None)))


def owns_body(body: JsonObject) -> bool:
    """Whether a body on a shared URL is a platform call: it names a skill and brings its input."""
    return "jsonrpc" not in body and "skill" in body and "input" in body


def _read_call(request: HttpRequest, decode: Callable[[bytes], CallRequest] = _decode_call) -> SendTask:
    require_json(request)
    call = decoded(decode, request.body)
    if call.skill is None and not _needs_no_skill(request, call):
        raise BadParams("skill: required", errors=[{"path": "skill", "message": "required"}])
    asked = _send_task(request, call)
    if call.then:
        if asked.continues is not None:
            raise _bad("then", "steps follow a new call, not one that goes on")
        asked = msgspec.structs.replace(asked, then=read_steps(call.then, "then"))
    return asked


def _read_accepted(request: HttpRequest) -> Operation:
    """A call that nobody waits for."""
    return msgspec.structs.replace(_read_call(request, _decode_accepted), wait=Wait.NONE)


def _read_streamed(request: HttpRequest) -> Operation:
    """A call that is answered event by event."""
    asked, after = _read_call(request), last_seen(request.headers)
    return msgspec.structs.replace(asked, wait=Wait.STREAM, timeout_s=asked.timeout_s or STREAMED_S, after=after)


def _needs_no_skill(request: HttpRequest, call: CallRequest) -> bool:
    """Whether a call goes on with another, or says words to an agent that it names: they find the agent's own way."""
    continues = call.context is not None and call.context.continue_call_id is not None
    said_to = call.message is not None and call.target_agent_id is not None
    return continues or said_to or "agent" in request.params


def _send_task(request: HttpRequest, call: CallRequest) -> SendTask:
    options, context = call.options or _NO_OPTIONS, call.context or _NO_CONTEXT
    key, request_id = given_ids(request)
    timeout_ms = options.timeout_ms
    return SendTask(
        message=Message(id=f"msg_{request.id}", role=_USER, parts=_parts(call)),
        agent=request.params.get("agent") or call.target_agent_id,
        skill=call.skill,
        continues=context.continue_call_id,
        context_id=context.conversation_id,
        priority=_PRIORITIES[options.priority],
        timeout_s=None if timeout_ms is None else timeout_ms / 1000,
        callback=None if call.callback is None and options.callback_url is None else _callback(request, call),
        parent_id=context.parent_execution_id,
        idempotency_key=key,
        request_id=request_id,
        request_joins=True,
        cancel_on_disconnect=options.cancel_on_disconnect is True,
        at_most_once=options.delivery == "at_most_once",
        metadata=context.metadata,
    )


def _parts(call: CallRequest) -> tuple[Part, ...]:
    if call.message is None:
        return parts_of_object(call.input if call.input is not None else {})
    if call.input is not None:
        raise _bad("message", "a call has an input or a message, not both")
    if isinstance(call.message, str):
        return (Text(text=call.message),)
    parts = [read_plain_part(part) for part in call.message]
    if None in parts or not parts:
        place = f"message[{parts.index(None)}]" if parts else "message"
        raise _bad(place, 'expected {"kind": "text", "text": …}, {"kind": "data", …} or {"kind": "file", …}')
    return tuple(part for part in parts if part is not None)


def _callback(request: HttpRequest, call: CallRequest) -> Callback | None:
    target = call.callback
    if target is None and call.options is not None and call.options.callback_url is not None:
        target = CallbackTarget(url=call.options.callback_url)
    if target is None:
        return None
    headers = target.headers or {}
    if len(headers) > MAX_CALLBACK_HEADERS:
        raise _bad("callback.headers", f"at most {MAX_CALLBACK_HEADERS} headers")
    for name, value in headers.items():
        lowered = name.lower()
        if lowered in _OWN_HEADERS or lowered.startswith(_OWN_PREFIXES):
            raise _bad(f"callback.headers.{name}", "this header is set by the hub")
        if not 0 < len(name) <= 64 or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
            raise _bad("callback.headers", "a header's name has letters, digits, - and _ only, at most 64")
        if len(value) > 1024 or not value.isascii() or not value.isprintable():
            raise _bad(f"callback.headers.{name}", "a header's value is printable ASCII, at most 1 KiB")
    return Callback(id=f"cb_{TASK_PREFIX}{request.id}", dialect=SLUG, url=target.url, headers=headers or None)


def _read_registry(request: HttpRequest) -> Operation:
    require_json(request)
    asked = decoded(_decode_registry, request.body)
    if (asked.agent_card is None) == (asked.url is None):
        raise BadParams("Send either agent_card or url.", errors=[{"path": "agent_card", "message": "required"}])
    return RegisterAgent(
        any_card=asked.agent_card,
        came=None if asked.agent_card is None else bytes(_decode_raw(request.body).agent_card),
        card_keys=tuple(asked.card_keys or ()),
        url=asked.url,
        id=asked.id,
        dialect=asked.dialect,
        credentials=asked.credentials,
        rate_limits=asked.rate_limits,
        tags=tuple(asked.tags or ()),
        open=asked.open,
        private=asked.private,
    )


def _read_discover(request: HttpRequest) -> Operation:
    query: dict[str, str] = {}
    tags: list[str] = []
    for name, value in parse_qsl(request.url.partition("?")[2], keep_blank_values=True):
        if name not in _FILTERS:
            known = ", ".join(sorted(_FILTERS))
            raise _bad(name, f"unknown filter; there are: {known}")
        if name == "tag":
            tags.append(value)
        elif value:
            query[name] = value
    status = query.get("status")
    if status is not None and status not in set(AgentStatus):
        raise _bad("status", "expected active, paused or unreachable")
    return Discover(
        skills=(query["skill"],) if "skill" in query else (),
        text=query.get("q"),
        tags=tuple(tags),
        capability=query.get("capability"),
        dialect=query.get("dialect"),
        status=None if status is None else AgentStatus(status),
        min_rating=number_in(query, "min_rating", 0, 5),
        max_p95_ms=whole_in(query, "max_p95_ms", 0, 86_400_000),
        min_availability=number_in(query, "min_availability", 0, 1),
        limit=whole_in(query, "limit", 1, MAX_PAGE) or 20,
        cursor=query.get("cursor"),
    )


def _read_card_request(request: HttpRequest) -> Operation:
    return GetCard(agent=request.params["agent"])


def _read_status(request: HttpRequest) -> Operation:
    return GetTask(task_id=request.params["call"])


def _read_replay(request: HttpRequest) -> Operation:
    return FollowTask(task_id=request.params["call"], after=last_seen(request.headers) or 0, ended_ok=True)


def _read_cancel(request: HttpRequest) -> Operation:
    reason = decoded(_decode_cancel, request.body).reason if request.body.strip() else None
    return CancelTask(task_id=request.params["call"], reason=reason or None)


def _read_rating(request: HttpRequest) -> Operation:
    require_json(request)
    said = decoded(_decode_rating, request.body)
    return RateTask(task_id=request.params["call"], rating=said.rating, comment=said.comment or None)


def _unknown(request: HttpRequest) -> Operation:
    raise UnknownMethod(f"{request.method} {request.url.partition('?')[0]} is not part of this API.")


_READERS: Final[Mapping[str, Callable[[HttpRequest], Operation]]] = {
    "call": _read_call,
    RPC: _read_call,  # at a URL that it shares with dialects that are framed
    "async": _read_accepted,
    "stream": _read_streamed,
    "replay": _read_replay,
    "registry": _read_registry,
    "discover": _read_discover,
    "card": _read_card_request,
    "status": _read_status,
    "cancel": _read_cancel,
    "rating": _read_rating,
    "unknown": _unknown,
}


def decoded(decode: Callable[[bytes], Shape], body: bytes) -> Shape:
    """The body as one of our types. Raises NotJson, BadParams."""
    try:
        return decode(body)
    except msgspec.ValidationError as error:
        problem = bad_field(error, "body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        problem = NotJson(f"The body is not JSON: {error}.")
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise problem


def _bad(path: str, message: str) -> BadParams:
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def number_in(query: Mapping[str, str], name: str, low: float, high: float) -> float | None:
    """A number in a query, if it has one of that name. Raises BadParams."""
    if name not in query:
        return None
    try:
        value = float(query[name])
    except ValueError:
        value = -1.0
    if not low <= value <= high:
        raise _bad(name, f"expected a number from {low} to {high}, got {query[name]!r}")
    return value


def whole_in(query: Mapping[str, str], name: str, low: int, high: int) -> int | None:
    """A whole number in a query, if it has one of that name. Raises BadParams."""
    if name not in query:
        return None
    text = query[name]
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not low <= int(text) <= high:
        raise _bad(name, f"expected a whole number from {low} to {high}, got {text[:40]!r}")
    return int(text)
