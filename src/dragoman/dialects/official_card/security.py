"""How callers prove who they are, in the words of either version.

Read: an agent's own schemes, for the hub that calls it. Written: the hub's, for those who call the agent through it.
An agent's own schemes are never shown: they would lead callers past the hub.
"""

from typing import Final

from dragoman.dialects.official_card.members import member, text
from dragoman.dialects.text import shown_text
from dragoman.model.agent import AuthScheme
from dragoman.model.json import JsonObject, is_object

_SUFFIX: Final = "securityscheme"
_KINDS: Final = {
    "apikey": "apiKey",
    "httpauth": "bearer",
    "oauth2": "oauth2",
    "openidconnect": "openIdConnect",
    "mtls": "mutualTLS",
}
# A scheme may offer several flows; the one that needs no person is the one the hub can use.
_FLOWS: Final = ("clientCredentials", "client_credentials")

KEY: Final = "apiKey"
BEARER: Final = "bearer"
OAUTH: Final = "oauth2"
TOKEN: Final = "/oauth/token"  # noqa: S105 - where the hub gives tokens for keys
METADATA: Final = "/.well-known/oauth-authorization-server"
_V10_SCHEMES: Final[JsonObject] = {
    BEARER: {"httpAuthSecurityScheme": {"scheme": "Bearer", "description": "A key or a token of this hub."}},
    KEY: {"apiKeySecurityScheme": {"location": "header", "name": "X-Api-Key", "description": "A key of this hub."}},
}
_V03_SCHEMES: Final[JsonObject] = {
    BEARER: {"type": "http", "scheme": "bearer", "description": "A key or a token of this hub."},
    KEY: {"type": "apiKey", "in": "header", "name": "X-Api-Key", "description": "A key of this hub."},
}


def read_schemes(card: JsonObject) -> tuple[AuthScheme, ...]:
    """The schemes that a card of either version declares."""
    schemes = member(card, "securitySchemes", "security_schemes")
    return tuple(_scheme(name, scheme) for name, scheme in schemes.items() if is_object(scheme))


def v10_schemes(hub_url: str, scopes: tuple[str, ...]) -> JsonObject:
    """The hub's schemes as 1.0 says them: each under the member that names its kind."""
    oauth = {"oauth2SecurityScheme": _client_credentials(hub_url, scopes)}
    return {**{name: dict(scheme) for name, scheme in _V10_SCHEMES.items()}, OAUTH: oauth}


def v03_schemes(hub_url: str, scopes: tuple[str, ...]) -> JsonObject:
    """The hub's schemes as 0.3 says them: each with its `type`."""
    oauth = {"type": "oauth2", **_client_credentials(hub_url, scopes)}
    return {**{name: dict(scheme) for name, scheme in _V03_SCHEMES.items()}, OAUTH: oauth}


def merged_schemes(hub_url: str, scopes: tuple[str, ...]) -> JsonObject:
    """The hub's schemes as clients of both versions read them."""
    newer, older = v10_schemes(hub_url, scopes), v03_schemes(hub_url, scopes)
    return {name: {**newer[name], **older[name]} for name in newer}


def v10_requirements(scopes: tuple[str, ...]) -> list[JsonObject]:
    """Any of the schemes will do, as 1.0 says it."""
    return [{"schemes": {name: {"list": list(scopes)}}} for name in (*_V10_SCHEMES, OAUTH)]


def v03_requirements(scopes: tuple[str, ...]) -> list[JsonObject]:
    """Any of the schemes will do, as 0.3 says it."""
    return [{name: list(scopes)} for name in (*_V03_SCHEMES, OAUTH)]


def _client_credentials(hub_url: str, scopes: tuple[str, ...]) -> JsonObject:
    """A token for a key: the one flow of OAuth 2 that needs no person."""
    asked = {scope: "Needed to call this agent." for scope in scopes}
    return {
        "description": "A token of this hub, for a key.",
        "flows": {"clientCredentials": {"tokenUrl": hub_url + TOKEN, "scopes": asked}},
        "oauth2MetadataUrl": hub_url + METADATA,
    }


def _scheme(name: str, scheme: JsonObject) -> AuthScheme:
    wrapper = next((key for key in scheme if key.lower().replace("_", "").endswith(_SUFFIX)), "")
    inner = scheme.get(wrapper)
    value: JsonObject = inner if is_object(inner) else scheme
    kind = wrapper.lower().replace("_", "").removesuffix(_SUFFIX) or (text(scheme, "type") or "").lower()
    flows = member(value, "flows")
    flow = member(flows, *_FLOWS) or member(flows, *flows)
    described = text(value, "description")
    return AuthScheme(
        kind=_kind(kind, value) or text(scheme, "type") or kind,
        id=name,
        description=shown_text(described, 4096) if described else None,
        location=text(value, "location", "in"),
        name=text(value, "name"),
        token_url=text(flow, "tokenUrl", "token_url"),
        scopes=tuple(member(flow, "scopes")),
        raw=scheme,
    )


def _kind(kind: str, value: JsonObject) -> str | None:
    if kind in ("httpauth", "http"):
        return (text(value, "scheme") or BEARER).lower()
    return "mutualTLS" if kind == "mutualtls" else _KINDS.get(kind)
