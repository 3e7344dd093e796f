"""Mailboxes read live: whoever has opened one gets what waits there, then what comes, each until it says that it came.

Several may read one box at once: a message goes to one of them, and to the next if that one leaves before it says that
the message came. So every message arrives at least once, and twice only where its reader was lost on the way.

    box    1 2 3 4 5 6
    seen         ^            up to here everything is with some reader, or gone
    claimed  2   4            with a reader
"""

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager

import msgspec

from dragoman.hub.authorize import lacking
from dragoman.hub.registry import Registry
from dragoman.model.call import Caller
from dragoman.model.errors import NotAuthenticated
from dragoman.ports.bus import Bus, mail_topic
from dragoman.ports.store import Mailboxes
from dragoman.security.scopes import CALL, RECEIVE


class Letter(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message, and its number in the box."""

    number: int
    body: bytes


class _Shared:
    """What the readers of one box have to know of each other."""

    def __init__(self) -> None:
        self.readers = 0
        self.seen = 0
        self.claimed: set[int] = set()  # as many as the readers have at hand, and each bounds that


class OpenBox:
    """One reader's view of a box."""

    def __init__(self, tenant: str, name: str, shared: _Shared, *, store: Mailboxes, bus: Bus) -> None:
        self._tenant = tenant
        self._name = name
        self._shared = shared
        self._store = store
        self._bus = bus
        self._mine: set[int] = set()

    async def letters(self) -> AsyncGenerator[Letter]:
        """What waits, oldest first, then what comes; for ever."""
        async with self._bus.subscribe(mail_topic(self._tenant, self._name)) as said:
            # Every message, the first LOST included, means: look at the store now.
            async for _ in said:
                while (letter := await self._claim()) is not None:
                    yield letter

    async def arrived(self, numbers: Collection[int]) -> None:
        """These have arrived: they are gone for good."""
        await self._store.drop_mail(self._tenant, self._name, numbers)
        self._mine.difference_update(numbers)
        self._shared.claimed.difference_update(numbers)

    def release(self) -> None:
        """What did not arrive here is for others again, or for later."""
        if self._mine:
            self._shared.claimed -= self._mine
            self._shared.seen = min(self._shared.seen, min(self._mine) - 1)
            self._mine.clear()
            self._bus.publish(mail_topic(self._tenant, self._name), b"")

    async def _claim(self) -> Letter | None:
        shared = self._shared
        while True:
            seen = shared.seen
            found = await self._store.next_mail(self._tenant, self._name, seen)
            if shared.seen != seen:
                continue  # Another reader took it meanwhile, or gave something back.
            if found is None:
                return None
            number, body = found
            shared.seen = number
            if number not in shared.claimed:
                shared.claimed.add(number)
                self._mine.add(number)
                return Letter(number=number, body=body)


class Boxes:
    """Opens mailboxes for those who may read them."""

    def __init__(self, *, store: Mailboxes, bus: Bus, registry: Registry) -> None:
        self._store = store
        self._bus = bus
        self._registry = registry
        self._open: dict[tuple[str, str], _Shared] = {}

    async def name(self, caller: Caller, asked: str | None) -> str:
        """The box that is meant: the one asked for, else the caller's own.

        Raises NotAuthenticated, NotAuthorized, CapabilityMismatch.
        """
        if caller.anonymous:
            raise NotAuthenticated
        if caller.scopes.isdisjoint((CALL, RECEIVE)):
            raise lacking(caller, (RECEIVE,))
        return caller.name if asked is None else await self._registry.box(asked, caller)

    @asynccontextmanager
    async def open(self, tenant: str, name: str) -> AsyncGenerator[OpenBox]:
        """The box, within the block."""
        shared = self._open.setdefault((tenant, name), _Shared())
        shared.readers += 1
        box = OpenBox(tenant, name, shared, store=self._store, bus=self._bus)
        try:
            yield box
        finally:
            shared.readers -= 1
            if not shared.readers:
                del self._open[tenant, name]
            box.release()
