"""Another issuer of access tokens that the hub takes, as the settings name it."""

from typing import Annotated, Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

Url = Annotated[str, Meta(pattern=r"^https?://[!-~]{1,2000}$")]
Algorithm = Literal["ES256", "ES384", "ES512", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA", "Ed25519"]
# How tenants are named; no other word of an issuer's becomes one.
TENANT: Final = r"^[a-z0-9][a-z0-9_-]{0,62}$"


class Issuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose tokens count, where its keys are, and what its claims mean here."""

    issuer: Url  # `iss`, letter by letter
    jwks_uri: Url
    name: Annotated[str, Meta(pattern=r"^[A-Za-z0-9.-]{0,64}$")] = ""  # before the callers' names; else the host
    audience: str = ""  # `aud`; else the hub's public address
    algs: Annotated[tuple[Algorithm, ...], Meta(min_length=1)] = ("ES256", "RS256")
    typ: Literal["at+jwt", "JWT"] = "at+jwt"  # JWT: for issuers that do not mark their access tokens (RFC 9068)
    tenant: Annotated[str, Meta(pattern=TENANT)] = "default"
    tenant_claim: str = ""  # the claim that names the tenant instead
    scope_claim: str = "scope"  # the claim with the scopes: words, or a list of them
    scopes: tuple[str, ...] = ("a2a:call", "a2a:receive", "a2a:register")  # the most of the hub's own that it may give

    @property
    def prefix(self) -> str:
        """What stands before the names of its callers."""
        return self.name or urlsplit(self.issuer).hostname or ""
