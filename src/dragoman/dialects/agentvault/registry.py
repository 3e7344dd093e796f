"""AgentVault's registry API on the hub's own registry: cards listed, looked up, submitted, changed, deactivated.

An inactive card is a paused agent. Developer accounts are not offered: keys replace them.
"""

import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from math import ceil
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.agentvault.card import TEE, read_card, tee_label, write_card
from dragoman.dialects.agentvault.wire import SLUG
from dragoman.dialects.dialect import ErrorTable, place_of, unasked, wire_error
from dragoman.dialects.jsonrpc import bad_field, require_json
from dragoman.dialects.refusals import JSON_HEADERS, error_headers
from dragoman.dialects.times import wire_time
from dragoman.model.agent import Agent, AgentCard, AgentStatus
from dragoman.model.answers import AgentPage, Answer, Card, Pong, Registered
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentUnavailable,
    BadParams,
    BadRequest,
    Conflict,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    NotFound,
    NotJson,
    NotSupported,
    Overloaded,
    RateLimited,
    TooLarge,
    WrongHost,
    WrongMediaType,
)
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.operations import (
    ChangeAgent,
    Discover,
    GetCard,
    Operation,
    Ping,
    RegisterAgent,
    Unreadable,
)

Shape = TypeVar("Shape")

MAX_PAGE: Final = 250
PAGE: Final = 100
MAX_OFFSET: Final = 1_000_000_000
UUID: Final = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}")
ERRORS: Final[ErrorTable] = {
    BadRequest: ("invalid", 422),
    TooLarge: ("too_large", 413),
    WrongMediaType: ("media_type", 415),
    WrongHost: ("host", 421),
    NotAuthenticated: ("unauthenticated", 401),
    NotAuthorized: ("forbidden", 403),
    NotFound: ("not_found", 404),
    Conflict: ("conflict", 409),
    NotSupported: ("unsupported", 400),
    RateLimited: ("limited", 429),
    Overloaded: ("overloaded", 503),
    AgentUnavailable: ("unavailable", 503),
    AgentError: ("agent", 502),
    DragomanError: ("internal", 500),
}
_WORDS: Final = {
    "true": True,
    "1": True,
    "yes": True,
    "on": True,
    "false": False,
    "0": False,
    "no": False,
    "off": False,
}

_encode = msgspec.json.Encoder().encode


class Submitted(msgspec.Struct, frozen=True):
    """The body of a new card, or of one to be checked."""

    card_data: JsonObject


class Changed(msgspec.Struct, frozen=True):
    """The body of a change."""

    card_data: JsonObject | None = None
    is_active: bool | None = None


_decode_submitted = msgspec.json.Decoder(Submitted).decode
_decode_changed = msgspec.json.Decoder(Changed).decode


class RegistryExchange(msgspec.Struct, frozen=True, gc=False):
    """One request to the registry, and how to answer it."""

    request: HttpRequest
    operation: Operation

    def reply(self, answer: Answer) -> HttpReply:
        """The answer as AgentVault's registry gives it."""
        match answer:
            case AgentPage() if isinstance(self.operation, Discover):
                return json_reply(200, _page(answer, self.operation.limit, _offset(self.request)))
            case Registered(agent=agent, created=created, protected=protected):
                return json_reply(201 if created else 200, self._record(Card(agent=agent, protected=protected)))
            case Card() if self.request.method == "DELETE":
                return HttpReply(status=204)
            case Card():
                return json_reply(200, self._record(answer))
            case Pong(echo=echo):
                return json_reply(200, echo)
            case _:
                raise unasked(answer, SLUG)

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal as AgentVault's registry gives it."""
        return detail_reply(error)

    def _record(self, answer: Card) -> JsonObject:
        agent = answer.agent
        return {
            "id": agent.uuid,
            "developer_id": developer_id(agent),
            "developer_is_verified": True,  # nobody registers agents without a key
            "name": agent.card.name,
            "description": agent.card.description,
            "is_active": agent.status is AgentStatus.ACTIVE,
            "card_data": write_card(agent, place_of(answer, self.request.hub)),
            "created_at": wire_time(agent.registered_at),
            "updated_at": wire_time(agent.updated_at),
        }


def read_registry(request: HttpRequest) -> RegistryExchange:
    """The exchange of one request; never raises."""
    try:
        return RegistryExchange(request, ROUTES[request.route](request))
    except DragomanError as error:
        # Without its traceback: that would keep the frame, and with it the whole body, alive.
        return RegistryExchange(request, Unreadable(error=error.with_traceback(None)))


def json_reply(status: int, body: Json) -> HttpReply:
    """A plain JSON reply."""
    return HttpReply(status=status, headers=JSON_HEADERS, body=_encode(body))


def detail_reply(error: DragomanError) -> HttpReply:
    """A refusal: its words, and nothing else."""
    detail = "Agent Card not found" if isinstance(error, AgentNotFound) else error.message
    status = wire_error(ERRORS, error)[1]
    return HttpReply(status=status, headers=error_headers(error), body=_encode({"detail": detail}))


def developer_id(agent: Agent) -> int:
    """A number for the owner, as the wire has numbers there: always the same one, never zero."""
    return int.from_bytes(sha256(agent.owner_id.encode()).digest()[:8], "big") % (2**31 - 1) + 1


