"""Drain: the process was told to stop, and finishes what runs.

The application asks `draining` before it takes a new call; streams and workers await `begun`. What they then do is
theirs: this only says so, to all at once.
"""

import asyncio


class Drain:
    """Whether the process is stopping; one per process, handed to the application and to `serve`."""

    def __init__(self) -> None:
        self.draining = False  # from the first signal on it is
        self._begun = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def begin(self) -> None:
        """Start to stop; from any thread, and from a signal's handler. A second call changes nothing."""
        self.draining = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._begun.set)

    def bind(self) -> None:
        """Make `begun` known to the running loop; `serve` does it."""
        self._loop = asyncio.get_running_loop()
        if self.draining:
            self._begun.set()

    async def begun(self) -> None:
        """Wait until the process is told to stop."""
        await self._begun.wait()
