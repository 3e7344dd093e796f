"""The root key, the keys derived from it, and secrets sealed for the database.

    root key ── HKDF-SHA256 by purpose ── pepper | at-rest | file-urls | sessions | redaction
    sealed   =  version 1 | id of the root key 8 | nonce 12 | AES-256-GCM(plain) with its tag

A sealed value is bound to its table, column, row and tenant: copied elsewhere it does not open. Neither stores nor
caches anything sealed; that is the store's business.
"""

import base64
import binascii
import hmac
import os
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, final

import msgspec

from dragoman.security.private_files import SecretRefused, create_private, private_directory, read_private

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

ROOT_KEY_FILE: Final = "root.key"
ROOT_KEY_BYTES: Final = 32
FEWEST_DISTINCT_BYTES: Final = 12  # 32 random bytes have fewer with a chance below 2^-80
VERSION: Final = b"\x01"
KEY_ID_BYTES: Final = 8
NONCE_BYTES: Final = 12
HEAD_BYTES: Final = len(VERSION) + KEY_ID_BYTES


class Purpose(StrEnum):
    """What a derived key is for; one key never serves two purposes."""

    PEPPER = "pepper"
    AT_REST = "at-rest"
    FILE_URLS = "file-urls"
    SESSIONS = "sessions"
    REDACTION = "redaction"


class CannotOpen(Exception):
    """A sealed value was not sealed here: another root key, another row, or edited bytes."""


@final
class RootKey:
    """The 32 bytes all stored secrets depend on; its repr shows only which key it is."""

    __slots__ = ("_extracted", "id")

    def __init__(self, raw: bytes) -> None:
        if len(raw) != ROOT_KEY_BYTES:
            raise ValueError(f"a root key has {ROOT_KEY_BYTES} bytes, got {len(raw)}")
        # RFC 5869, 2.2 without salt: what is kept is the extracted key, every use of it is an expansion.
        self._extracted = hmac.digest(bytes(32), raw, "sha256")
        self.id: Final = self._expand("key-id")[:KEY_ID_BYTES]

    @classmethod
    def from_text(cls, text: str, *, source: str) -> Self:
        """Read 64 hex digits or 43 or 44 base64 characters; raises SecretRefused naming `source`."""
        raw = _decode(text.strip())
        advice = f"set {source} to 64 hex digits, such as openssl rand -hex 32 prints"
        if raw is None:
            raise SecretRefused(f"{source} does not hold {ROOT_KEY_BYTES} bytes in hex or base64", next=advice)
        if len(set(raw)) < FEWEST_DISTINCT_BYTES:
            raise SecretRefused(f"{source} holds a root key that is not random", next=advice)
        return cls(raw)

    def subkey(self, purpose: Purpose) -> bytes:
        """The 32-byte key of one purpose."""
        return self._expand(purpose.value)

    def _expand(self, label: str) -> bytes:
        # RFC 5869, 2.3: one block of SHA-256 is the 32 bytes wanted.
        return hmac.digest(self._extracted, b"dragoman/" + label.encode() + b"\x01", "sha256")

    def __repr__(self) -> str:
        return f"RootKey(id={self.id.hex()})"


def load_root_key(data: Path, token_bytes: Callable[[int], bytes] = os.urandom) -> RootKey:
    """The root key of a data directory, made on first use; raises SecretRefused if others could read it."""
    private_directory(data)
    path = data / ROOT_KEY_FILE
    text = read_private(path)
    if text is None:
        create_private(path, token_bytes(ROOT_KEY_BYTES).hex())
        # Read back: where two processes started at once, both must use the key that won.
        text = read_private(path) or ""
    return RootKey.from_text(text, source=str(path))


@final
class Sealer:
    """Seals with one root key, opens with that one and the older ones."""

    __slots__ = ("_ciphers", "_keys", "_root", "_token_bytes")

    def __init__(
        self, root: RootKey, *, older: Sequence[RootKey] = (), token_bytes: Callable[[int], bytes] = os.urandom
    ) -> None:
        self._root = root
        self._keys = {key.id: key for key in (*older, root)}
        self._ciphers: dict[bytes, AESGCM] = {}
        self._token_bytes = token_bytes

    def seal(self, plain: bytes, *, table: str, column: str, row: str, tenant: str) -> bytes:
        """Encrypt for exactly this place in the database."""
        head = VERSION + self._root.id
        nonce = self._token_bytes(NONCE_BYTES)
        return head + nonce + self._cipher(self._root).encrypt(nonce, plain, _bound(head, table, column, row, tenant))

    def open(self, sealed: bytes, *, table: str, column: str, row: str, tenant: str) -> bytes:
        """Decrypt what was sealed for this place; raises CannotOpen for anything else."""
        head, nonce, rest = (
            sealed[:HEAD_BYTES],
            sealed[HEAD_BYTES : HEAD_BYTES + NONCE_BYTES],
            sealed[HEAD_BYTES + 12 :],
        )
        root = self._keys.get(head[1:])
        if head[:1] != VERSION or len(nonce) != NONCE_BYTES:
            raise CannotOpen(f"{table}.{column}: not a sealed value")
        if root is None:
            raise CannotOpen(f"{table}.{column}: sealed with root key {head[1:].hex()}, which this hub does not have")
        plain = _decrypt(self._cipher(root), nonce, rest, _bound(head, table, column, row, tenant))
        if plain is None:
            raise CannotOpen(f"{table}.{column}: edited, or moved from another row")
        return plain

    def is_current(self, sealed: bytes) -> bool:
        """Whether the value is sealed with the newest root key; others are to be sealed anew."""
        return sealed[:HEAD_BYTES] == VERSION + self._root.id

    def _cipher(self, root: RootKey) -> "AESGCM":
        cipher = self._ciphers.get(root.id)
        if cipher is None:
            cipher = self._ciphers[root.id] = _new_cipher(root.subkey(Purpose.AT_REST))
        return cipher


def _decode(text: str) -> bytes | None:
    try:
        if len(text) == 2 * ROOT_KEY_BYTES:
            return bytes.fromhex(text) if text.isalnum() else None
        padded = text.replace("-", "+").replace("_", "/").rstrip("=") + "="
        raw = base64.b64decode(padded, validate=True)
    except (ValueError, binascii.Error):
        return None
    return raw if len(raw) == ROOT_KEY_BYTES else None


def _bound(head: bytes, *place: str) -> bytes:
    # JSON keeps the four apart: ("ab", "c") and ("a", "bc") must not be the same place.
    return head + msgspec.json.encode(place)


def _new_cipher(key: bytes) -> "AESGCM":
    # Imported here: cryptography costs start-up time and memory that a hub without stored secrets never needs.
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    return AESGCM(key)


def _decrypt(cipher: "AESGCM", nonce: bytes, data: bytes, bound: bytes) -> bytes | None:
    # Here, not on top, for the reason given at _new_cipher, which has imported it by now.
    from cryptography.exceptions import InvalidTag

    try:
        return cipher.decrypt(nonce, data, bound)
    except (InvalidTag, ValueError):  # ValueError: shorter than a tag
        return None
