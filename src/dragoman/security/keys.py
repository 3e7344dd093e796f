"""API keys: how one is made, how a mistyped one is told without a database, and what is stored of it.

    ap_k7f2Qx0aZ91b_<43 characters, 256 bits><6 characters, CRC-32 of all before them>

Only a keyed digest is stored, so no slow password hash is needed: the secret has 256 bits. Looking a key up, its
scopes and its expiry are the hub's business.
"""

import hmac
import os
import re
import zlib
from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.model.secret import Secret

BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
KEYID_LENGTH: Final = 12
SECRET_LENGTH: Final = 43  # the fewest base62 characters that hold 256 bits
CHECK_LENGTH: Final = 6  # the fewest that hold 32 bits
# What an unknown keyid is compared with, so that it takes as long as a known one. No digest is all zero.
DUMMY_DIGEST: Final = bytes(32)

_SHAPE: Final = re.compile(rf"(ap_([0-9A-Za-z]{{{KEYID_LENGTH}}})_[0-9A-Za-z]{{{SECRET_LENGTH}}})([0-9A-Za-z]{{6}})")


class NewKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that was just made; `key` is shown once and never stored."""

    keyid: str
    key: Secret


def new_key(token_bytes: Callable[[int], bytes] = os.urandom) -> NewKey:
    """Make a key from 48 random bytes."""
    # 16 bytes for 71 bits: the remainder favours no keyid by more than 2^-56.
    keyid = base62(int.from_bytes(token_bytes(16)) % 62**KEYID_LENGTH, KEYID_LENGTH)
    head = f"ap_{keyid}_{base62(int.from_bytes(token_bytes(32)), SECRET_LENGTH)}"
    return NewKey(keyid=keyid, key=Secret(head + _check(head)))


def parse_key(text: str) -> str | None:
    """The keyid of a well-formed key whose check characters are right; None for anything else."""
    # ASCII first: the CRC below encodes, and a header may hold any character.
    found = _SHAPE.fullmatch(text) if text.isascii() else None
    if found is None or _check(found[1]) != found[3]:
        return None
    return found[2]


def digest(pepper: bytes, key: Secret) -> bytes:
    """What is stored of a key: HMAC-SHA256 of the whole of it under the pepper."""
    return hmac.digest(pepper, key.reveal().encode(), "sha256")


def matches(pepper: bytes, key: Secret, stored: bytes | None) -> bool:
    """Whether the key has this digest, in constant time; `stored` is None for an unknown keyid and costs the same."""
    same = hmac.compare_digest(digest(pepper, key), DUMMY_DIGEST if stored is None else stored)
    return same and stored is not None


def base62(value: int, length: int) -> str:
    """The number in exactly `length` base62 characters."""
    digits: list[str] = []
    for _ in range(length):
        value, digit = divmod(value, 62)
        digits.append(BASE62[digit])
    return "".join(reversed(digits))


def _check(head: str) -> str:
    return base62(zlib.crc32(head.encode()), CHECK_LENGTH)
