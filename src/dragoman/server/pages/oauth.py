"""OAuth 2: a token for a key (RFC 6749, client credentials), and the documents that say so (RFC 8414, RFC 9728).

The client's id is the key's id, its secret the whole key. A token may do no more than its key, and dies with it.
"""

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from dragoman.hub.authenticate import Authenticator
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import BadRequest, DragomanError, NotAuthenticated
from dragoman.model.http import JSON_TYPE, Headers, HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.ports.store import StoredKey
from dragoman.security.scopes import ADMIN, ALL_SCOPES
from dragoman.security.tokens import ACCESS_LIFE_S, Signing, mint_access_jwt
from dragoman.server.exchange import PROTECTED_RESOURCE
from dragoman.server.pages.page import Page, json_reply

TOKEN: Final = "/oauth/token"  # noqa: S105 - a path
METADATA: Final = "/.well-known/oauth-authorization-server"
MOST_BYTES: Final = 16 * 1024
MOST_FIELDS: Final = 32
GRANT: Final = "client_credentials"
_FORM: Final = b"application/x-www-form-urlencoded"
_HEADERS: Final[Headers] = {b"content-type": JSON_TYPE, b"cache-control": b"no-store", b"pragma": b"no-cache"}
_HOW: Final = b'Basic realm="dragoman", charset="UTF-8"'
_MAY_REPEAT: Final = frozenset({"resource"})  # RFC 8707
_UNTELLABLE: Final = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")  # RFC 6749, 5.2

_encode = msgspec.json.Encoder().encode


class Refused(BadRequest):
    """The request for a token is refused."""

    def __init__(self, error: str, message: str) -> None:
        super().__init__(message)
        self.error = error


def pages(
    authenticator: Authenticator, signing: Signing, clock: Clock, hub_url: str, issuers: Sequence[str]
) -> tuple[Page, ...]:
    """The token endpoint, and the two documents; `issuers` are the others whose tokens are taken."""

    async def token(request: HttpRequest, _caller: Caller, arrival: Arrival) -> HttpReply:
        form = _form_of(request)
        if _one(form, "grant_type") != GRANT:
            kind = "unsupported_grant_type" if "grant_type" in form else "invalid_request"
            raise Refused(kind, f"grant_type: expected {GRANT}")
        client_id, secret = _client_of(request, form)
        key = await authenticator.client(client_id, secret, arrival.address)
        _check_resource(form.get("resource", ()), hub_url)
        scopes = _scopes_for(key, _one(form, "scope"))
        now = clock.now()
        ends = [at for at in (key.expires_at, key.revoked_at) if at is not None]
        life_s = min([ACCESS_LIFE_S, *(int((at - now).total_seconds()) for at in ends)])
        made = mint_access_jwt(
            signing(now),
            issuer=hub_url,
            subject=key.principal,
            tenant=key.tenant,
            scopes=scopes,
            client_id=key.key_id,
            agent_id=key.agent_id,
            now=now,
            life_s=life_s,
        )
        body = {"access_token": made, "token_type": "Bearer", "expires_in": life_s, "scope": " ".join(scopes)}
        return HttpReply(status=200, headers=_HEADERS, body=_encode(body))

    async def server_document(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, server_metadata(hub_url))

    async def resource_document(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, resource_metadata(hub_url, issuers))

    return (
        Page(method="POST", path=TOKEN, answer=token, public=True, refuse=refused),
        Page(method="GET", path=METADATA, answer=server_document, public=True),
        Page(method="GET", path=PROTECTED_RESOURCE, answer=resource_document, public=True),
    )


def server_metadata(hub_url: str) -> JsonObject:
    """What the hub is as an authorization server (RFC 8414)."""
    return {
        "issuer": hub_url,
        "token_endpoint": hub_url + TOKEN,
        "jwks_uri": f"{hub_url}/.well-known/jwks.json",
        "grant_types_supported": [GRANT],
        "response_types_supported": [],
        "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
        "scopes_supported": list(ALL_SCOPES),
        "service_documentation": f"{hub_url}/docs",
    }


def resource_metadata(hub_url: str, issuers: Iterable[str]) -> JsonObject:
    """What the hub is as a protected resource, and whose tokens open it (RFC 9728)."""
    return {
        "resource": hub_url,
        "resource_name": "Dragoman",
        "authorization_servers": [hub_url, *issuers],
        "bearer_methods_supported": ["header"],
        "scopes_supported": list(ALL_SCOPES),
        "resource_documentation": f"{hub_url}/docs",
    }


