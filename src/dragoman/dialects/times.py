"""Times on the wire: RFC 3339 in UTC with milliseconds out, any offset (or none) in."""

from datetime import UTC, datetime
from typing import Final

from dragoman.model.http import Headers
from dragoman.model.json import Json

LONGEST_WAIT_S: Final = 3600


def wire_time(at: datetime) -> str:
    """`2026-01-12T10:00:00.000Z`, of a time in UTC."""
    values = (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond // 1000)
    # Three times in every answer: 0.8 µs each, 1.2 by `isoformat` or by format specifiers.
    return "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ" % values  # noqa: UP031


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
