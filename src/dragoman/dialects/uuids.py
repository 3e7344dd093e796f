"""UUIDs for wires that demand them, derived and not drawn: the same words always give the same one."""

import re
from datetime import datetime
from hashlib import sha256
from typing import Final
from uuid import UUID

from dragoman.model.times import in_ms

UUID4: Final = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}")


def uuid_of(*words: str) -> str:
    """A UUID of version 4 in form, made from these words."""
    return str(UUID(bytes=sha256("\n".join(words).encode()).digest()[:16], version=4))


def uuid_at(at: datetime, digits: str) -> str:
    """A UUID in the form of version 7, which sorts by its time: the millisecond, then these 16 hexadecimal digits."""
    time = in_ms(at).to_bytes(6, "big").hex()
    return f"{time[:8]}-{time[8:]}-7{digits[:3]}-8{digits[3:6]}-{digits[6:]}00"


def is_uuid4(text: str) -> bool:
    """Whether a text is a UUID of version 4."""
    return UUID4.fullmatch(text) is not None
