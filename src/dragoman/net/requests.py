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
_TOKEN: Final = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,256}")


def after_path(target: Target) -> bytes:
    """What follows the path in every request to an origin."""
    return b" HTTP/1.1\r\nhost: %b\r\naccept-encoding: identity\r\n" % target.authority.encode("ascii")


def compose(request: HttpRequest, path: bytes, tail: bytes) -> bytes:
    """The whole request; raises NetError PROTOCOL if a name, a value or the method could break it apart."""
    headers = request.headers
    words = [_verb(request.method), path, tail]
    for name, value in headers.items():
        words.append(_label(name))
        words.append(value)
        words.append(b"\r\n")
    if headers:
        values = b"".join(headers.values())
        if len(values.translate(None, _CONTROLS)) != len(values):
            raise NetError(Reach.PROTOCOL)
    body = request.body
    if body or request.method not in ("GET", "HEAD", "DELETE"):
        words.append(b"content-length: %d\r\n\r\n" % len(body))
        words.append(body)
    else:
        words.append(b"\r\n")
    return b"".join(words)


@lru_cache(maxsize=64)
def _verb(method: str) -> bytes:
    verb = method.encode("ascii", "replace")
    # CONNECT would make the connection something else than HTTP.
    if _TOKEN.fullmatch(verb) is None or verb.upper() == b"CONNECT":
        raise NetError(Reach.PROTOCOL)
    return verb + b" "


@lru_cache(maxsize=1024)
def _label(name: bytes) -> bytes:
    if _TOKEN.fullmatch(name) is None or name.lower() in OWN_HEADERS:
        raise NetError(Reach.PROTOCOL)
    return name + b": "
