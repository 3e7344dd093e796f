"""Times on the wire: RFC 3339 in UTC with milliseconds out, any offset (or none) in."""

from datetime import UTC, datetime
from typing import Final

from dragoman.model.http import Headers
from dragoman.model.json import Json
from dragoman.model.times import in_words

LONGEST_WAIT_S: Final = 3600
wire_time: Final = in_words


def read_time(value: Json, missing: datetime) -> datetime:
    """A time as an agent wrote it: without a zone it is UTC, unreadable or absent it is `missing`."""
    if not isinstance(value, str):
        return missing
    try:
        at = datetime.fromisoformat(value)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):  # no such time, or one that UTC has no year for
        return missing


def retry_after_s(headers: Headers) -> int | None:
    """How long an agent asks to be left alone, where it says so in whole seconds; an hour at most."""
    after = headers.get(b"retry-after", b"")
    return min(int(after), LONGEST_WAIT_S) if after.isdigit() and len(after) < 6 else None


def between_ms(start: datetime, end: datetime) -> int:
    """Whole milliseconds from one time to another."""
    return max(0, round((end - start).total_seconds() * 1000))
