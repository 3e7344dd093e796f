"""Requests of one turn of the loop leave together, at its end.

To wake a peer that sleeps takes longer than to write to one that is awake. Requests that leave one by one, each after
the work for the next, find their peers asleep each time; those that leave together wake them once.
"""

import asyncio
from typing import final


@final
class Together:
    """What is to be written when this turn of the loop is over."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        """Start with nothing to write."""
        self._waiting: list[tuple[asyncio.Transport, bytes]] = []

    def write(self, transport: asyncio.Transport, data: bytes) -> None:
        """Write this at the end of the turn, unless the connection is closed by then."""
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self._flush)
        self._waiting.append((transport, data))

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for transport, data in waiting:
            if not transport.is_closing():
                transport.write(data)
