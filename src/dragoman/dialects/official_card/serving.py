"""A public card as an HTTP reply: cacheable for a minute, and nothing but its name to those who have it already."""

from datetime import datetime
from hashlib import sha256
from typing import Final

import msgspec

from dragoman.model.http import JSON_TYPE, HttpReply, HttpRequest
from dragoman.model.json import JsonObject

_encode = msgspec.json.Encoder().encode
_DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def card_reply(request: HttpRequest, shown: JsonObject, changed_at: datetime) -> HttpReply:
    """The card, or 304 where the caller has this very one; which one it is depends on the version asked for."""
    unsigned = {name: value for name, value in shown.items() if name != "signatures"}
    tag = f'W/"{sha256(_encode(unsigned)).hexdigest()[:32]}"'.encode()
    headers = {
        b"cache-control": b"public, max-age=60",
        b"etag": tag,
        b"last-modified": _http_date(changed_at),
        b"vary": b"A2A-Version",
    }
    if _is_known(request.headers.get(b"if-none-match", b""), tag):
        return HttpReply(status=304, headers=headers)
    return HttpReply(status=200, headers={b"content-type": JSON_TYPE, **headers}, body=_encode(shown))


def _is_known(given: bytes, tag: bytes) -> bool:
    """Whether one of the tags given is this one; weak or strong makes no difference here."""
    if given.strip() == b"*":
        return True
    return tag.removeprefix(b"W/") in {each.strip().removeprefix(b"W/") for each in given.split(b",")}


def _http_date(at: datetime) -> bytes:
    day, month = _DAYS[at.weekday()], _MONTHS[at.month - 1]
    return f"{day}, {at.day:02} {month} {at.year:04} {at.hour:02}:{at.minute:02}:{at.second:02} GMT".encode()
