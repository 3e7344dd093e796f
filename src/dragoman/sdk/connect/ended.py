"""The calls that ended in this process, and what they said last: one that is offered again is answered, not run again.

Bounded by how many and by their bytes; the oldest are forgotten first, and would be run again.
"""

from typing import Final, final

from dragoman.sdk.connect.unacked import Unacked

CALLS: Final = 10_000
BYTES: Final = 64 * 1024 * 1024
_ENTRY_BYTES: Final = 512


@final
class EndedCalls:
    """The last calls that ended, by their ids."""

    __slots__ = ("_bytes", "_calls", "_most", "_most_bytes")

    def __init__(self, most: int = CALLS, most_bytes: int = BYTES) -> None:
        self._calls: dict[str, tuple[Unacked, int]] = {}
        self._bytes = 0
        self._most = most
        self._most_bytes = most_bytes

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call_id: str, said: Unacked) -> None:
        """Remember what a call said last."""
        self.take(call_id)
        size = said.last_size + said.size + _ENTRY_BYTES
        self._calls[call_id] = (said, size)
        self._bytes += size
        while len(self._calls) > self._most or self._bytes > self._most_bytes:
            self.take(next(iter(self._calls)))

    def find(self, call_id: str) -> Unacked | None:
        """What a call said last, if it ended here."""
        entry = self._calls.get(call_id)
        return None if entry is None else entry[0]

    def take(self, call_id: str) -> Unacked | None:
        """The same, and forget it."""
        entry = self._calls.pop(call_id, None)
        if entry is None:
            return None
        self._bytes -= entry[1]
        return entry[0]
