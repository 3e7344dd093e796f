"""See what a URL really speaks: find its card, then ask each endpoint something that starts no work.

A card alone is never believed: cards name wrong hosts and promise what is not there. At most 24 small requests.
"""

from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import msgspec

from dragoman.delivery.over_http import Wire
from dragoman.dialects.dialect import Dialect
from dragoman.model.agent import AgentCard, Binding, Endpoint
from dragoman.model.errors import BadParams
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import Json, is_object
from dragoman.net.errors import NetError, Reach

MOST_REQUESTS: Final = 24
# Names that mean "this machine" to whoever wrote the card, not to us.
_NOWHERE: Final = frozenset({"localhost", "0.0.0.0", "127.0.0.1", "::", "::1"})  # noqa: S104 - compared, not bound
_CARD_HEADERS: Final = {b"accept": b"application/json", b"a2a-version": b"1.0"}
_decode = msgspec.json.Decoder().decode


class Seen:
    """What was tried and what came back, to be shown where nothing usable answers."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.left = MOST_REQUESTS

    def add(self, what: str, outcome: str) -> None:
        """Note one request."""
        self.lines.append(f"{what}: {outcome}")


async def examine(
    url: str, named: str | None, *, wire: Wire, dialects: Mapping[str, Dialect], deadline: float
) -> AgentCard:
    """The card found at a URL, with the endpoints that answered, best first.

    Raises BadParams with what was seen.
    """
    seen = Seen()
    if named is not None and named not in dialects:
        raise BadParams(f"dialect: unknown, {named!r}; there are: {', '.join(dialects)}")
    found = [dialects[named]] if named is not None else list(dialects.values())
    card = await _find_card(url, found, wire, deadline, seen)
    if card is None:
        raise _nothing(url, "no agent card was found there", seen)
    answering: list[Endpoint] = []
    for endpoint in card.endpoints:
        dialect = dialects.get(endpoint.dialect)
        if dialect is not None and endpoint.binding is Binding.JSONRPC:
            answering += await _answering(endpoint, url, dialect, wire, deadline, seen)
    if not answering:
        raise _nothing(url, f"the card of {card.name!r} was found, but none of its endpoints answers", seen)
    return msgspec.structs.replace(card, endpoints=tuple(answering))


async def _find_card(url: str, dialects: list[Dialect], wire: Wire, deadline: float, seen: Seen) -> AgentCard | None:
    for place in _card_places(url, dialects):
        reply = await _tried(HttpRequest(method="GET", url=place, headers=_CARD_HEADERS), wire, deadline, seen)
        if reply is None or reply.status != 200:
            continue
        try:
            body: Json = _decode(reply.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            continue
        if not is_object(body):
            continue
        for dialect in dialects:
            if dialect.owns_card(body):
                return dialect.read_card(body)
    return None


def _card_places(url: str, dialects: list[Dialect]) -> Iterator[str]:
    """The URL itself, then each dialect's paths below it, then the same below its origin."""
    parts = urlsplit(url)
    origin = urlunsplit((parts.scheme, parts.netloc, "", "", ""))
    base = urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/"), "", ""))
    paths = [path for dialect in dialects for path in dialect.card_paths]
    yield from dict.fromkeys([url, *(base + path for path in paths), *(origin + path for path in paths)])


async def _answering(
    endpoint: Endpoint, url: str, dialect: Dialect, wire: Wire, deadline: float, seen: Seen
) -> list[Endpoint]:
    """The endpoint, at the first of its possible addresses that answers the dialect's probe."""
    if dialect.probe is None or dialect.answers_probe is None:
        return [endpoint]
    for address in _addresses(endpoint.url or "", url):
        reply = await _tried(dialect.probe(address), wire, deadline, seen)
        if reply is not None and dialect.answers_probe(reply):
            return [msgspec.structs.replace(endpoint, url=address)]
    return []


def _addresses(endpoint: str, given: str) -> Iterator[str]:
    """As the card says; with the final slash toggled; and where the card names a host of its own, at the one given."""
    parts, ours = urlsplit(endpoint), urlsplit(given)
    toggled = parts.path.rstrip("/") if parts.path.endswith("/") and parts.path != "/" else parts.path + "/"
    found = [endpoint, urlunsplit((parts.scheme, parts.netloc, toggled, parts.query, ""))]
    if parts.hostname in _NOWHERE and parts.netloc != ours.netloc:
        found.append(urlunsplit((ours.scheme, ours.netloc, parts.path, parts.query, "")))
    yield from dict.fromkeys(found)


async def _tried(request: HttpRequest, wire: Wire, deadline: float, seen: Seen) -> HttpReply | None:
    if seen.left == 0:
        return None
    seen.left -= 1
    what = f"{request.method} {request.url}"
    try:
        reply = await wire.fetch(request, deadline)
    except NetError as error:
        seen.add(what, str(error))
        if error.kind in (Reach.FORBIDDEN, Reach.TIMEOUT):
            seen.left = 0  # Neither gets better by asking again.
        return None
    seen.add(what, f"HTTP {reply.status}")
    return reply


def _nothing(url: str, why: str, seen: Seen) -> BadParams:
    return BadParams(
        f"Nothing usable answers at {url[:200]}: {why}.", errors=[{"path": "url", "message": why}], seen=seen.lines
    )
