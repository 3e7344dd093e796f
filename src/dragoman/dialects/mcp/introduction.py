"""What an MCP server says of itself when it is asked: an MCP server has no card, so the hub makes one of its answers.

server/discover ─ yes ────────────► tools/list, page by page ─────────────────────► its card
      └ no, or a tool wants headers ─► initialize, initialized ─► tools/list … ─► leave ─┘
"""

from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.dialects.mcp.greeting import Greeting, result_in
from dragoman.dialects.mcp.outbound import alone_headers, own_meta
from dragoman.dialects.mcp.protocol import (
    ALONE,
    HEADERS,
    META,
    META_SERVER,
    NEWEST_ALONE,
    SESSION_HEADER,
    VERSION_HEADER,
    member,
    request_bytes,
    text_in,
)
from dragoman.model.errors import BadAgentReply
from dragoman.model.http import NO_HEADERS, Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_array

MOST_PAGES: Final = 10
MOST_TOOLS: Final = 1000  # listened to; a card has fewer, and says so
_WANTS_HEADERS: Final = b'"x-mcp-header"'  # a tool some of whose arguments have to stand in headers, too
_LOCKED: Final = (401, 403)
_encode = msgspec.json.Encoder().encode

_Next = Callable[[], HttpRequest | None]


class Introduction:
    """One conversation in which a server tells what it is and has; `card` is what came of it."""

    __slots__ = ("_cursor", "_greeting", "_hear", "_next", "_pages", "_url", "_version", "card", "what")

    def __init__(self, url: str) -> None:
        self._url = url
        self._next: _Next = self._discover
        self._hear: Callable[[HttpReply], None] = self._discovered
        self._greeting: Greeting | None = None
        self._version = NEWEST_ALONE
        self._cursor: str | None = None
        self._pages = 0
        self.what = ""  # the question that was asked last, for people
        self.card: JsonObject | None = None

    def ask(self) -> HttpRequest | None:
        """The next request; None when all is said."""
        return self._next()

    def hear(self, reply: HttpReply) -> None:
        """Go on by what was answered. Raises BadAgentReply where nothing can come of it."""
        self._hear(reply)

    # -- by itself

    def _discover(self) -> HttpRequest:
        self.what = "server/discover"
        return self._alone({})

    def _discovered(self, reply: HttpReply) -> None:
        told = _if_told(reply)
        versions: Json = told.get("supportedVersions")
        spoken = [each for each in versions if each in ALONE] if is_array(versions) else []
        if not spoken:
            if reply.status in _LOCKED:
                raise BadAgentReply("It wants a credential.", reason="agent_refused_hub", agent_status=reply.status)
            self._greet()
            return
        self._version = spoken[-1]
        self._list({"serverInfo": member(member(told, META), META_SERVER), **_words(told)})

    def _alone(self, params: JsonObject) -> HttpRequest:
        method = self.what
        body = request_bytes(method, "dragoman-look", {**params, META: own_meta(self._version)})
        return HttpRequest(method="POST", url=self._url, headers=alone_headers(self._version, method), body=body)

    # -- in a session

    def _greet(self) -> None:
        self._greeting = greeting = Greeting(self._url, NO_HEADERS)

        def ask() -> HttpRequest | None:
            self.what = "initialize"
            return greeting.ask()

        def hear(reply: HttpReply) -> None:
            if greeting.headers:
                self.what = "notifications/initialized"
            greeting.hear(reply)
            if greeting.ask() is None:
                self._version = greeting.headers[VERSION_HEADER].decode()
                self._list({"serverInfo": member(greeting.told, "serverInfo"), **_words(greeting.told)})

        self._next, self._hear = ask, hear

    def _leave(self) -> HttpRequest | None:
        """End the session, which was for this alone."""
        self.what = "DELETE"
        headers = self._session
        if SESSION_HEADER not in headers:
            return None
        self._next, self._hear = _nothing_more, _whatever
        return HttpRequest(method="DELETE", url=self._url, headers={**HEADERS, **headers})

    @property
    def _session(self) -> Headers:
        return NO_HEADERS if self._greeting is None else self._greeting.headers

    # -- the tools

    def _list(self, told: JsonObject) -> None:
        tools: list[Json] = []

        def hear(reply: HttpReply) -> None:
            page = result_in(reply)
            if self._greeting is None and _WANTS_HEADERS in reply.body:
                self._greet()
                return
            listed: Json = page.get("tools")
            tools.extend(listed if is_array(listed) else ())
            self._pages += 1
            following: Json = page.get("nextCursor")
            self._cursor = following if isinstance(following, str) and following else None
            if self._cursor is not None and self._pages < MOST_PAGES and len(tools) < MOST_TOOLS:
                return
            if self._cursor is not None:
                raise BadAgentReply(f"It has more than {MOST_TOOLS} tools, or pages without end.", reason="too_large")
            self.card = {"mcp": self._version, "url": self._url, **told, "tools": tools}
            self._next, self._hear = self._leave, _whatever

        self._next, self._hear = self._list_page, hear

    def _list_page(self) -> HttpRequest:
        self.what = "tools/list"
        params: JsonObject = {} if self._cursor is None else {"cursor": self._cursor}
        if self._greeting is None:
            return self._alone(params)
        body = request_bytes("tools/list", f"dragoman-look-{self._pages}", params)
        return HttpRequest(method="POST", url=self._url, headers={**HEADERS, **self._session}, body=body)


def introduce(url: str) -> Introduction:
    """The conversation with the server at a URL."""
    return Introduction(url)


def _nothing_more() -> None:
    return None


def _whatever(_: HttpReply) -> None:
    return None


def _if_told(reply: HttpReply) -> JsonObject:
    """What a reply tells; nothing where it refuses, which servers of earlier revisions do."""
    try:
        return result_in(reply) if reply.status == 200 else {}
    except BadAgentReply:
        return {}


def _words(told: JsonObject) -> JsonObject:
    words = text_in(told, "instructions")
    return {"instructions": words} if words else {}
