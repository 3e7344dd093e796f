"""Pages for people: who wants one, and how it is sent."""

from typing import Final

from dragoman.model.http import HttpReply, HttpRequest

# Nothing on these pages is fetched, run or framed.
_HEADERS: Final = {
    b"content-type": b"text/html; charset=utf-8",
    b"content-security-policy": b"default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    b"vary": b"accept",
}
_MOST_RANGES: Final = 50  # of an Accept header; browsers send fewer than ten


def prefers_html(request: HttpRequest) -> bool:
    """Whether the request would rather have HTML than JSON; who takes either gets JSON."""
    accept = request.headers.get(b"accept", b"").decode("ascii", "replace").lower()
    return _weight(accept, "text/html") > _weight(accept, "application/json")


def html_reply(page: str) -> HttpReply:
    """A page as a reply."""
    return HttpReply(status=200, headers=_HEADERS, body=page.encode())


def _weight(accept: str, media_type: str) -> float:
    """How much a type is wanted: by the range that names it best."""
    found: dict[str, float] = {}
    for text in accept.split(",", _MOST_RANGES)[:_MOST_RANGES]:
        wanted, *params = (each.strip() for each in text.split(";"))
        quality = next((each[2:] for each in params if each.startswith("q=")), "1")
        try:
            found[wanted] = float(quality)
        except ValueError:
            found[wanted] = 0.0
    for wanted in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if wanted in found:
            return found[wanted]
    return 0.0
