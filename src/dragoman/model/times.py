"""Times in words: RFC 3339 in UTC, with milliseconds, as every wire and every line of the log says them."""

from datetime import UTC, datetime
from typing import Final, final

_FRACTIONS: Final = tuple(f".{millisecond:03}Z" for millisecond in range(1000))


@final
class _Words:
    """Writes times; keeps the second it wrote last, in which most of the next lie: that saves two thirds."""

    __slots__ = ("_last",)

    def __init__(self) -> None:
        # One value, for two threads may write at once.
        self._last = (datetime(1970, 1, 1, tzinfo=UTC), "1970-01-01T00:00:00")

    def __call__(self, at: datetime) -> str:
        """`2026-01-12T10:00:00.000Z`, of a time in UTC."""
        second, text = self._last
        past = at - second
        if past.seconds or past.days:
            second = at.replace(microsecond=0)
            text = f"{at.year:04}-{at.month:02}-{at.day:02}T{at.hour:02}:{at.minute:02}:{at.second:02}"
            self._last, past = (second, text), at - second
        return text + _FRACTIONS[past.microseconds // 1000]


in_words: Final = _Words()
