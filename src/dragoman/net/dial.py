"""Open one connection: resolve, judge every address, connect to one that was judged, check who is there.

Names are asked for once in 30 s at most, and judged at every dial. Knows nothing of pools or HTTP.

    name -> addresses -> judge all -> connect, the next one 250 ms later -> getpeername -> TLS
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

import msgspec

from dragoman.net.addresses import AddressRule, Target, judge, literal
from dragoman.net.errors import NetError, Reach
from dragoman.net.tls import ClientIdentity, ResumingContext, TlsProfiles
from dragoman.ports.clock import Clock

Resolver = Callable[[str], Awaitable[Sequence[str]]]
"""From a host to all its addresses; OSError, or none, if there are none."""

NAMES_KEPT: Final = 4096
_UNKNOWN_S: Final = 1.0
_LONGEST_S: Final = 3600.0

Wire = TypeVar("Wire", bound=asyncio.BaseProtocol)


class DialLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long each step may take."""

    resolve_s: float = 5.0
    names_s: float = 30.0
    connect_s: float = 5.0
    next_address_s: float = 0.25
    handshake_s: float = 5.0


async def system_resolver(host: str) -> Sequence[str]:
    """What the operating system answers."""
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


class Names:
    """Answers of the resolver, kept for a short while; one question at a time per name."""

    __slots__ = ("_asked", "_clock", "_known", "_limits", "_resolve")

    def __init__(self, clock: Clock, resolve: Resolver, limits: DialLimits) -> None:
        """Start knowing nothing."""
        self._clock = clock
        self._resolve = resolve
        self._limits = limits
        self._known: dict[str, tuple[float, tuple[str, ...]]] = {}
        self._asked: dict[str, asyncio.Event] = {}

    async def addresses(self, host: str) -> tuple[str, ...]:
        """All addresses of a host, none if it does not resolve; raises NetError TIMEOUT."""
        if literal(host) is not None:
            return (host,)
        while True:
            known = self._known.get(host)
            if known is not None and known[0] > self._clock.monotonic():
                return known[1]
            answered = self._asked.get(host)
            if answered is None:
                return await self._ask(host)
            await answered.wait()

    async def _ask(self, host: str) -> tuple[str, ...]:
        answered = self._asked[host] = asyncio.Event()
        try:
            async with asyncio.timeout(self._limits.resolve_s):
                found = tuple(dict.fromkeys(await self._resolve(host)))
        except TimeoutError as error:
            raise NetError(Reach.TIMEOUT) from error
        except (OSError, UnicodeError):
            found = ()
        finally:
            del self._asked[host]
            answered.set()
        if len(self._known) >= NAMES_KEPT:
            del self._known[next(iter(self._known))]
        kept_s = self._limits.names_s if found else _UNKNOWN_S
        self._known[host] = (self._clock.monotonic() + kept_s, found)
        return found


class Dialler:
    """Opens connections for one client, under one address rule."""

    __slots__ = ("_clock", "_limits", "_names", "_rule", "_tls")

    def __init__(self, clock: Clock, rule: AddressRule, limits: DialLimits, tls: TlsProfiles, names: Names) -> None:
        """Take the parts."""
        self._clock = clock
        self._rule = rule
        self._limits = limits
        self._tls = tls
        self._names = names

    async def judged(self, target: Target) -> tuple[str, ...]:
        """The addresses of a target, all allowed; none if its name does not resolve. Raises NetError."""
        addresses = await self._names.addresses(target.host)
        if addresses:
            judge(target, addresses, self._rule)
        return addresses

    async def open(
        self, target: Target, deadline: float, factory: Callable[[], Wire], identity: ClientIdentity | None = None
    ) -> tuple[asyncio.Transport, Wire, ResumingContext | None]:
        """Connect, before the deadline; raises NetError, of which nothing was ever sent."""
        try:
            async with asyncio.timeout(min(deadline - self._clock.monotonic(), _LONGEST_S)):
                addresses = await self.judged(target)
                if not addresses:
                    raise NetError(Reach.UNRESOLVED)
                connected = await self._connect(target, addresses)
                return await self._wrap(target, connected, factory, identity)
        except TimeoutError as error:
            raise NetError(Reach.TIMEOUT) from error

    async def _connect(self, target: Target, addresses: Sequence[str]) -> socket.socket:
        async with asyncio.timeout(self._limits.connect_s):
            if len(addresses) == 1:
                connected = await _attempt(addresses[0], target.port)
            else:
                connected = await _race(addresses, target.port, self._limits.next_address_s)
        if isinstance(connected, NetError):
            raise connected
        return connected

    async def _wrap(
        self, target: Target, connected: socket.socket, factory: Callable[[], Wire], identity: ClientIdentity | None
    ) -> tuple[asyncio.Transport, Wire, ResumingContext | None]:
        loop = asyncio.get_running_loop()
        if target.scheme == "http":
            transport, wire = await loop.create_connection(factory, sock=connected)
            return transport, wire, None
        try:
            if identity is None:
                context = self._tls.context(target.host, target.port)
            else:
                # In a thread: there are as many of these as agents, and each reads the system's trust store.
                context = await asyncio.to_thread(self._tls.identified, target.host, target.port, identity)
        except OSError as error:
            connected.close()
            raise NetError(Reach.TLS) from error
        except BaseException:
            connected.close()
            raise
        try:
            async with asyncio.timeout(self._limits.handshake_s):
                transport, wire = await loop.create_connection(
                    factory, sock=connected, ssl=context, server_hostname=target.host.rstrip(".")
                )
        except TimeoutError:
            raise
        except OSError as error:
            raise NetError(Reach.TLS) from error
        return transport, wire, context


async def _attempt(address: str, port: int) -> socket.socket | NetError:
    """A connected socket, or why there is none."""
    try:
        wire = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM)
    except OSError as error:
        return _because(Reach.REFUSED, error)
    try:
        wire.setblocking(False)
        wire.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wire.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        await asyncio.get_running_loop().sock_connect(wire, (address, port))
        # What was judged and what was reached must be the same, whatever lies between.
        if literal(str(wire.getpeername()[0])) == literal(address):
            return wire
    except OSError as error:
        wire.close()
        return _because(Reach.REFUSED, error)
    except BaseException:
        wire.close()
        raise
    wire.close()
    return NetError(Reach.FORBIDDEN)


async def _race(addresses: Sequence[str], port: int, head_start_s: float) -> socket.socket | NetError:
    """The first that connects, each starting when the one before failed or took too long."""
    left = list(reversed(addresses))
    running: set[asyncio.Task[socket.socket | NetError]] = set()
    outcome: socket.socket | NetError = NetError(Reach.REFUSED)
    try:
        async with asyncio.TaskGroup() as group:
            try:
                while (left or running) and isinstance(outcome, NetError):
                    if left:
                        running.add(group.create_task(_attempt(left.pop(), port)))
                    done, running = await asyncio.wait(
                        running, timeout=head_start_s if left else None, return_when=asyncio.FIRST_COMPLETED
                    )
                    running |= done
                    while done and isinstance(outcome, NetError):
                        task = done.pop()
                        running.discard(task)
                        outcome = task.result()
            finally:
                _end(running)
    except BaseException:
        if isinstance(outcome, socket.socket):
            outcome.close()
        raise
    return outcome


def _end(attempts: set[asyncio.Task[socket.socket | NetError]]) -> None:
    for task in attempts:
        if not task.cancel() and not task.cancelled() and isinstance(spare := task.result(), socket.socket):
            spare.close()


def _because(kind: Reach, cause: OSError) -> NetError:
    error = NetError(kind)
    error.__cause__ = cause
    return error
