"""Which request ids the file may hold: of nearly all that it does not, that is known without asking it.

Two Bloom filters. New ids go into one; the other has those of before, at first the file's own, and is replaced by the
first when the last of them has expired. Never wrong where it says that an id is new; too many ids only make it say so
less often. Nothing of it is stored: the next start reads the file's ids again.
"""

import asyncio
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar, final

import msgspec

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.once import REQUEST, Name
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.errors import Overloaded

T = TypeVar("T")

BITS: Final = 1 << 25  # 4 MiB; among a million ids one new one in 1,700 is looked for all the same
READ_AT_ONCE: Final = 500  # ids of the file; between them others have their turn
LOOKED_EVERY: Final = 100  # ids, whether those of before have expired

_MASK: Final = BITS - 1
_SHIFT: Final = 25  # the bits of a hash that are left for its second number
_LONG_AGO: Final = datetime(1, 1, 1, tzinfo=UTC)
_REQUEST_IDS: Final = SQL["request_ids"]

_Place = tuple[str, str, str]  # tenant, principal, id
_BEGIN: Final[_Place] = ("", "", "")


class Ask(Protocol):
    """How the file is read: `Readers.ask`."""

    def __call__(self, run: Callable[[Connection], T], /) -> asyncio.Future[T]:
        """What the function will return. Raises Overloaded."""
        ...


@final
class SeenIds:
    """The request ids of a day or two, as far as it takes to say which are new."""

    __slots__ = ("_added", "_ask", "_before", "_before_until", "_fresh", "_fresh_until", "_is_whole", "_now")

    def __init__(self, ask: Ask, now: Callable[[], int]) -> None:
        self._ask = ask
        self._now = now  # in microseconds, by which ids expire
        self._fresh = bytearray(BITS >> 3)
        self._fresh_until = _LONG_AGO  # when the last of them has expired
        self._before = bytearray(BITS >> 3)
        self._before_until = _LONG_AGO
        self._added = 0
        self._is_whole = False  # all that the file held at the start is in it

    def is_new(self, name: Name) -> bool:
        """Whether the file surely holds no such id that has not expired."""
        key = hash(name)
        return self._is_whole and not (_has(self._fresh, key) or _has(self._before, key))

    def add(self, name: Name, expires_at: datetime) -> None:
        """The file will hold this id."""
        _put(self._fresh, hash(name))
        if expires_at > self._fresh_until:
            self._fresh_until = expires_at
        self._added += 1
        if not self._added % LOOKED_EVERY and codec.to_micros(self._before_until) <= self._now():
            self._before, self._before_until = self._fresh, self._fresh_until
            self._fresh, self._fresh_until = bytearray(BITS >> 3), _LONG_AGO

    async def read(self) -> None:
        """Read the ids that the file holds: the first now, the rest later; until then none is known to be new."""
        now = self._now()
        self._go_on(now, await self._ask(lambda connection: self._taken(connection, now, _BEGIN)))

    def _go_on(self, now: int, after: _Place | None) -> None:
        if after is None:
            self._is_whole = True
            return

        def taken(looked: asyncio.Future[_Place | None]) -> None:
            if not looked.cancelled() and looked.exception() is None:  # Else ids go on being looked for.
                self._go_on(now, looked.result())

        with contextlib.suppress(Overloaded):
            self._ask(lambda connection: self._taken(connection, now, after)).add_done_callback(taken)

    def _taken(self, connection: Connection, now: int, after: _Place) -> _Place | None:
        """Take some ids of the file, on a reader's thread; the last of them if there may be more."""
        rows = connection.execute(_REQUEST_IDS, (*after, now, READ_AT_ONCE)).fetchall()
        found = msgspec.convert(rows, list[tuple[str, str, str, int]])
        for tenant, principal, key, _ in found:
            _put(self._before, hash((tenant, principal, REQUEST, key)))
        if found:
            self._before_until = max(self._before_until, codec.from_micros(max(expires for *_, expires in found)))
        return found[-1][:3] if len(found) == READ_AT_ONCE else None


def _has(bits: bytearray, key: int) -> bool:
    # Of a new id mostly the first bit is missing.
    at = key & _MASK
    if not bits[at >> 3] >> (at & 7) & 1:
        return False
    step = key >> _SHIFT
    two, three = key + step & _MASK, key + 2 * step & _MASK
    return bool(bits[two >> 3] >> (two & 7) & bits[three >> 3] >> (three & 7) & 1)


def _put(bits: bytearray, key: int) -> None:
    step = key >> _SHIFT
    for at in (key & _MASK, key + step & _MASK, key + 2 * step & _MASK):
        bits[at >> 3] |= 1 << (at & 7)
