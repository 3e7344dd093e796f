"""A client of the hub's token endpoint, in the plain words of RFC 6749; nothing of the hub's code is used."""

import base64
from typing import Any
from urllib.parse import quote_plus, urlencode

from tests.support.hub import HubProcess, Reply

FORM = "application/x-www-form-urlencoded"


def client_of(key: str) -> tuple[str, str]:
    """The id and the secret of the client that a key is."""
    return key.split("_")[1], key


def ask(hub: HubProcess, fields: dict[str, Any] | bytes, *, basic: tuple[str, str] | None = None, **more: str) -> Reply:
    """One request for a token; a list gives a field more than once."""
    headers = {"Content-Type": FORM, "Authorization": "", **more}
    if basic is not None:
        pair = ":".join(quote_plus(half) for half in basic)
        headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    body = fields if isinstance(fields, bytes) else urlencode(fields, doseq=True).encode()
    return hub.post("/oauth/token", body, headers)


def grant(key: str, **more: Any) -> dict[str, Any]:
    """What a client sends in the form."""
    client_id, secret = client_of(key)
    return {"grant_type": "client_credentials", "client_id": client_id, "client_secret": secret, **more}


def token_for(hub: HubProcess, key: str, **more: Any) -> str:
    """A token for a key."""
    reply = ask(hub, grant(key, **more))
    assert reply.status == 200, reply.body
    token: str = reply.json["access_token"]
    return token
