"""Which version and which extensions a request of 0.3 names, by header or by query parameter."""

from typing import Final
from urllib.parse import parse_qsl

from dragoman.model.errors import VersionNotSupported
from dragoman.model.http import HttpRequest

VERSION: Final = "0.3"
_NAME: Final = "a2a-version"
_EXTENSIONS: Final = (b"x-a2a-extensions", b"a2a-extensions")
MAX_EXTENSIONS: Final = 32


def require_version(request: HttpRequest) -> None:
    """Take 0.3 in any spelling; naming no version means it. Raises VersionNotSupported."""
    given = request.headers.get(_NAME.encode(), b"").decode("ascii", "replace").strip()
    if not given and "?" in request.url:
        query = parse_qsl(request.url.partition("?")[2])
        given = next((value.strip() for name, value in query if name.lower() == _NAME and value.strip()), "")
    if given and ".".join(given.split(".")[:2]) != VERSION:
        raise VersionNotSupported(
            f"This method belongs to A2A {VERSION}, not to {given[:32]!r}; send A2A-Version: {VERSION}, or none.",
            supported=[VERSION],
        )


def extensions_of(request: HttpRequest) -> tuple[str, ...]:
    """The extensions that a request asks for, under either name of the header."""
    named = [request.headers.get(name, b"").decode("utf-8", "replace") for name in _EXTENSIONS]
    found = dict.fromkeys(each.strip() for line in named for each in line.split(","))
    # They go on to the agent as a header again.
    return tuple(each for each in found if each and each.isascii() and each.isprintable())[:MAX_EXTENSIONS]
