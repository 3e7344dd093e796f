"""Which addresses may be dialled: the rule against requests forged through the hub.

A URL is parsed once, and the connection is made from that result. Names are never judged: resolvers turn `127.1`,
`0x7f000001` and full-width digits into 127.0.0.1, so only the addresses they answer count, and all of them must pass.
Does not resolve and does not connect (`dial.py` does).
"""

import ipaddress
import re
import socket
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from dragoman.net.errors import NetError, Reach

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

URL_CHARACTERS: Final = 8 * 1024

LOOPBACK: Final = ("127.0.0.0/8", "::1/128")
PRIVATE: Final = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")

# Written out, because `ipaddress.is_global` and `is_private` miss a third of what must be refused.
_REFUSED_V4: Final = (
    "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 168.63.129.16/32 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 "
    "192.0.2.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.168.0.0/16 192.175.48.0/24 198.18.0.0/15 "
    "198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4"
)
# Only global unicast is public at all: mapped, NAT64, unique-local and link-local addresses lie outside it.
_PUBLIC_V6: Final = "2000::/3"
_REFUSED_V6: Final = "2001::/23 2001:db8::/32 2002::/16 3fff::/20 2620:4f:8000::/48"
# Cloud metadata: never part of a wider network that somebody opened.
_METADATA: Final = "169.254.169.254 169.254.170.2 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254"
# Prefixes whose last 32 bits are an IPv4 address: compatible, mapped, translated, NAT64.
_CARRIES_V4: Final = "::/96 ::ffff:0:0/96 ::ffff:0:0:0/96 64:ff9b::/96"

PUBLIC_PORTS: Final = frozenset({80, 443, 8080, 8443})
# Services that could be talked to by accident in the words of HTTP.
OTHER_SERVICES: Final = frozenset({3306, 4222, 5432, 6379, 9042, 11211, 27017})

