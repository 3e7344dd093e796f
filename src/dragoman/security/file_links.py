"""Signed, expiring links to files that lie inside tasks: hosting one writes nothing, it is read from the task.

/files/{which file, base64url}?exp=<unix seconds>&sig=<HMAC over both, base64url>
"""

import binascii
import hmac
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Final, final

import msgspec

PATH: Final = "/files/"


class HostedFile(msgspec.Struct, frozen=True, array_like=True):
    """Where a file lies: in which task, in which message or artifact, as which part."""

    tenant: str
    task_id: str
    holder: str
    index: int


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(HostedFile).decode


@final
class FileLinks:
    """Makes and checks links."""

    def __init__(self, key: bytes, *, hub_url: str, keep_s: int) -> None:
        self._key = key
        self._hub_url = hub_url
        self.keep_s = keep_s

    def link(self, file: HostedFile, now: float) -> str:
        """The address under which anybody may fetch the file until it expires."""
        name = urlsafe_b64encode(_encode(file)).decode().rstrip("=")
        expires = int(now) + self.keep_s
        return f"{self._hub_url}{PATH}{name}?exp={expires}&sig={self._signature(name, expires)}"

    def signed(self, name: str, expires: str, signature: str, now: float) -> bool:
        """Whether a link is one of ours and has not expired."""
        if not expires.isascii() or not expires.isdigit() or len(expires) > 15 or int(expires) < now:
            return False
        return hmac.compare_digest(self._signature(name, int(expires)).encode(), signature.encode())

    def _signature(self, name: str, expires: int) -> str:
        mark = hmac.digest(self._key, f"{name}\n{expires}".encode(), "sha256")
        return urlsafe_b64encode(mark).decode().rstrip("=")


def file_of(name: str) -> HostedFile | None:
    """Which file a link names; None for anything else."""
    try:
        return _decode(urlsafe_b64decode(name.encode() + b"=" * (-len(name) % 4)))
    except (binascii.Error, ValueError, UnicodeError, msgspec.DecodeError, RecursionError):
        return None
