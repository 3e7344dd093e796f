"""The hub's signing key, its public half for the JWKS, and the short-lived tokens that it signs.

A hub token names a caller to an agent: it has `typ` JWT and the agent as audience, so the hub itself never takes one as
an access token. An access token has `typ` at+jwt and the hub as audience: clients get one for their key, agents that
connected make their own calls with one. Which key signs when, and storing it (sealed), is the hub's business; how
tokens are checked is in `jwt_verify.py`.
"""

import os
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Final, final

import msgspec

from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.security.jwt_verify import ACCESS

ALGORITHM: Final = "ES256"
LIFE_S: Final = 60
ACCESS_LIFE_S: Final = 15 * 60
NAMES_CALLER: Final = "JWT"  # the `typ` of a token that names a caller
PUBLIC_MEMBERS: Final = ("kty", "crv", "x", "y", "kid", "use", "alg")  # an allow list: "d" is the private number


class SigningKey(msgspec.Struct, frozen=True, kw_only=True):
    """An ES256 key pair: its id (the RFC 7638 thumbprint) and the private JWK as JSON text."""

    kid: str
    private_jwk: Secret


Signing = Callable[[datetime], SigningKey]  # the key that signs at a time


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What an access token says: who, in which tenant, with which scopes, by which key, until when."""

    sub: str
    tid: str
    scope: str
    exp: float
    client_id: str | None = None  # the key that it was got with, and dies with
    agent_id: str | None = None  # the agent that it speaks for


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


def mint_access_jwt(
    key: SigningKey,
    *,
    issuer: str,
    subject: str,
    tenant: str,
    scopes: Iterable[str],
    now: datetime,
    client_id: str | None = None,
    agent_id: str | None = None,
    life_s: int = ACCESS_LIFE_S,
    token_bytes: Callable[[int], bytes] = os.urandom,
) -> str:
    """A signed token by which `subject` is known at the hub that issued it, in place of the key `client_id`."""
    claims: JsonObject = {"iss": issuer, "sub": subject, "aud": issuer, "tid": tenant}
    claims |= {"scope": " ".join(sorted(scopes)), **_times(now, life_s, token_bytes)}
    if client_id is not None:
        claims["client_id"] = client_id
    if agent_id is not None:
        claims["agent_id"] = agent_id
    return _signed(key, ACCESS, claims)


@final
class HubTokens:
    """Hub tokens kept for half their life, so that a busy caller does not cost a signature per call.

    Bounded: at `most` tokens the oldest goes, and is simply signed again when it is asked for.
    """

    __slots__ = ("_issuer", "_kept", "_life_s", "_most", "_signing", "_token_bytes")

    def __init__(
        self,
        signing: Signing,
        *,
        issuer: str,
        life_s: int = LIFE_S,
        most: int = 10_000,
        token_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._signing = signing
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
            self._signing(now),
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

    def forget(self) -> None:
        """Sign every token anew: the key that signed them must not be trusted any more."""
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
