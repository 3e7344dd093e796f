"""Cursors of listings: a position, as base64url of a small JSON object. Filters are applied anew on every page."""

import base64
import binascii
from typing import Final, TypeVar

import msgspec

from dragoman.model.errors import BadParams

T = TypeVar("T")

MAX_LENGTH: Final = 1024
_TO_URL: Final = str.maketrans("+/", "-_")


def to_cursor(position: msgspec.Struct) -> str:
    """A position as text."""
    return base64.urlsafe_b64encode(msgspec.json.encode(position)).decode().rstrip("=")


def from_cursor(cursor: str, kind: type[T]) -> T:
    """The position in a text, either alphabet, padded or not; raises BadParams for anything else."""
    text = cursor.strip().translate(_TO_URL).rstrip("=")
    try:
        if len(text) > MAX_LENGTH or not text.isascii():
            raise ValueError("not a cursor")
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(raw, type=kind)
    except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError) as error:
        raise BadParams("The cursor is malformed; begin again without one.", field="cursor") from error
