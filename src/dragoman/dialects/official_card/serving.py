"""A public card as an HTTP reply: signed, cacheable for a minute, and nothing but its name to those who have it."""

from datetime import datetime
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.dialects.dialect import Place
from dragoman.dialects.official_card.signed_form import SIGNATURES, signing_forms
from dragoman.model.answers import SignsCards
from dragoman.model.http import JSON_TYPE, HttpReply, HttpRequest
from dragoman.model.json import JsonObject

_encode = msgspec.json.Encoder().encode
_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def card_reply(
    request: HttpRequest, shown: JsonObject, changed_at: datetime, signer: SignsCards | None = None
) -> HttpReply:
    """The card, or 304 where the caller has this very one; which one it is depends on the version asked for."""
    body = _encode(shown)
    digest = sha256(body).digest()
    # The key as well: who has a card that is signed with the last one would never see the signature of this one.
    named = digest if signer is None else sha256(digest + signer.kid.encode()).digest()
    tag = f'W/"{named.hex()[:32]}"'.encode()
    headers = {
        b"cache-control": b"public, max-age=60",
        b"etag": tag,
        b"last-modified": _http_date(changed_at),
        b"vary": b"A2A-Version",
    }
    if _is_known(request.headers.get(b"if-none-match", b""), tag):
        return HttpReply(status=304, headers=headers)
    if signer is not None and (signatures := signer.signatures(digest, lambda: signing_forms(shown))):
        body = b'%b,"%b":%b}' % (body[:-1], SIGNATURES.encode(), signatures)
    return HttpReply(status=200, headers={b"content-type": JSON_TYPE, **headers}, body=body)


def place_seen(request: HttpRequest, place: Place) -> Place:
    """Where an agent is called, with the name that the caller has for the hub, where both are names of this machine.

    Some clients take a card only if the address in it has the origin that it came from. Who the hub is (where its
    tokens and keys come from) does not depend on how it is asked.
    """
    scheme, _, rest = request.hub.partition("://")
    own, seen = _name_in(rest.partition("/")[0]), _name_in(request.headers.get(b"host", b"").decode("ascii", "replace"))
    if own == seen or own not in _LOOPBACK or seen not in _LOOPBACK:
        return place
    return msgspec.structs.replace(place, base_url=f"{scheme}://{seen}{place.base_url.partition('://')[2][len(own) :]}")


def signed_card(shown: JsonObject, signer: SignsCards | None) -> JsonObject:
    """The card with the hub's signatures on it, for where it is a part of something."""
    if signer is None:
        return shown
    signatures = signer.signatures(sha256(_encode(shown)).digest(), lambda: signing_forms(shown))
    return {**shown, SIGNATURES: msgspec.json.decode(signatures)} if signatures else shown


def _name_in(host: str) -> str:
    """A host without its port."""
    return (host[: host.rfind("]") + 1] if host.startswith("[") else host.partition(":")[0]).lower()


def _is_known(given: bytes, tag: bytes) -> bool:
    """Whether one of the tags given is this one; weak or strong makes no difference here."""
    if given.strip() == b"*":
        return True
    return tag.removeprefix(b"W/") in {each.strip().removeprefix(b"W/") for each in given.split(b",")}


def _http_date(at: datetime) -> bytes:
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{day}, {at.day:02} {month} {at.year:04} {at.hour:02}:{at.minute:02}:{at.second:02} GMT".encode()
