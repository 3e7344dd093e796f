"""Find an agent's card: at the URL itself, below it, or below its origin. The first that looks like one wins.

What kind it is, its keys say, and never the place where it was found. A card that cannot be read is told of, and the
search goes on.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.delivery.probe.asker import Asker
from dragoman.delivery.probe.findings import SeenCard
from dragoman.delivery.probe.places import card_places
from dragoman.dialects.dialect import Dialect
from dragoman.model.errors import BadParams
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import Json, JsonObject, is_deeper, is_object

# Without a version: who has both then shows both.
_HEADERS: Final[Headers] = {b"accept": b"application/json"}
_MERGED: Final = frozenset({"protocolVersion", "preferredTransport"})
_SHOWN: Final = 200
DEPTH: Final = 64
_decode = msgspec.json.Decoder().decode


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What the search for a card came to."""

    found: SeenCard | None = None
    problem: str = ""  # why one that was found cannot be used
    wanted: str = ""  # what a server said it needs to know before it shows a card


async def find_card(url: str, dialects: Mapping[str, Dialect], asker: Asker) -> Search:
    """The first card there is."""
    problem = wanted = ""
    for place, path in card_places(url):
        reply = await asker.ask("card", HttpRequest(method="GET", url=place, headers=_HEADERS), _describe)
        body = None if reply is None else _object_in(reply)
        if reply is None or body is None:
            continue
        if reply.status == 400:
            wanted = wanted or _wanted(body)
        if reply.status != 200:
            continue
        dialect = next((each for each in dialects.values() if each.owns_card(body)), None)
        if dialect is None:
            continue
        try:
            return Search(found=_seen(place, path, dialect, body, reply), wanted=wanted)
        except BadParams as error:
            problem = problem or f"{path or place}, {dialect.slug}: {error.message}"
    return Search(problem=problem, wanted=wanted)


def _seen(place: str, path: str, dialect: Dialect, body: JsonObject, reply: HttpReply) -> SeenCard:
    return SeenCard(
        url=place,
        path=path,
        dialect=dialect.slug,
        body=body,
        card=dialect.read_card(body),
        digest=sha256(reply.body).hexdigest(),
        raw=reply.body,
        merged="supportedInterfaces" in body and not _MERGED.isdisjoint(body),
        signed=bool(body.get("signatures")),
    )


def _describe(reply: HttpReply) -> str:
    return f"HTTP {reply.status}"


def _wanted(body: JsonObject) -> str:
    """What a refusal says is missing from the query, if it says that."""
    error: Json = body.get("error", body.get("detail"))
    said: Json = error.get("message") if is_object(error) else error
    return said[:_SHOWN] if isinstance(said, str) and "parameter" in said.lower() else ""


def _object_in(reply: HttpReply) -> JsonObject | None:
    try:
        body: Json = _decode(reply.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return body if is_object(body) and not is_deeper(body, DEPTH) else None
