"""All open connections, swept by one timer: each that is past its deadline is told so.

A deadline is a number on the connection, taken from `now`, which the sweep refreshes: setting one costs an addition,
and no request ever has a timer of its own. The price is an error of one sweep. With no connection there is no timer.
"""

from collections import Counter
from collections.abc import Collection
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Protocol

from dragoman.ports.clock import Clock, Timer
from dragoman.server.limits import Limits

Network = IPv4Network | IPv6Network

IPV6_SITE: Final = 64  # one customer's prefix: whoever has one address of it has them all


class Watched(Protocol):
    """A connection with deadlines; `inf` where nothing is due."""

    read_deadline: float
    write_deadline: float
    stream_deadline: float

    def overdue(self, now: float) -> None:
        """One of the deadlines has passed."""
        ...


class Watch:
    """Counts connections, turns away those over the caps, and sweeps the rest."""

    def __init__(
        self,
        limits: Limits,
        clock: Clock,
        *,
        public: bool,
        uncapped: Collection[Network] = (),
        refused: Counter[str] | None = None,
    ) -> None:
        self.limits: Final = limits
        self.now = clock.monotonic()
        self.stopping = False  # each answer is its connection's last: whoever asks again asks somebody else
        self.refused: Final[Counter[str]] = Counter() if refused is None else refused
        self._clock = clock
        self._public = public
        self._uncapped = tuple(uncapped)  # proxies: their address stands for many clients
        self._swept: set[Watched] = set()
        self._open = 0
        self._per_address: Counter[str] = Counter()
        self._timer: Timer | None = None

    @property
    def open(self) -> int:
        """How many connections are open, upgraded ones included."""
        return self._open

    def admit(self, address: str | None) -> str | None:
        """A seat for a new connection, to be given to `release`; None when there is none left."""
        if self._timer is None:
            self.now = self._clock.monotonic()
            self._timer = self._clock.call_at(self.now + self.limits.sweep_s, self._sweep)
        seat = self._seat(address) if self._public and address else ""
        if self._open >= self.limits.connections:
            self.refused["CONNECTIONS"] += 1
            return None
        if seat and self._per_address[seat] >= self.limits.connections_per_address:
            self.refused["CONNECTIONS_PER_ADDRESS"] += 1
            return None
        self._open += 1
        if seat:
            self._per_address[seat] += 1
        return seat

    def release(self, seat: str) -> None:
        """The connection that had this seat is gone."""
        self._open -= 1
        if seat:
            self._per_address[seat] -= 1
            if not self._per_address[seat]:
                del self._per_address[seat]

    def add(self, connection: Watched) -> None:
        """Sweep this connection from now on."""
        self._swept.add(connection)

    def discard(self, connection: Watched) -> None:
        """Sweep it no more."""
        self._swept.discard(connection)

    def _seat(self, address: str) -> str:
        ip = ip_address(address)
        if any(ip in network for network in self._uncapped):
            return ""
        return address if ip.version == 4 else str(ip_network((ip, IPV6_SITE), strict=False))

    def _sweep(self) -> None:
        now = self.now = self._clock.monotonic()
        # A list first: being told so may remove a connection from the set.
        late = [
            each
            for each in self._swept
            if each.read_deadline <= now or each.write_deadline <= now or each.stream_deadline <= now
        ]
        for connection in late:
            connection.overdue(now)
        self._timer = self._clock.call_at(now + self.limits.sweep_s, self._sweep) if self._swept else None