_LOGIN: Final = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]*:[/\\]*)[^/?#]*@")
_URL: Final = re.compile(r"(https?)://([^/?]+)(.*)", re.IGNORECASE)
_AUTHORITY: Final = re.compile(r"(?:\[([0-9a-fA-F:.]+)\]|([^\[\]:@%]+))(?::([0-9]{1,5}))?")
_NAME: Final = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.?")


def _ranges(networks: str) -> tuple[tuple[int, int], ...]:
    found = [ipaddress.ip_network(one) for one in networks.split()]
    return tuple((int(one.network_address), int(one.broadcast_address)) for one in found)


_REFUSED_V4_RANGES: Final = _ranges(_REFUSED_V4)
_PUBLIC_V6_RANGES: Final = _ranges(_PUBLIC_V6)
_REFUSED_V6_RANGES: Final = _ranges(_REFUSED_V6)
_CARRIES_V4_RANGES: Final = _ranges(_CARRIES_V4)
_METADATA_ADDRESSES: Final = frozenset(ipaddress.ip_address(one) for one in _METADATA.split())


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a URL leads: the only thing that is connected to and sent."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"


class AddressRule(msgspec.Struct, frozen=True, kw_only=True):
    """What is open beyond public addresses, and what is closed whatever is open."""

    allow: tuple[Network, ...] = ()
    own: frozenset[tuple[str, int]] = frozenset()
    plain_http_anywhere: bool = False

    @classmethod
    def of(
        cls, allow: Iterable[str] = (), *, own: Iterable[tuple[str, int]] = (), plain_http_anywhere: bool = False
    ) -> "AddressRule":
        """Build the rule from settings: CIDRs, `loopback`, `private`. Raises ValueError on anything else."""
        networks: list[str] = []
        for word in allow:
            networks.extend({"loopback": LOOPBACK, "private": PRIVATE}.get(word, (word,)))
        listeners: set[tuple[str, int]] = set()
        for host, port in own:
            for address in ("127.0.0.1", "::1") if host == "localhost" else (host,):
                listeners.add((str(ipaddress.ip_address(address)), port))
        return cls(
            allow=tuple(ipaddress.ip_network(one) for one in networks),
            own=frozenset(listeners),
            plain_http_anywhere=plain_http_anywhere,
        )


def parse(url: str) -> Target:
    """Take an absolute URL apart; raises NetError FORBIDDEN on anything two readers could read differently."""
    # isprintable also refuses zero-width, control and separator characters beyond ASCII.
    if len(url) > URL_CHARACTERS or not url.isprintable() or " " in url or "\\" in url or "#" in url:
        raise NetError(Reach.FORBIDDEN)
    whole = _URL.fullmatch(url)
    authority = _AUTHORITY.fullmatch(whole[2]) if whole else None
    if whole is None or authority is None:
        raise NetError(Reach.FORBIDDEN)
    scheme = whole[1].lower()
    port = int(authority[3]) if authority[3] else 443 if scheme == "https" else 80
    if not 0 < port < 65536:
        raise NetError(Reach.FORBIDDEN)
    path = whole[3] if whole[3].startswith("/") else f"/{whole[3]}"
    return Target(scheme=scheme, host=_host(authority[1], authority[2]), port=port, path=_escaped(path))


def without_login(url: str) -> str:
    """A URL as it may be told in an error: without a login, which no URL may have here anyway."""
    return _LOGIN.sub(r"\1…@", url)


def literal(host: str) -> Address | None:
    """The address, if the host is written as one in its usual form."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def judge(target: Target, addresses: Sequence[str], rule: AddressRule) -> None:
    """Return if every address may be dialled for this target; raises NetError FORBIDDEN."""
    if not addresses:
        raise NetError(Reach.FORBIDDEN)
    for text in addresses:
        address = literal(text)
        # A zone id names an interface of this machine.
        if address is None or "%" in text or not _allowed(target, address, rule):
            raise NetError(Reach.FORBIDDEN)


def _host(bracketed: str | None, name: str | None) -> str:
    if bracketed is not None:
        try:
            return str(ipaddress.IPv6Address(bracketed))
        except ValueError as error:
            raise NetError(Reach.FORBIDDEN) from error
    host = (name or "").lower()
    if not host.isascii():
        try:
            # Also turns full-width and circled digits into plain ones, as the resolver would.
            host = host.encode("idna").decode("ascii").lower()
        except UnicodeError as error:
            raise NetError(Reach.FORBIDDEN) from error
    if len(host) > 253 or _NAME.fullmatch(host) is None:
        raise NetError(Reach.FORBIDDEN)
    return host


def _escaped(path: str) -> str:
    if path.isascii():
        return path
    return "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in path.encode("utf-8"))


def _allowed(target: Target, address: Address, rule: AddressRule) -> bool:
    port = target.port
    if rule.own and _is_own(address, port, rule.own):
        return False
    opened = [network for network in rule.allow if address in network]
    if _carried(address) in _METADATA_ADDRESSES:
        opened = [network for network in opened if network.num_addresses == 1]
        if not opened:
            return False
    if opened:
        return (port > 1023 or port in (80, 443)) and port not in OTHER_SERVICES
    return _is_public(address) and port in PUBLIC_PORTS and (target.scheme == "https" or rule.plain_http_anywhere)


def _is_public(address: Address) -> bool:
    number = int(address)
    if address.version == 4:
        return not _within(number, _REFUSED_V4_RANGES)
    return _within(number, _PUBLIC_V6_RANGES) and not _within(number, _REFUSED_V6_RANGES)


def _within(number: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(low <= number <= high for low, high in ranges)


def _carried(address: Address) -> Address:
    """The IPv4 address inside an IPv6 one, or the address itself."""
    number = int(address)
    if address.version == 6 and number > 1 and _within(number, _CARRIES_V4_RANGES):
        return ipaddress.IPv4Address(number & 0xFFFFFFFF)
    return address


def _is_own(address: Address, port: int, own: frozenset[tuple[str, int]]) -> bool:
    real = _carried(address)
    if (str(real), port) in own:
        return True
    # 0.0.0.0 and :: reach this machine when dialled, and mean all its addresses when listened on.
    if int(real) == 0:
        return any(listening == port for _, listening in own)
    everywhere = ("0.0.0.0", port) in own or ("::", port) in own  # noqa: S104 - compared, not bound
    return everywhere and (real.is_loopback or _is_local(real))


def _is_local(address: Address) -> bool:
    """Whether the address belongs to this machine: only then can a socket be bound to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return True
