"""A page: a path, who may see it, and the function that answers it. Errors are told as the platform tells them."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar
from urllib.parse import parse_qsl

import msgspec

from dragoman.dialects.platform.answers import json_reply, refusal
from dragoman.dialects.platform.inbound import decoded, require_json
from dragoman.hub.flow.pressure import Pressure
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadParams, DragomanError, NotAuthenticated, UnknownMethod
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.server.exchange import Reply, Spoken

Shape = TypeVar("Shape")
Answerer = Callable[[HttpRequest, Caller, Arrival], Awaitable[Reply]]

MAX_PAGE: Final = 100
REQUEST_PREFIX: Final = "req_"
PAGES: Final = Spoken(slug="", task_prefix=REQUEST_PREFIX, inline=True)

__all__ = ["Page", "PageRoute", "body_of", "json_reply", "limit_of", "no_such_page", "query_of", "time_of"]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """One page of the hub; a public one is shown without a credential."""

    method: str
    path: str
    answer: Answerer
    public: bool = False  # no credential is looked at
    strangers: bool = False  # one is, but the page decides by itself what to show who has none
    refuse: Callable[[DragomanError], HttpReply] | None = None  # in its own words, where it has some
    heavy: bool = False  # a listing or an export: refused while the hub is pressed


class PageRequest(msgspec.Struct, frozen=True):
    """A request for a page."""

    request: HttpRequest
    refused: Callable[[DragomanError], HttpReply] | None = None

    def refuse(self, error: DragomanError) -> HttpReply:
        """The refusal."""
        if self.refused is not None:
            return self.refused(error)
        return refusal(REQUEST_PREFIX + self.request.id, self.request.at, error)


class PageRoute:
    """A path that a page serves."""

    def __init__(self, page: Page, cap: int, pressure: Pressure | None = None) -> None:
        self._page = page
        self._pressure = pressure
        self.name = page.path
        self.cap = cap
        self.public = page.public

    def read(self, request: HttpRequest) -> PageRequest:
        """The request for the page."""
        return PageRequest(request, self._page.refuse)

    def said(self, asked: PageRequest) -> tuple[None, Spoken]:
        """Nothing of a dialect's, in no dialect's words."""
        return None, PAGES

    async def answer(self, asked: PageRequest, caller: Caller, arrival: Arrival) -> Reply:
        """The page, for one who may see it. Raises NotAuthenticated and what the page raises."""
        if caller.anonymous and not self.public and not self._page.strangers:
            raise NotAuthenticated
        if self._page.heavy and self._pressure is not None:
            self._pressure.refuse_listing()
        return await self._page.answer(asked.request, caller, arrival)

    def worded(self, asked: PageRequest, given: Reply) -> Reply:
        """A page is its own words."""
        return given


def no_such_page(allowed: Callable[[HttpRequest], list[str]]) -> Page:
    """What answers where nothing is: who may not look is told no more than that."""

    async def answer(request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        path = request.url.partition("?")[0]
        methods = allowed(request)
        if methods:
            error = UnknownMethod(f"{request.method} is not offered on {path}; it has: {', '.join(methods)}.")
        else:
            error = UnknownMethod(f"There is nothing at {path}; /openapi.json lists what there is.")
        return refusal(REQUEST_PREFIX + request.id, request.at, error)

    return Page(method="*", path="*", answer=answer, public=True)


def body_of(request: HttpRequest, shape: type[Shape]) -> Shape:
    """The body as one of our own types; none is an empty object. Raises WrongMediaType, NotJson, BadParams."""
    if request.body:
        require_json(request)
    return decoded(msgspec.json.Decoder(shape).decode, request.body or b"{}")


def query_of(request: HttpRequest, known: frozenset[str]) -> Mapping[str, str]:
    """The query's values. Raises BadParams for a name nobody knows."""
    values = dict(parse_qsl(request.url.partition("?")[2]))
    for name in values:
        if name not in known:
            raise BadParams(f"{name}: unknown; there are: {', '.join(sorted(known))}")
    return values


def limit_of(values: Mapping[str, str], default: int = 50) -> int:
    """How many items a page has. Raises BadParams."""
    text = values.get("limit", str(default))
    if not text.isascii() or not text.isdigit() or len(text) > 9 or not 1 <= int(text) <= MAX_PAGE:
        raise BadParams(f"limit: expected 1 to {MAX_PAGE}", errors=[{"path": "limit", "message": "out of range"}])
    return int(text)


def time_of(values: Mapping[str, str], name: str) -> datetime | None:
    """A time in the query; without a zone it is UTC. Raises BadParams."""
    text = values.get(name)
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        message = f"{name}: expected a time such as 2026-01-12T10:00:00Z"
        raise BadParams(message, errors=[{"path": name, "message": "not a time"}]) from None
