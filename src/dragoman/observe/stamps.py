"""Times as the lines of the log say them: those of one second share all but their milliseconds."""

from datetime import UTC, datetime
from typing import Final, final

_MILLISECONDS: Final = tuple(f".{ms:03}Z" for ms in range(1000))


@final
class Stamps:
    """Says times, one after the other; to spell each anew is the dearest part of a line."""

    __slots__ = ("_first", "_last", "_second")

    def __init__(self) -> None:
        self._first = self._last = datetime.min.replace(tzinfo=UTC)
        self._second = self._first.isoformat(timespec="seconds")[:-6]

    def of(self, at: datetime) -> str:
        """`2026-01-12T10:00:00.000Z`, of a time in UTC."""
        if not self._first <= at <= self._last:
            self._first, self._last = at.replace(microsecond=0), at.replace(microsecond=999_999)
            self._second = at.isoformat(timespec="seconds")[:-6]
        return self._second + _MILLISECONDS[at.microsecond // 1000]