def _read_list(request: HttpRequest) -> Operation:
    query = _query(request)
    active = _flag(query, "active_only", missing=True)
    has_tee, tee_type = _flag(query, "has_tee"), _word(query, "tee_type", 50)
    offset = _offset(request)
    capability = tee_label(tee_type) if tee_type else None
    return Discover(
        text=_word(query, "search", 100),
        tags=tuple(dict.fromkeys(query.get("tags", ()))),
        capability=capability or (TEE if has_tee else None),
        without_capability=TEE if has_tee is False else None,
        status=AgentStatus.ACTIVE if active else None,
        also_paused=not active,
        mine=_flag(query, "owned_only") is True,
        limit=_whole(query, "limit", 1, MAX_PAGE, PAGE),
        cursor=_cursor(offset) if offset else None,
    )


def _read_create(request: HttpRequest) -> Operation:
    return RegisterAgent(card=_card(_body(request, _decode_submitted).card_data))


def _read_by_name(request: HttpRequest) -> Operation:
    return GetCard(agent=f"{request.params.get('org', '')}/{request.params.get('name', '')}")


def _read_by_hri(request: HttpRequest) -> Operation:
    name = _word(_query(request), "hri", 256)
    if not name:
        raise _bad("hri", "required")
    return GetCard(agent=name)


def _read_get(request: HttpRequest) -> Operation:
    return GetCard(agent=_uuid(request))


def _read_change(request: HttpRequest) -> Operation:
    asked = _body(request, _decode_changed)
    status = None
    if asked.is_active is not None:
        status = AgentStatus.ACTIVE if asked.is_active else AgentStatus.PAUSED
    card = None if asked.card_data is None else _card(asked.card_data)
    return ChangeAgent(agent_id=_uuid(request), status=status, card=card)


def _read_delete(request: HttpRequest) -> Operation:
    return ChangeAgent(agent_id=_uuid(request), status=AgentStatus.PAUSED)


def _read_validate(request: HttpRequest) -> Operation:
    card = _body(request, _decode_submitted).card_data
    try:
        _card(card)
    except BadParams as error:
        return Ping(echo={"is_valid": False, "detail": error.message, "validated_card_data": None})
    return Ping(echo={"is_valid": True, "detail": None, "validated_card_data": card})


ROUTES: Final[Mapping[str, Callable[[HttpRequest], Operation]]] = {
    "cards": _read_list,
    "create": _read_create,
    "by-hri": _read_by_hri,
    "by-name": _read_by_name,
    "record": _read_get,
    "change": _read_change,
    "delete": _read_delete,
    "validate": _read_validate,
}


def _page(page: AgentPage, limit: int, offset: int) -> JsonObject:
    shown = len(page.agents)
    # Counted up to a bound; beyond it only whether more follow is known.
    total = max(page.total, offset + shown + (page.cursor is not None)) if page.exceeded else page.total
    return {
        "items": [
            {"id": agent.uuid, "name": agent.card.name, "description": agent.card.description} for agent in page.agents
        ],
        "pagination": {
            "total_items": total,
            "limit": limit,
            "offset": offset,
            "total_pages": ceil(total / limit),
            "current_page": offset // limit + 1,
        },
    }


def _card(card: JsonObject) -> AgentCard:
    """The canonical card. Raises BadParams naming the field as it is called here."""
    try:
        return read_card(card)
    except BadParams as error:
        problem = BadParams(error.message.replace("agent_card", "card_data", 1))
    raise problem


def _uuid(request: HttpRequest) -> str:
    uuid = request.params.get("uuid", "")
    if UUID.fullmatch(uuid) is None:
        raise AgentNotFound(f"There is no agent {uuid[:100]!r}.")
    return uuid.lower()


def _body(request: HttpRequest, decode: Callable[[bytes], Shape]) -> Shape:
    require_json(request)
    try:
        return decode(request.body)
    except msgspec.ValidationError as error:
        problem: BadRequest = bad_field(error, "body")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        problem = NotJson("The body is not JSON.")
    # Raised out here, or the decoder's error would hang on it, and on that every frame that holds the body.
    raise problem


def _query(request: HttpRequest) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(request.url.partition("?")[2], keep_blank_values=True):
        found.setdefault(name, []).append(value)
    return found


def _offset(request: HttpRequest) -> int:
    """Where the page begins: the registry calls it `skip`, its command line `offset`."""
    query = _query(request)
    return _whole(query, "offset" if "offset" in query else "skip", 0, MAX_OFFSET, 0)


def _cursor(offset: int) -> str:
    return urlsafe_b64encode(_encode({"offset": offset})).decode().rstrip("=")


def _whole(query: Mapping[str, list[str]], name: str, low: int, high: int, missing: int) -> int:
    if name not in query:
        return missing
    text = query[name][-1]
    if not text.isascii() or not text.isdigit() or len(text) > 12 or not low <= int(text) <= high:
        raise _bad(name, f"expected a whole number from {low} to {high}")
    return int(text)


def _word(query: Mapping[str, list[str]], name: str, longest: int) -> str | None:
    text = query[name][-1] if name in query else ""
    if len(text) > longest:
        raise _bad(name, f"expected at most {longest} characters")
    return text or None


def _flag(query: Mapping[str, list[str]], name: str, *, missing: bool | None = None) -> bool | None:
    if name not in query:
        return missing
    text = query[name][-1].lower()
    if text not in _WORDS:
        raise _bad(name, "expected true or false")
    return _WORDS[text]


def _bad(path: str, message: str) -> BadParams:
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])
