"""What the tenants take of the store: open calls and stored bytes, counted once and kept up with what commits write.

Open calls are counted at the start, by an index; bytes afterwards, piece by piece, so that a large file delays nothing.
Cards, keys and notices do not count: what grows is calls.
"""

import threading
from collections.abc import Mapping
from typing import Final, final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.audit import Noted
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.audit import Usage

AT_ONCE: Final = 2000  # rows that are looked at in one piece

_CALLS: Final = SQL["stored_calls"]
_EVENTS: Final = SQL["stored_events"]
_OPEN: Final = SQL["open_calls"]

_Event = tuple[int, int]  # its key, and how much it takes


class _Call(msgspec.Struct, frozen=True, array_like=True):
    tenant: str
    size: int
    number: int


@final
class TakenByTenants:
    """The figures by tenant; as many entries as there are tenants."""

    __slots__ = ("_bytes", "_counted", "_lock", "_open", "_upto")

    def __init__(self) -> None:
        self._bytes: dict[str, int] = {}
        self._open: dict[str, int] = {}
        self._lock = threading.Lock()  # The writer adds on its thread, pieces are counted on a reader's.
        self._counted = 0  # the number of the last call whose bytes were counted
        self._upto = 0

    def begin(self, connection: Connection, last_number: int) -> None:
        """Calls up to this number are there already: count which are open, and their bytes later."""
        self._open = dict(msgspec.convert(connection.execute(_OPEN).fetchall(), list[tuple[str, int]]))
        self._upto = last_number

    def add(self, noted: Noted) -> None:
        """What a commit took, or gave back."""
        if noted.stored or noted.open:
            with self._lock:
                _add(self._bytes, noted.stored)
                _add(self._open, noted.open)

    def counts(self, number: int) -> bool:
        """Whether the bytes of a call are in the figures: it came since the start, or was counted already."""
        return number <= self._counted or number > self._upto

    @property
    def whole(self) -> bool:
        """Whether the bytes of all that was there at the start are counted."""
        return self._counted >= self._upto

    def count(self, connection: Connection) -> None:
        """Count the bytes of the next piece of what was there at the start."""
        rows = connection.execute(_CALLS, (self._counted, AT_ONCE)).fetchall()
        calls = [each for each in msgspec.convert(rows, list[_Call]) if each.number <= self._upto]
        if not calls:
            self._counted = self._upto
            return
        sizes: dict[str, int] = {}
        tenants = {each.number: each.tenant for each in calls}
        for each in calls:
            sizes[each.tenant] = sizes.get(each.tenant, 0) + each.size
        after, end = calls[0].number << codec.SEQ_BITS, calls[-1].number << codec.SEQ_BITS | codec.MAX_SEQ
        while events := msgspec.convert(connection.execute(_EVENTS, (after, end, AT_ONCE)).fetchall(), list[_Event]):
            for key, size in events:
                tenant = tenants.get(key >> codec.SEQ_BITS)
                if tenant is not None:
                    sizes[tenant] += size
            after = events[-1][0]
        with self._lock:
            _add(self._bytes, sizes)
        self._counted = calls[-1].number

    def usage(self) -> Usage:
        """The figures now."""
        with self._lock:
            return Usage(
                open_calls={tenant: calls for tenant, calls in self._open.items() if calls},
                stored_bytes=dict(self._bytes),
            )


def _add(figures: dict[str, int], more: Mapping[str, int]) -> None:
    for tenant, size in more.items():
        figures[tenant] = max(0, figures.get(tenant, 0) + size)
