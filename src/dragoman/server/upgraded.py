"""A connection that was upgraded from HTTP: another protocol speaks on it, but it keeps its seat and its deadlines.

Deliberately not here: anything that is said on it.
"""

import asyncio
import socket
import struct
from math import inf
from typing import Final

from dragoman.server.watch import Watch

RESET: Final = struct.pack("ii", 1, 0)  # linger on, for no time


def cut_off(transport: asyncio.Transport) -> None:
    """Hang up on one who takes nothing; what it did not take is thrown away."""
    # Without this the kernel keeps what the reader did not take, and goes on offering it.
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    transport.abort()


class Upgraded:
    """Watches a transport in the name of the protocol that has it now."""

    def __init__(self, transport: asyncio.Transport, watch: Watch, seat: str | None) -> None:
        self._transport = transport
        self._watch = watch
        self._seat = seat
        self._protocol: Final = transport.get_protocol()
        self.write_deadline = inf
        self.stream_deadline = inf
        self.read_deadline = watch.now + watch.limits.reader_s
        self._hear_of_everything()
        watch.add(self)

    def overdue(self, now: float) -> None:
        """Cut off a reader that takes nothing, and one that does not take the last of what was said."""
        if self.write_deadline <= now or self._transport.is_closing():
            cut_off(self._transport)
        else:
            self.read_deadline = now + self._watch.limits.reader_s

    def _hear_of_everything(self) -> None:
        protocol, watch = self._protocol, self._watch
        lost, paused, resumed = protocol.connection_lost, protocol.pause_writing, protocol.resume_writing

        def connection_lost(exc: Exception | None) -> None:
            watch.discard(self)
            if self._seat is not None:
                watch.release(self._seat)
            lost(exc)

        def pause_writing() -> None:
            self.write_deadline = watch.now + watch.limits.reader_s
            paused()

        def resume_writing() -> None:
            self.write_deadline = inf
            resumed()

        protocol.connection_lost = connection_lost
        protocol.pause_writing = pause_writing
        protocol.resume_writing = resume_writing
