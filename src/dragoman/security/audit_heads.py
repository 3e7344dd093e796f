"""Heads of the audit with the hub's signature: that the chain went so far at a time, whoever cuts it off later."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman.model.json import JsonObject
from dragoman.ports.audit import Broken, Head, SignedHead
from dragoman.security.jwt_verify import present, published_keys
from dragoman.security.tokens import ALGORITHM, SigningKey

KIND: Final = "audit-head+jwt"


class HeadClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a signed head says: which hub, when, and how far the chain went."""

    iss: str
    iat: int
    n: int
    hash: str


def sign_head(key: SigningKey, head: Head, *, issuer: str, now: datetime) -> SignedHead:
    """The head with the hub's signature."""
    # Imported at its first use: it doubles the hub's start-up time.
    from joserfc import jws
    from joserfc.jwk import ECKey

    claims = HeadClaims(iss=issuer, iat=int(now.timestamp()), n=head.n, hash=head.hash)
    private: JsonObject = msgspec.json.decode(key.private_jwk.reveal())
    header = {"alg": ALGORITHM, "typ": KIND, "kid": key.kid}
    token = jws.serialize_compact(header, msgspec.json.encode(claims), ECKey.import_key({**private}), [ALGORITHM])
    return SignedHead(n=head.n, token=token)


def signed_up_to(
    heads: Sequence[tuple[SignedHead, str | None]], jwks: JsonObject
) -> tuple[HeadClaims | None, Broken | None]:
    """The newest head that a known key signed, and what is wrong with the chain by it; heads come newest first.

    Heads of keys that are no longer known say nothing.
    """
    keys = published_keys(jwks)
    for head, hash_ in heads:
        shown = present(head.token)
        key = None if shown is None else keys.get(shown.kid)
        if shown is None:
            return None, Broken(row=head.n, call_id=None, reason="the signed head of this row cannot be read")
        if key is None:
            continue
        try:
            claims = msgspec.convert(shown.claims, HeadClaims)
        except msgspec.ValidationError:
            claims = None
        if claims is None or shown.kind != KIND or claims.n != head.n or not key.signed(head.token):
            return None, Broken(row=head.n, call_id=None, reason="the signature of this row's head is wrong")
        if hash_ is None:
            return claims, Broken(row=head.n, call_id=None, reason="the row was signed, and is missing")
        if hash_ != claims.hash:
            return claims, Broken(row=head.n, call_id=None, reason="the row was signed with another hash")
        return claims, None
    return None, None
