"""The hub's signing key, its public half for the JWKS, and the short-lived tokens that it signs.

A hub token names a caller to an agent: it has `typ` JWT and the agent as audience, so the hub itself never takes one as
an access token. An agent's token is one: it has `typ` at+jwt and the hub as audience, and an agent that connected makes
its own calls with it. Storing the private key (sealed) is the caller's business.
"""

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, final

import msgspec

from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret

ALGORITHM: Final = "ES256"
LIFE_S: Final = 60
AGENT_LIFE_S: Final = 15 * 60
NAMES_CALLER: Final = "JWT"  # the kinds of tokens, as `typ` says them
ACCESS: Final = "at+jwt"  # RFC 9068
CLOCKS_APART_S: Final = 5  # by which the clocks of two machines may differ
MOST_BYTES: Final = 8192
PUBLIC_MEMBERS: Final = ("kty", "crv", "x", "y", "kid", "use", "alg")  # an allow list: "d" is the private number


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """An ES256 key pair: its id (the RFC 7638 thumbprint) and the private JWK as JSON text."""

    kid: str
    private_jwk: Secret


def new_signing_key() -> SigningKey:
    """Make a key pair on P-256."""
    # joserfc is imported where it is used, here and in the functions below: it doubles the hub's start-up time.
    from joserfc.jwk import ECKey

    key = ECKey.generate_key("P-256", private=True)
    kid = key.thumbprint()
    members = {**key.as_dict(private=True), "kid": kid, "use": "sig", "alg": ALGORITHM}
    return SigningKey(kid=kid, private_jwk=Secret(msgspec.json.encode(members).decode()))


def restore_signing_key(private_jwk: Secret) -> SigningKey:
    """The key pair again, from the private JWK that was stored."""
    return SigningKey(kid=_members(private_jwk)["kid"], private_jwk=private_jwk)


def public_jwks(keys: Iterable[SigningKey]) -> JsonObject:
    """The JSON Web Key Set that anyone may read."""
    pairs = [_members(key.private_jwk) for key in keys]
    return {"keys": [{name: pair[name] for name in PUBLIC_MEMBERS} for pair in pairs]}


def mint_hub_jwt(
    key: SigningKey,
    *,
    issuer: str,
    subject: str,
    audience: str,
    scope: str,
    chain: tuple[str, ...],
    now: datetime,
    life_s: int = LIFE_S,
    token_bytes: Callable[[int], bytes] = os.urandom,
) -> str:
    """A signed token saying that the hub `issuer` calls `audience` for `subject`, through the agents of `chain`."""
    claims: JsonObject = {"iss": issuer, "sub": subject, "aud": audience, "scope": scope}
    claims |= _times(now, life_s, token_bytes)
    if chain:
        claims["act"] = _acting(chain)
    return _signed(key, NAMES_CALLER, claims)


def mint_agent_jwt(
    key: SigningKey,
    *,
    issuer: str,
    agent_id: str,
    tenant: str,
    scopes: Iterable[str],
    key_id: str | None,
    allow: tuple[str, ...],
    now: datetime,
    token_bytes: Callable[[int], bytes] = os.urandom,
) -> str:
    """A signed token by which an agent is known at its hub, with no more rights than the key that it came with."""
    claims: JsonObject = {"iss": issuer, "sub": agent_id, "aud": issuer, "tenant": tenant}
    claims |= {"scope": " ".join(sorted(scopes)), **_times(now, AGENT_LIFE_S, token_bytes)}
    if key_id is not None:
        claims["key"] = key_id
    if allow:
        claims["allow"] = list(allow)
    return _signed(key, ACCESS, claims)


def verified_claims(
    token: str, *, jwks: JsonObject, issuer: str, audience: str, now: datetime, kind: str = ACCESS
) -> JsonObject | None:
    """What a token says, if it is one of that kind, from that issuer, for that audience, and in its time; else None."""
    if len(token) > MOST_BYTES or token.count(".") != 2:
        return None
    from joserfc import jwt
    from joserfc.errors import JoseError
    from joserfc.jwk import KeySet

    try:
        decoded = jwt.decode(token, KeySet.import_key_set({"keys": jwks["keys"]}), algorithms=[ALGORITHM])
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    claims: JsonObject = decoded.claims
    if decoded.header.get("typ") != kind or claims.get("iss") != issuer or claims.get("aud") != audience:
        return None
    issued, expires, at = claims.get("iat"), claims.get("exp"), now.timestamp()
    if not isinstance(issued, int) or not isinstance(expires, int):
        return None
    in_time = issued - CLOCKS_APART_S <= at < expires + (CLOCKS_APART_S if kind == NAMES_CALLER else 0)
    return claims if in_time and isinstance(claims.get("sub"), str) else None


@final
class HubTokens:
    """Hub tokens kept for half their life, so that a busy caller does not cost a signature per call.

    Bounded: at `most` tokens the oldest goes, and is simply signed again when it is asked for.
    """

    __slots__ = ("_issuer", "_kept", "_key", "_life_s", "_most", "_token_bytes")

    def __init__(
        self,
        key: SigningKey,
        *,
        issuer: str,
        life_s: int = LIFE_S,
        most: int = 10_000,
        token_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._key = key
        self._issuer = issuer
        self._life_s = life_s
        self._most = most
        self._token_bytes = token_bytes
        self._kept: dict[tuple[str, str, str, tuple[str, ...]], tuple[datetime, str]] = {}

    def token(self, *, subject: str, audience: str, scope: str, chain: tuple[str, ...], now: datetime) -> str:
        """A token with at least half its life left."""
        wanted = (subject, audience, scope, chain)
        # Wall time, as the receiver judges it; a clock that was set back makes the age negative: signed again.
        kept = self._kept.get(wanted)
        if kept is not None and 0 <= (now - kept[0]).total_seconds() < self._life_s / 2:
            return kept[1]
        made = mint_hub_jwt(
            self._key,
            issuer=self._issuer,
            subject=subject,
            audience=audience,
            scope=scope,
            chain=chain,
            now=now,
            life_s=self._life_s,
            token_bytes=self._token_bytes,
        )
        # Taken out first, so that it goes to the end: the dictionary stays in order of age.
        self._kept.pop(wanted, None)
        if len(self._kept) >= self._most:
            del self._kept[next(iter(self._kept))]
        self._kept[wanted] = (now, made)
        return made

    def use(self, key: SigningKey) -> None:
        """Sign with another key from now on."""
        self._key = key
        self._kept.clear()


def _times(now: datetime, life_s: int, token_bytes: Callable[[int], bytes]) -> JsonObject:
    issued = int(now.timestamp())
    return {"iat": issued, "exp": issued + life_s, "jti": token_bytes(16).hex()}


def _signed(key: SigningKey, kind: str, claims: JsonObject) -> str:
    from joserfc import jwt
    from joserfc.jwk import ECKey

    header = {"alg": ALGORITHM, "typ": kind, "kid": key.kid}
    pair = ECKey.import_key({**_members(key.private_jwk)})
    return jwt.encode(header, claims, pair, algorithms=[ALGORITHM])


def _members(private_jwk: Secret) -> dict[str, str]:
    return msgspec.json.decode(private_jwk.reveal(), type=dict[str, str])


def _acting(chain: tuple[str, ...]) -> JsonObject:
    # RFC 8693, 4.1: the actor outermost is the latest, each earlier one is nested inside it.
    acting: JsonObject = {}
    for agent in chain:
        acting = {"sub": agent, "act": acting} if acting else {"sub": agent}
    return acting
