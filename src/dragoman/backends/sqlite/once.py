"""Keys seen lately, in memory: a repeat is joined to its task without asking the file.

Bounded; what falls out is still in the file. Never the only copy of a key that a crash must not lose.
"""

from collections import OrderedDict
from collections.abc import Callable
from datetime import datetime
from typing import Final, final

from dragoman.ports.store import Once

RECENT: Final = 10_000
REQUEST: Final = "request"  # the scope whose keys need not survive a crash

Name = tuple[str, str, str, str]


def name_of(tenant: str, once: Once) -> Name:
    """Under which name a key is unique."""
    return (tenant, once.principal, once.scope, once.key)


@final
class RecentKeys:
    """The last 10,000 keys and the tasks they name."""

    __slots__ = ("_known", "_now")

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        # Not a plain dict: to find its first entry again and again is slow once many before it were deleted.
        self._known: OrderedDict[Name, tuple[str, bytes, datetime]] = OrderedDict()

    def find(self, name: Name) -> tuple[str, bytes] | None:
        """The task and digest behind a key, if it is known here and has not expired."""
        found = self._known.get(name)
        return (found[0], found[1]) if found is not None and found[2] > self._now() else None

    def remember(self, name: Name, once: Once, task_id: str) -> None:
        """Know this key from now on; the oldest is forgotten for it."""
        known = self._known
        known[name] = (task_id, once.digest, once.expires_at)
        known.move_to_end(name)
        if len(known) > RECENT:
            known.popitem(last=False)

    def forget(self, name: Name, task_id: str) -> None:
        """The task was not opened after all: the key names it no more."""
        if name in self._known and self._known[name][0] == task_id:
            del self._known[name]
