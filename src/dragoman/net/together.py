"""Requests of one turn of the loop leave together, at its end.

To wake a peer that sleeps takes longer than to write to one that is awake. Requests that leave one by one, each after
the work for the next, find their peers asleep each time; those that leave together wake them once. After a turn that
had one request alone, the next one does not wait: most likely it is alone, too.
"""

import asyncio
from typing import final


@final
class Together:
    """What is to be written when this turn of the loop is over."""

    __slots__ = ("_before", "_now", "_waiting")

    def __init__(self) -> None:
        """Start with nothing to write."""
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []
        self._now = 0  # how many requests this turn has had
        self._before = 0  # and the last one that had any

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write this at the end of the turn, unless the connection is closed by then; or now."""
        self._now += 1
        if self._now == 1 == self._before:
            transport.write(data)
        else:
            self._waiting.append((transport, data))
        if self._now == 1:
            asyncio.get_running_loop().call_soon(self._end)

    def _end(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._before, self._now = self._now, 0
        for transport, data in waiting:
            if not transport.is_closing():
                transport.write(data)
