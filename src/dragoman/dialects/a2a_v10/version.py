"""Which version of the protocol a request says it speaks: by header, else by query; without either it is 0.3."""

import re
from typing import Final
from urllib.parse import parse_qsl

from dragoman.dialects.dialect import in_mount
from dragoman.model.errors import VersionNotSupported
from dragoman.model.http import HttpRequest

VERSION: Final = "1.0"
MOUNT: Final = "a2a-1.0"
_WIRE_VERSION: Final = VERSION.encode()
_HEADER: Final = b"a2a-version"
_FORM: Final = re.compile(r"(\d{1,4}\.\d{1,4})(?:\.\d{1,6})?")


def said_version(request: HttpRequest) -> str:
    """The version as `major.minor`, whatever the patch; what has another form as it came, empty where none is said."""
    given = request.headers.get(_HEADER, b"").decode("ascii", "replace").strip() or _in_query(request.url)
    form = _FORM.fullmatch(given)
    return given if form is None else form[1]


def require_version(request: HttpRequest) -> None:
    """Take nothing but 1.0. Raises VersionNotSupported saying so."""
    if request.headers.get(_HEADER) == _WIRE_VERSION:
        return  # as nearly everybody writes it
    said = said_version(request)
    if said != VERSION:
        named = f"A2A version {said[:40]!r}" if said else "A request without A2A-Version means 0.3, which"
        raise VersionNotSupported(
            f"{named} is not what this operation speaks: send A2A-Version: {VERSION}.",
            requested=said[:40] or "0.3",
            supported=VERSION,
        )


def speaks_v10(request: HttpRequest) -> bool:
    """Whether a request is of 1.0 by what it says or by where it was sent: the mount of this version."""
    return said_version(request) == VERSION or in_mount(request, MOUNT)


def _in_query(url: str) -> str:
    query = url.partition("?")[2]
    if not query:
        return ""
    return next((value.strip() for name, value in parse_qsl(query) if name.lower() == _HEADER.decode()), "")