def refused(error: DragomanError) -> HttpReply:
    """A refusal in the words of RFC 6749, 5.2; what it has no word for keeps its status."""
    status, headers = error.http_status, dict(_HEADERS)
    if isinstance(error, NotAuthenticated):
        kind, headers[b"www-authenticate"] = "invalid_client", _HOW
    elif isinstance(error, Refused):
        kind = error.error
    elif status >= 500:
        kind = "server_error"
    else:
        kind = "temporarily_unavailable" if error.retry_after_s is not None else "invalid_request"
    if error.retry_after_s is not None:
        headers[b"retry-after"] = str(error.retry_after_s).encode()
    body = {"error": kind, "error_description": _UNTELLABLE.sub("'", error.message)}
    return HttpReply(status=status, headers=headers, body=_encode(body))


def _form_of(request: HttpRequest) -> Mapping[str, tuple[str, ...]]:
    """The fields of the form; one without a value counts as left out (RFC 6749, 3.2). Raises Refused."""
    if request.headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != _FORM:
        raise Refused("invalid_request", f"Send {_FORM.decode()}.")
    if len(request.body) > MOST_BYTES:
        raise Refused("invalid_request", "The form is too large.")
    try:
        fields = parse_qsl(request.body.decode(), errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError:
        raise Refused("invalid_request", "The form cannot be read.") from None
    form: dict[str, tuple[str, ...]] = {}
    for name, value in fields:
        if name in form and name not in _MAY_REPEAT:
            raise Refused("invalid_request", f"{name}: given more than once")
        form[name] = (*form.get(name, ()), value)
    return form


def _one(form: Mapping[str, tuple[str, ...]], name: str) -> str | None:
    found = form.get(name)
    return None if found is None else found[0]


def _client_of(request: HttpRequest, form: Mapping[str, tuple[str, ...]]) -> tuple[str, str]:
    """Who asks, and the secret that is to prove it: from the header or the form, not from both."""
    client_id, secret = _one(form, "client_id"), _one(form, "client_secret")
    header = request.headers.get(b"authorization")
    if header is None:
        if client_id is None or secret is None:
            raise NotAuthenticated("Send client_id and client_secret, in the form or as Basic.", reason="no_client")
        return client_id, secret
    if secret is not None:
        raise Refused("invalid_request", "Send the secret once: in the header or in the form.")
    named, secret = _basic(header)
    if client_id not in (None, named):
        raise Refused("invalid_request", "client_id: another than in the header")
    return named, secret


def _basic(header: bytes) -> tuple[str, str]:
    """The two halves of a Basic header, each of them form-encoded (RFC 6749, 2.3.1)."""
    scheme, _, value = header.partition(b" ")
    try:
        pair = base64.b64decode(value.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        pair = ""
    client_id, colon, secret = pair.partition(":")
    if scheme.lower() != b"basic" or not colon:
        raise NotAuthenticated("Send Authorization: Basic with the client's id and secret.", reason="not_basic")
    return unquote_plus(client_id), unquote_plus(secret)


def _check_resource(wanted: Iterable[str], hub_url: str) -> None:
    """What the token is for must be this hub, or something of it (RFC 8707). Raises Refused."""
    for resource in wanted:
        if "#" in resource or not (resource == hub_url or resource.startswith(hub_url + "/")):
            raise Refused("invalid_target", f"resource: expected {hub_url}")


def _scopes_for(key: StoredKey, wanted: str | None) -> tuple[str, ...]:
    """The scopes of a token: those wanted, which the key must have; else all of the key's, save the administrator's."""
    if wanted is None:
        scopes = tuple(sorted(scope for scope in key.scopes if scope != ADMIN))
        if not scopes:
            raise Refused("invalid_scope", f"This key has {ADMIN} alone: ask for it.")
        return scopes
    scopes = tuple(dict.fromkeys(wanted.split()))
    beyond = [scope for scope in scopes if scope not in key.scopes]
    if beyond or not scopes:
        raise Refused("invalid_scope", f"scope: this key has {' '.join(sorted(key.scopes))}")
    return scopes
