"""Under which names a service's credentials stand in an environment, or in a file that is written like one."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

PREFIXES: Final = ("dragoman", "agentvault")

_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9]")

Client = tuple[str, str]  # the id and the secret of an OAuth2 client


def key_in(values: Mapping[str, str], id: str) -> str | None:
    """The service's key among values by lower-case names: `DRAGOMAN_KEY_<ID>`, then `AGENTVAULT_KEY_<ID>`."""
    return next((found for name in _names(id, "key") if (found := values.get(name))), None)


def client_in(values: Mapping[str, str], id: str) -> Client | None:
    """The service's OAuth2 client: `…_OAUTH_<ID>_CLIENT_ID` and `…_CLIENT_SECRET`, both under the same prefix."""
    for name in _names(id, "oauth"):
        client_id, client_secret = values.get(f"{name}_client_id"), values.get(f"{name}_client_secret")
        if client_id and client_secret:
            return client_id, client_secret
    return None


def _names(id: str, kind: str) -> Iterator[str]:
    """With the id as it is, or with `_` for whatever a shell cannot export."""
    for prefix in PREFIXES:
        for spelling in dict.fromkeys((id, _NOT_IN_NAMES.sub("_", id))):
            yield f"{prefix}_{kind}_{spelling}"
