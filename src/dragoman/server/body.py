"""The body of a request: all of it or nothing, within a size, and not nested beyond sense.

Order of the checks (the route calls them): media type, size, depth, decode. Deliberately not here: decoding.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from dragoman.model.errors import NotJson, TooLarge

Receive = Callable[[], Awaitable[Mapping[str, object]]]

DEEPEST: Final = 64
OPENING: Final = ord("[")
# A string without end runs to the body's end: were it no match, the search would begin again at each of its quotes,
# and take quadratic time.
_STRING: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_ALIKE: Final = bytes.maketrans(b"{}", b"[]")
_NO_BRACKET: Final = bytes(set(range(256)) - set(b"[]{}"))


class ClientGone(Exception):
    """The client left before its request was complete: there is nobody to answer."""


async def read_body(receive: Receive, limit: int) -> bytes:
    """The whole body, from the application's `receive`.

    Raises TooLarge beyond `limit` bytes, ClientGone when the client leaves first.
    """
    message = await receive()
    body = _piece(message, limit)
    if not message.get("more_body"):
        return body
    pieces = [body]
    left = limit - len(body)
    while message.get("more_body"):
        message = await receive()
        piece = _piece(message, left, limit)
        left -= len(piece)
        pieces.append(piece)
    return b"".join(pieces)


def check_depth(body: bytes, limit: int = DEEPEST) -> None:
    """Refuse what nests deeper than `limit` before any decoder follows it down; raises NotJson.

    Few brackets cannot nest deeply, and most bodies have few. Otherwise the strings are taken out, so that brackets in
    them do not count, and the rest is walked.
    """
    # Taken out to be counted: that is a search for each of them, where `count` looks at every byte.
    if len(body) - len(body.replace(b"[", b"").replace(b"{", b"")) <= limit:
        return
    depth = 0
    for bracket in _STRING.sub(b"", body).translate(_ALIKE, _NO_BRACKET):
        if bracket == OPENING:
            depth += 1
            if depth > limit:
                raise NotJson(f"The body nests deeper than {limit} levels.", limit=limit)
        else:
            depth -= 1


def _piece(message: Mapping[str, object], left: int, limit: int | None = None) -> bytes:
    if message["type"] != "http.request":
        raise ClientGone
    body = message.get("body", b"")
    if not isinstance(body, bytes):
        raise TypeError("The server sent a body that is not bytes.")
    if len(body) > left:
        raise TooLarge(f"The body is larger than {limit or left} bytes.", limit=limit or left)
    return body
