"""Signatures of senders on whole envelopes: Ed25519 over the canonical JSON (RFC 8785) of all but the signature itself.

The key is a JWK in `keys` of the card that the sender registered. What is signed is the envelope as its sender wrote
it, so whoever has the key can check it. Needs the `hub` extra, for cryptography and rfc8785.
"""

import base64
import binascii
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.secret import Secret

CURVE: Final = "Ed25519"
MEMBER: Final = "signature"
SIGNATURE_BYTES: Final = 64
KEY_BYTES: Final = 32


def new_sender_key(kid: str) -> tuple[Secret, JsonObject]:
    """A key pair: the private JWK to keep, the public one for `keys` of the agent's card."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    public = {"kty": "OKP", "crv": CURVE, "x": _text(key.public_key().public_bytes_raw()), "kid": kid, "use": "sig"}
    private = msgspec.json.encode({**public, "d": _text(key.private_bytes_raw())}).decode()
    return Secret(private), public


def sign_envelope(envelope: JsonObject, private_jwk: Secret) -> JsonObject:
    """The envelope with its signature. Raises ValueError for a number beyond 2^53, and for what is no such key."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    jwk: JsonObject = msgspec.json.decode(private_jwk.reveal())
    key = Ed25519PrivateKey.from_private_bytes(_bytes(str(jwk.get("d", ""))))
    signature = key.sign(_canonical(envelope))
    return {**envelope, MEMBER: base64.b64encode(signature).decode()}


def sender_keys(keys: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Of published keys those that sign envelopes."""
    return tuple(jwk for jwk in keys if jwk.get("crv") == CURVE and jwk.get("use") in (None, "sig"))


def verify_envelope(body: bytes, signature: str, keys: Sequence[JsonObject]) -> bool:
    """Whether the signature is that of this envelope under one of these public keys."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        given = base64.b64decode(signature, validate=True)
        envelope: Json = msgspec.json.decode(body)
        if len(given) != SIGNATURE_BYTES or not is_object(envelope):
            return False
        signed = _canonical(envelope)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return False
    for jwk in keys:
        try:
            Ed25519PublicKey.from_public_bytes(_bytes(str(jwk.get("x", "")))).verify(given, signed)
        except (InvalidSignature, ValueError):
            continue
        return True
    return False


def _canonical(envelope: JsonObject) -> bytes:
    """What is signed. Raises ValueError where it has no canonical form."""
    import rfc8785

    # Its errors are ValueErrors: a whole number beyond 2^53, a number that is none.
    return rfc8785.dumps({name: value for name, value in envelope.items() if name != MEMBER})


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ValueError("no Ed25519 key")
    return raw
