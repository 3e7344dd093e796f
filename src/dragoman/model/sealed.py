"""Encrypted payloads, as far as they can be seen without a key: one compact JWE, and what its header says.

The header names the key that opens it, and binds it to one message: `apu` is who sent it, `apv` to whom and under which
message id. Both enter the derivation of the key, so a ciphertext that was moved to another message opens nowhere.
"""

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from typing import Final

import msgspec

from dragoman.model.content import Data, Part
from dragoman.model.json import Json, JsonObject, is_object

MEDIA_TYPE: Final = "application/jose"
MEMBER: Final = "jwe"  # of a payload: where the ciphertext stands
ALGORITHMS: Final = ("ECDH-ES", "ECDH-ES+A256KW")
ENCRYPTION: Final = "A256GCM"
CURVES: Final = ("X25519", "P-256")

# In the metadata of a sealed part: the message that it is bound to, and what stood beside the ciphertext.
SENDER: Final = "from"
RECEIVER: Final = "to"
MESSAGE_ID: Final = "message_id"
CLEAR: Final = "clear"


class SealHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The protected header of a JWE."""

    alg: str
    enc: str
    kid: str
    apu: str
    apv: str
    zip: Json = None
    crit: Json = None


_decode_header = msgspec.json.Decoder(SealHeader).decode


def header_of(compact: str) -> SealHeader | None:
    """The header of a compact JWE; None for anything else."""
    pieces = compact.split(".")
    if len(pieces) != 5 or not compact.isascii():
        return None
    try:
        return _decode_header(urlsafe_b64decode(pieces[0] + "=" * (-len(pieces[0]) % 4)))
    except (msgspec.DecodeError, binascii.Error, UnicodeDecodeError, RecursionError):
        return None


def header_problem(header: SealHeader, *, sender: str, to: str, message_id: str) -> str | None:
    """What is wrong with a header for that message; None if nothing is."""
    if header.alg not in ALGORITHMS:
        return f"expected alg {' or '.join(ALGORITHMS)}"
    if header.enc != ENCRYPTION:
        return f"expected enc {ENCRYPTION}"
    if header.zip is not None or header.crit is not None:
        return "expected neither zip nor crit"
    if header.apu != bound(sender) or header.apv != bound(f"{to}.{message_id}"):
        return "encrypted for another message: apu is from, apv is to and message_id, joined by a dot"
    return None


def bound(text: str) -> str:
    """A text as `apu` and `apv` hold it."""
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def sealing_keys(keys: Iterable[JsonObject]) -> dict[str, JsonObject]:
    """Of published keys those that messages may be encrypted with, by their ids."""
    return {
        jwk["kid"]: jwk
        for jwk in keys
        if jwk.get("crv") in CURVES and jwk.get("use") in (None, "enc") and isinstance(jwk.get("kid"), str)
    }


def sealed_part(parts: tuple[Part, ...]) -> Data | None:
    """The one part of an encrypted message; None where it is not encrypted."""
    if len(parts) == 1 and isinstance(parts[0], Data) and parts[0].media_type == MEDIA_TYPE:
        value: Json = parts[0].value
        if is_object(value) and isinstance(value.get(MEMBER), str):
            return parts[0]
    return None
