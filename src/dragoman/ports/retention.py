"""What a store removes by itself when its time is over, and what it looks at in its own file.

Removing goes piece by piece, so that nobody who writes beside it waits long: each piece is one step of the writer,
tells how long it took, and where the next one begins.
"""

from datetime import datetime
from typing import Protocol

import msgspec


class Expired(msgspec.Struct, frozen=True, kw_only=True):
    """A piece: what it removed, how long the writer was busy with it, and where the next begins (None: that was all).

    `rows` counts everything, `calls` the calls among it.
    """

    rows: int
    took_s: float
    calls: int = 0
    next: int | None = None


class Inspected(msgspec.Struct, frozen=True, kw_only=True):
    """A look at the whole file: what is wrong with it, nothing where it is whole; `whole` is None where the look was
    broken off, for it would have held up what is written."""

    whole: bool | None
    wrong: tuple[str, ...] = ()
    took_s: float = 0.0


class Retention(Protocol):
    """What is removed when its time is over. What is open, or owed to somebody, never is."""

    async def expire_calls(self, before: datetime, after: int) -> Expired:
        """Remove calls that ended before that time, with all that belongs to them, from a number on (0 at first).

        The first call of a conversation stays while others of it do. The audit notes what was removed.
        """
        ...

    async def expire_audit(self, before: datetime) -> Expired:
        """Remove the oldest rows of the audit, as far as they are from before that time; what remains is a whole chain.

        Calls that are still there, and that only removed rows covered, are not vouched for any more.
        """
        ...

    async def expire_minutes(self, fold_before: datetime, drop_before: datetime, after: int) -> Expired:
        """Add statistics by the minute up to hours, where they are old enough, and drop those that are older still.

        `after`: the minute (since 1970) where the piece before ended, 0 at first.
        """
        ...

    async def expire_rest(self, now: datetime, mail_before: datetime | None) -> Expired:
        """Remove keys and marks that have expired, mail from before that time, and events that removed calls left."""
        ...


class Inspection(Protocol):
    """Looks at the file that holds everything."""

    def left_open(self) -> bool:
        """Whether the process that had it before ended without closing it."""
        ...

    async def inspect(self, *, quick: bool) -> Inspected:
        """Look at all of it, beside everything else; `quick`: without comparing indexes with what they index."""
        ...
