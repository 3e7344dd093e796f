"""How an agent's process talks to the hub it connects to: what a link can do, and what may come of it.

Over HTTP it is `http_link.py`; an agent that is served together with a hub of its own has one in memory. The objects
are those of the wire, decoded. A link repeats nothing by itself: whoever holds it does (`session.py`, `sending.py`).
"""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

import msgspec

from dragoman.model.json import JsonObject


class Frame(msgspec.Struct, frozen=True):
    """One thing that the hub says: its number in the session (0 for what has none), its name, and what it says."""

    id: int
    event: str
    data: JsonObject


class SessionOver(Exception):
    """The hub does not know the session, or no longer."""


class Gap(Exception):
    """The hub has not all that came before; it expects the event of that number."""

    def __init__(self, expected: int) -> None:
        super().__init__(f"event {expected} is expected")
        self.expected = expected


class Stale(Exception):
    """The call is over, or goes on under a later attempt."""


class Link(Protocol):
    """A way to one hub. Whatever needs an answer may raise HubUnreachable, or the error that the hub answered."""

    async def open(self, hello: JsonObject) -> JsonObject:
        """Open a session or, where `hello` names one, renew it. Raises SessionOver."""
        ...

    def frames(self, session_id: str, after: int) -> AsyncGenerator[Frame]:
        """What the hub says after that number; ends when the connection is lost. Raises SessionOver."""
        ...

    async def tell(self, session_id: str, call_id: str, attempt: int, events: Sequence[JsonObject]) -> int:
        """Tell events of a call; the number up to which all are committed. Raises Gap, Stale, SessionOver."""
        ...

    async def leave(self, session_id: str) -> None:
        """End the session; calls that were not started go to others."""
        ...

    async def close(self) -> None:
        """Let go of what the link holds."""
        ...
