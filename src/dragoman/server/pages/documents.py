"""Documents: the settings in force, the hub's public keys, and the schemas of what it takes."""

from collections.abc import Callable
from typing import Final

from dragoman.config import Settings
from dragoman.hub.key_ring import require_admin
from dragoman.model.call import Arrival, Caller
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.server.pages.html import html_reply
from dragoman.server.pages.openapi import card_schema, openapi
from dragoman.server.pages.page import Page, json_reply
from dragoman.server.pages.reference import reference_html, reference_text

_PLAIN: Final = {b"content-type": b"text/plain; charset=utf-8"}


def pages(settings: Settings, jwks: Callable[[], JsonObject]) -> tuple[Page, ...]:
    """The pages of documents."""

    async def settings_page(_request: HttpRequest, caller: Caller, _arrival: Arrival) -> HttpReply:
        require_admin(caller)
        items = [
            {"setting": name, "value": sourced.value, "source": sourced.source}
            for name, sourced in settings.sources.items()
        ]
        return json_reply(200, {"items": items, "next_cursor": None})

    async def jwks_page(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, jwks())

    async def openapi_page(request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, openapi(request.hub))

    async def card_schema_page(request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, card_schema(request.hub))

    async def docs_page(request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return html_reply(reference_html(openapi(request.hub)))

    async def text_page(request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return HttpReply(status=200, headers=_PLAIN, body=reference_text(openapi(request.hub)).encode())

    return (
        Page(method="GET", path="/v1/settings", answer=settings_page),
        Page(method="GET", path="/.well-known/jwks.json", answer=jwks_page, public=True),
        Page(method="GET", path="/openapi.json", answer=openapi_page, public=True),
        Page(method="GET", path="/schemas/agent-card/v1", answer=card_schema_page, public=True),
        Page(method="GET", path="/docs", answer=docs_page, public=True),
        Page(method="GET", path="/llms.txt", answer=text_page, public=True),
    )
