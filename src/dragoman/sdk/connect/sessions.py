"""The session that an agent's process has at its hub: at most one at a time, waited for while there is none."""

import asyncio
from typing import final


@final
class Session:
    """One session, until the hub says that it is over."""

    __slots__ = ("heartbeat_s", "id", "over", "received")

    def __init__(self, session_id: str, heartbeat_s: float) -> None:
        self.id = session_id
        self.heartbeat_s = heartbeat_s
        self.received = 0  # the number of the last frame
        self.over = asyncio.Event()


@final
class Sessions:
    """Which session is open now."""

    __slots__ = ("_open", "_opened")

    def __init__(self) -> None:
        self._open: Session | None = None
        self._opened = asyncio.Event()

    @property
    def open(self) -> Session | None:
        """The session that is open, if one is."""
        return self._open

    def begin(self, session: Session) -> None:
        """A session was opened."""
        self._open = session
        self._opened.set()

    def end(self, session: Session) -> None:
        """The hub does not know it any more; a second time changes nothing."""
        session.over.set()
        if self._open is session:
            self._open = None
            self._opened.clear()

    async def current(self) -> Session:
        """The session that is open; waits for one."""
        while self._open is None:
            await self._opened.wait()
        return self._open
