"""Which hub is meant, and which token it is shown: the same rule for the SDK and the command line.

Hub: what was given, DRAGOMAN_URL, http://127.0.0.1:8700. Token: what was given, DRAGOMAN_TOKEN, and for a hub on this
machine the admin token in the data directory, unless others could read it. The environment is handed in, and read
when a client is made. Imports little: every command of the command line begins here.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from dragoman.model.loopback import is_loopback_address

DEFAULT_HUB: Final = "http://127.0.0.1:8700"
DEV_FOLDER: Final = "dev"
URL_SETTING: Final = "DRAGOMAN_URL"
TOKEN_SETTING: Final = "DRAGOMAN_TOKEN"  # noqa: S105 - a name


class Tokens(NamedTuple):
    """The tokens that may be meant for a hub, best first, and why others are not used."""

    usable: list[str]
    refused: list[str]


def hub_url(given: str | None, environ: Mapping[str, str]) -> str:
    """The hub that is meant, as it was written."""
    return given or environ.get(URL_SETTING) or DEFAULT_HUB


def is_hub_url(url: str) -> bool:
    """Whether a hub could be at this URL: http or https, a host, no query."""
    try:
        parts = urlsplit(url)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment)
        )
    except ValueError:
        return False


def is_loopback(url: str) -> bool:
    """Whether a URL leads to this machine."""
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or is_loopback_address(host)
    except ValueError:
        return False


def data_directory(environ: Mapping[str, str]) -> Path:
    """Where hubs of this user keep their data unless told otherwise."""
    # Brings msgspec: not for --help.
    from dragoman.config import user_data

    given = environ.get("DRAGOMAN_DATA")
    return Path(given).expanduser() if given else user_data(environ, sys.platform)


def tokens_for(url: str, environ: Mapping[str, str]) -> Tokens:
    """What to show to the hub at this URL where no token was given."""
    if environ.get(TOKEN_SETTING):
        return Tokens([environ[TOKEN_SETTING]], [])
    return _local_tokens(environ) if is_loopback(url) else Tokens([], [])


def _local_tokens(environ: Mapping[str, str]) -> Tokens:
    """The admin tokens of this user's hubs: which of the two listens at a port is not known beforehand."""
    from dragoman.security.admin import ADMIN_TOKEN_FILE
    from dragoman.security.private_files import SecretRefused, read_private

    found = Tokens([], [])
    data = data_directory(environ)
    for folder in (data, data / DEV_FOLDER):
        try:
            text = read_private(folder / ADMIN_TOKEN_FILE)
        except SecretRefused as error:
            found.refused.append(error.message)
            continue
        if text:
            found.usable.append(text)
    return found
