"""Write one request as one `bytes`: the exact words that go over the wire.

Whatever could end a line early is refused before anything is sent. Framing belongs to the client alone: headers that
would change it are refused too.
"""

import re
from functools import lru_cache
from typing import Final

from dragoman.model.http import HttpRequest
from dragoman.net.addresses import Target
from dragoman.net.errors import NetError, Reach

# Made by the client itself, or a way to change where the message ends.
OWN_HEADERS: Final = frozenset(
    b"host content-length transfer-encoding connection keep-alive proxy-connection te trailer upgrade expect "
    b"accept-encoding".split()
)
_CONTROLS: Final = bytes(byte for byte in range(32) if byte != 9) + b"\x7f"
_WITHOUT_CONTROLS: Final = bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS))
_BODILESS: Final = frozenset({"GET", "HEAD", "DELETE"})
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")


def after_verb(target: Target) -> bytes:
    """What follows the verb in every request to a target."""
    path, authority = target.path.encode("ascii"), target.authority.encode("ascii")
    return b"%b HTTP/1.1\r\nhost: %b\r\naccept-encoding: identity\r\n" % (path, authority)


def compose(request: HttpRequest, words: bytes) -> bytes:
    """The whole request, with `words` behind its verb.

    Raises NetError PROTOCOL if a name, a value or the method could break it apart.
    """
    headers, method, body = request.headers, request.method, request.body
    lines = b""
    if headers:
        values = tuple(headers.values())
        joined = b"".join(values)
        if joined.translate(_WITHOUT_CONTROLS) != joined:
            raise NetError(Reach.PROTOCOL)
        lines = _lines(tuple(headers)) % values
    if body or method not in _BODILESS:
        return b"%b%b%bcontent-length: %d\r\n\r\n%b" % (_verb(method), words, lines, len(body), body)
    return b"%b%b%b\r\n" % (_verb(method), words, lines)


@lru_cache(maxsize=64)
def _verb(method: str) -> bytes:
    verb = method.encode("ascii", "replace")
    # CONNECT would make the connection something else than HTTP.
    if _TOKEN.fullmatch(verb) is None or verb.upper() == b"CONNECT":
        raise NetError(Reach.PROTOCOL)
    return verb + b" "


@lru_cache(maxsize=1024)
def _lines(names: tuple[bytes, ...]) -> bytes:
    """The header lines of requests with these names, with a place for each value: few differ in their names."""
    for name in names:
        if _TOKEN.fullmatch(name) is None or name.lower() in OWN_HEADERS:
            raise NetError(Reach.PROTOCOL)
    return b"".join([name.replace(b"%", b"%%") + b": %b\r\n" for name in names])
