"""Keys, sealed values and mail in the store: what belongs to callers."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Final

from dragoman.backends.sqlite import keys, mail, signatures
from dragoman.backends.sqlite.shelf import Shelf
from dragoman.model.agent import RateLimits
from dragoman.model.budget import Budget
from dragoman.ports.audit import Act
from dragoman.ports.bus import KEY_REVOKED, Bus, mail_topic
from dragoman.ports.clock import Clock
from dragoman.ports.store import Mark, StoredKey

USE_NOTED_S: Final = 60.0
USES_KNOWN: Final = 10_000


class KeyShelf(Shelf):
    """Keys and sealed values, signatures that were seen, mailboxes."""

    def __init__(self, *, clock: Clock, bus: Bus) -> None:
        super().__init__(clock=clock, bus=bus)
        self._uses: dict[str, datetime] = {}

    async def add_key(self, key: StoredKey, act: Act | None = None) -> None:
        """Keep a new key."""
        self._file.space.refuse_new()
        await self._file.write(lambda connection: keys.add_key(connection, key), lambda _: act)

    async def find_key(self, key_id: str) -> StoredKey | None:
        """One key, revoked and expired ones included."""
        return await self._file.read(lambda connection: keys.find_key(connection, key_id))

    async def list_keys(self, tenant: str | None) -> Sequence[StoredKey]:
        """A tenant's keys, or all, newest first."""
        return await self._file.read(lambda connection: keys.list_keys(connection, tenant))

    async def revoke_key(self, key_id: str, at: datetime, act: Act | None = None) -> bool:
        """End a key from that time on; False if there is none."""
        known = await self._file.write(
            lambda connection: keys.revoke_key(connection, key_id, at), lambda known: act if known else None
        )
        if known:
            self._bus.publish(KEY_REVOKED, key_id.encode())
        return known

    async def change_key(
        self, key_id: str, limits: RateLimits | None, budget: Budget | None, act: Act | None = None
    ) -> bool:
        """Set how often a key may call and what it may spend; False if there is none."""
        known = await self._file.write(
            lambda connection: keys.change_key(connection, key_id, limits, budget), lambda known: act if known else None
        )
        if known:
            self._bus.publish(KEY_REVOKED, key_id.encode())  # What is remembered of it holds no longer.
        return known

    async def key_used(self, key_id: str, at: datetime) -> None:
        """Note that a key was used; at most once a minute each."""
        last = self._uses.get(key_id)
        if last is not None and (at - last).total_seconds() < USE_NOTED_S:
            return
        if len(self._uses) >= USES_KNOWN:
            self._uses.clear()
        self._uses[key_id] = at
        await self._file.write(lambda connection: keys.key_used(connection, key_id, at))

    async def put_sealed(self, name: str, sealed: bytes) -> None:
        """Keep a sealed value, replacing what was there."""
        await self._file.write(lambda connection: keys.put_sealed(connection, name, sealed))

    async def get_sealed(self, name: str) -> bytes | None:
        """A sealed value, if there is one."""
        return await self._file.read(lambda connection: keys.get_sealed(connection, name))

    async def see(self, marks: Sequence[Mark]) -> bool:
        """Whether none of these marks was seen before; when that is told, all of them are on disk."""
        now = self._now()
        return await self._file.write(lambda connection: signatures.see(connection, marks, now))

    async def put_mail(self, tenant: str, box: str, body: bytes) -> None:
        """Keep a message until it has been fetched."""
        now = self._now()
        await self._file.write(lambda connection: mail.put(connection, tenant, box, body, now))
        self._bus.publish(mail_topic(tenant, box), b"")

    async def read_mail(self, tenant: str, box: str, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """What waits in a box, numbered, oldest first; what came up to `after` has arrived and goes."""
        if after > 0:
            await self._file.write(lambda connection: mail.drop(connection, tenant, box, after))
        return await self._file.read(lambda connection: mail.waiting(connection, tenant, box, limit))

    async def next_mail(self, tenant: str, box: str, after: int) -> tuple[int, bytes] | None:
        """The oldest message of a box beyond a number, with its own."""
        return await self._file.read(lambda connection: mail.beyond(connection, tenant, box, after))

    async def drop_mail(self, tenant: str, box: str, numbers: Collection[int]) -> None:
        """These have arrived and go."""
        await self._file.write(lambda connection: mail.drop_these(connection, tenant, box, numbers))
