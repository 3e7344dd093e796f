"""Times on the wire: RFC 3339 in UTC with milliseconds out, any offset (or none) in."""

from datetime import UTC, datetime
from typing import Final

from dragoman.model.http import EPOCH, Headers
from dragoman.model.json import Json

LONGEST_WAIT_S: Final = 3600
_FRACTIONS: Final = [f".{millisecond:03}Z" for millisecond in range(1000)]


class _Written:
    """Writes times; keeps the second it wrote last, in which most times of an answer lie: a third of the work."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        self._last = (EPOCH, "1970-01-01T00:00:00")  # one value, for two threads may write at once

    def __call__(self, at: datetime) -> str:
        """`2026-01-12T10:00:00.000Z`, of a time in UTC."""
        second, text = self._last
        past = at - second
        if past.seconds or past.days:
            second = at.replace(microsecond=0)
            text = f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}"
            self._last, past = (second, text), at - second
        return text + _FRACTIONS[past.microseconds // 1000]


wire_time: Final = _Written()


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
