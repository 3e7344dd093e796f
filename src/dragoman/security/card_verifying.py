"""Check a stranger's signature on a card with a given key.

The algorithm is the key's: one that a signature names is only compared with it. Nothing that a signature brings along
is ever used as a key. Where keys come from, and which of them count, is the hub's business.
"""

import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.security.card_signing import base64url

MOST_BYTES: Final = 8192
LEAST_RSA_BITS: Final = 2048

_TEXT: Final = re.compile(r"[A-Za-z0-9_-]*")
# Names of one algorithm: RFC 9864 has a new one for what others still call EdDSA.
_ALGORITHMS: Final = {"ES256": ("ES256",), "RS256": ("RS256",), "Ed25519": ("EdDSA", "Ed25519")}
_KINDS: Final[Mapping[tuple[str, Json], str]] = {
    ("EC", "P-256"): "ES256",
    ("RSA", None): "RS256",
    ("OKP", "Ed25519"): "Ed25519",
}
_PUBLIC: Final = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n"), "OKP": ("crv", "kty", "x")}
# A key that comes with what it signed proves nothing, and what is critical has to be understood: we know of nothing.
_REFUSED: Final = ("jwk", "x5u", "x5c", "crit", "b64")
_REFUSED_BESIDE: Final = ("jwk", "x5u", "crit", "b64", "alg")
_decode = msgspec.json.Decoder().decode


class SignatureRefused(Exception):
    """A signature that is not looked at any further; the message says why."""


class CardSignature(msgspec.Struct, frozen=True, kw_only=True):
    """One signature of a card, taken apart."""

    protected: str
    signature: bytes
    alg: str
    kid: str | None
    jku: str | None


def read_signature(given: Json) -> CardSignature:
    """A member of `signatures`. Raises SignatureRefused."""
    if not is_object(given):
        raise SignatureRefused("it is no object")
    protected, signature, beside = given.get("protected"), given.get("signature"), given.get("header")
    if not isinstance(protected, str) or not isinstance(signature, str) or len(protected) + len(signature) > MOST_BYTES:
        raise SignatureRefused("protected and signature: expected two short texts")
    try:
        header: Json = _decode(_bytes_of(protected))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        header = None
    if not is_object(header):
        raise SignatureRefused("its protected header is no JSON object")
    brought = [name for name in _REFUSED if name in header]
    brought += [name for name in _REFUSED_BESIDE if is_object(beside) and name in beside]
    if brought:
        raise SignatureRefused(f"its header has {', '.join(brought)}, which this hub takes from nobody")
    alg, kid, jku = header.get("alg"), header.get("kid"), header.get("jku")
    if not any(alg in names for names in _ALGORITHMS.values()):
        raise SignatureRefused(f"alg: {str(alg)[:40]!r} is not one of ES256, RS256, EdDSA")
    return CardSignature(
        protected=protected,
        signature=_bytes_of(signature),
        alg=str(alg),
        kid=kid if isinstance(kid, str) else None,
        jku=jku if isinstance(jku, str) else None,
    )


def public_key(jwk: JsonObject) -> JsonObject | None:
    """The members of a JWK that make it this very key, and no others; None for a kind that signs no card."""
    kind, curve = jwk.get("kty"), jwk.get("crv")
    if not isinstance(kind, str) or not isinstance(curve, str | None) or (kind, curve) not in _KINDS:
        return None
    if jwk.get("use") not in (None, "sig") or jwk.get("alg") not in (None, *_ALGORITHMS[_KINDS[kind, curve]]):
        return None
    members: JsonObject = {name: jwk.get(name) for name in _PUBLIC[kind]}
    return members if all(isinstance(value, str) and value for value in members.values()) else None


def verifies(signature: CardSignature, payload: bytes, key: JsonObject) -> bool:
    """Whether the signature is one of that key, in the key's own algorithm, over these bytes."""
    # Imported where it is used: it doubles a hub's start-up time.
    from joserfc.errors import JoseError
    from joserfc.jwk import ECKey, OKPKey, RSAKey
    from joserfc.jws import JWSRegistry

    algorithm = _KINDS.get((str(key.get("kty")), key.get("crv")))
    if algorithm is None or signature.alg not in _ALGORITHMS[algorithm]:
        return False
    members = {name: str(value) for name, value in key.items()}
    try:
        match algorithm:
            case "ES256":
                imported = ECKey.import_key({**members})
            case "RS256":
                imported = RSAKey.import_key({**members})
                if imported.public_key.key_size < LEAST_RSA_BITS:
                    return False
            case _:
                imported = OKPKey.import_key({**members})
        signed = f"{signature.protected}.{base64url(payload)}".encode()
        return JWSRegistry.algorithms[algorithm].verify(signed, signature.signature, imported)
    except (JoseError, ValueError, TypeError, KeyError):
        return False


def _bytes_of(text: str) -> bytes:
    if _TEXT.fullmatch(text) is None:
        raise SignatureRefused("it is not base64url")
    try:
        return urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        raise SignatureRefused("it is not base64url") from None
