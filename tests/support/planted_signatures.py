"""Hubs with a fault in how they take signed requests."""

from collections.abc import Sequence

from dragoman.backends.sqlite.store import SqliteStore
from dragoman.ports.store import Mark
from tests.support.planting import put_in_place


def seen_in_memory_only(_: int) -> None:
    """Which signatures were seen is kept in memory, and forgotten with the process."""
    known: set[tuple[str, str, bytes]] = set()

    async def see(_store: SqliteStore, marks: Sequence[Mark]) -> bool:
        names = {(mark.tenant, mark.caller, mark.digest) for mark in marks}
        fresh = known.isdisjoint(names)
        known.update(names)
        return fresh

    put_in_place(SqliteStore, "see", see)
