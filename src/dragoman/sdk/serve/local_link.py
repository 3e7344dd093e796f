"""The link in memory: an agent that is served together with a hub of its own talks to the hub's desk itself.

The same words as over HTTP, and the same promises: what is acknowledged is on disk. What is said is encoded and decoded
as on the wire, so that neither side ever holds an object of the other's.
"""

from collections.abc import AsyncGenerator, Sequence
from typing import final

import msgspec

from dragoman.model import errors
from dragoman.model.call import Caller
from dragoman.model.json import JsonObject
from dragoman.sdk.connect.links import Frame, Gap, SessionOver, Stale
from dragoman.server.desk import Desk

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JsonObject).decode


@final
class LocalLink:
    """A hub in the same process; `caller` is who the agent is to it."""

    def __init__(self, desk: Desk, caller: Caller) -> None:
        self._desk = desk
        self._caller = caller

    async def open(self, hello: JsonObject) -> JsonObject:
        """Open a session or renew it."""
        try:
            return await self._desk.open(self._caller, _decode(_encode(hello)))
        except errors.SessionOver:
            raise SessionOver from None

    async def frames(self, session_id: str, after: int) -> AsyncGenerator[Frame]:
        """What the hub says, until it stops or the session is over."""
        try:
            reader = self._desk.frames(self._caller, session_id, after)
        except errors.SessionOver:
            raise SessionOver from None
        try:
            async for batch in reader:
                for frame in batch:
                    yield Frame(frame.id, frame.event, frame.data)
        finally:
            reader.close()

    async def tell(self, session_id: str, call_id: str, attempt: int, events: Sequence[JsonObject]) -> int:
        """Tell events of a call."""
        body = _decode(_encode({"session_id": session_id, "attempt": attempt, "events": events}))
        try:
            return await self._desk.told(self._caller, call_id, body)
        except errors.SessionOver:
            raise SessionOver from None
        except errors.StaleAttempt:
            raise Stale from None
        except errors.EventGap as gap:
            raise Gap(gap.details["expected"]) from None

    async def leave(self, session_id: str) -> None:
        """End the session."""
        self._desk.leave(self._caller, session_id)

    async def close(self) -> None:
        """There is nothing to let go of."""
