"""The last so many minutes of calls, counted: a fixed number of slots, whatever happens in them."""

from typing import final

from dragoman.model.figures import Tally


@final
class Window:
    """The last so many minutes, counted so many at a time; what is older falls out."""

    __slots__ = ("_by", "_slots", "_span", "_whole", "_whole_at")

    def __init__(self, span: int, by: int) -> None:
        self._span = span // by
        self._by = by
        self._slots: dict[int, Tally] = {}
        self._whole: Tally | None = None  # added up already, as seen from one slot
        self._whole_at = 0

    def at(self, minute: int) -> Tally:
        """Where a minute is counted."""
        self._whole = None
        slot = minute // self._by
        tally = self._slots.get(slot)
        if tally is None:
            self._slots = {known: each for known, each in self._slots.items() if slot - self._span < known}
            tally = self._slots[slot] = Tally()
        return tally

    def total(self, minute: int) -> Tally:
        """All of it, as seen from a minute."""
        now = minute // self._by
        if self._whole is None or self._whole_at != now:
            self._whole, self._whole_at = Tally(), now
            for slot, tally in self._slots.items():
                if now - self._span < slot <= now:
                    self._whole.merge(tally)
        return self._whole

    def clear(self) -> None:
        """Begin anew."""
        self._slots.clear()
        self._whole = None
