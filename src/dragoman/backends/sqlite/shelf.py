"""What every part of the store has: the file, the bus, the clock."""

from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.file import StoreFile
from dragoman.ports.bus import AGENTS_CHANGED, Bus
from dragoman.ports.clock import Clock


class Shelf:
    """A part of the store: its questions go to readers, its commands to the writer, each whole or not at all."""

    _file: StoreFile  # open from the store's start on

    def __init__(self, *, clock: Clock, bus: Bus) -> None:
        self._clock = clock
        self._bus = bus

    def _now(self) -> int:
        return codec.to_micros(self._clock.now())

    def _tell_agent(self, tenant: str, agent_id: str) -> None:
        self._bus.publish(AGENTS_CHANGED, f"{tenant}\n{agent_id}".encode())
