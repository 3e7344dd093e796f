"""Where to look: the addresses of cards and endpoints, made from the one that was given and from what a card says.

Only text: nothing here opens a connection.
"""

import ipaddress
from collections.abc import Iterable, Iterator
from typing import Final
from urllib.parse import quote, urlsplit, urlunsplit

from dragoman.model.loopback import is_loopback_address

CARD_PATHS: Final = (
    "/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/.well-known/agent-card",
    "/agent-card",
    "/agent-card.json",
    "/a2a/agent-card",
)
# Names that mean "this machine" to whoever wrote the card.
_ANY: Final = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
_INNER: Final = (".internal", ".local", ".localdomain", ".lan", ".svc", ".cluster.local")


def card_places(url: str) -> Iterator[tuple[str, str]]:
    """Where a card may be, and by which path: the URL itself, then the paths below it, then those below its origin."""
    parts = urlsplit(url)
    base = parts.path.rstrip("/")
    seen: set[str] = set()
    for root, path in (("", ""), *((root, path) for root in (base, "") for path in CARD_PATHS)):
        # A query may name the agent that is meant, so it goes along.
        place = url if not path else urlunsplit((parts.scheme, parts.netloc, root + path, parts.query, ""))
        if place not in seen:
            seen.add(place)
            yield place, path


def toggled(url: str) -> str | None:
    """The same address with its final slash added or dropped; None at a root, where that changes nothing."""
    parts = urlsplit(url)
    if not parts.path.rstrip("/"):
        return None
    path = parts.path.rstrip("/") if parts.path.endswith("/") else parts.path + "/"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def real_places(named: str, given: str) -> tuple[str, ...]:
    """Where an address that a card names really is, as seen from where the card was found.

    A name that only means something to the card's own machine becomes the host that was given; one that looks like an
    inner name is tried as it is first.
    """
    parts, ours = urlsplit(named), urlsplit(given)
    host, here = parts.hostname or "", ours.hostname or ""
    in_place = urlunsplit((ours.scheme, ours.netloc, parts.path, parts.query, ""))
    if host == here:
        return (named,)
    if host in _ANY or (is_loopback(host) and not is_loopback(here)):
        return (in_place,)
    return (named, in_place) if _is_inner(host) and not is_loopback(host) else (named,)


def each_once(urls: Iterable[str]) -> list[str]:
    """The addresses without those that differ from an earlier one in their final slash alone."""
    found: dict[str, str] = {}
    for url in urls:
        found.setdefault(url.rstrip("/"), url)
    return list(found.values())


def same_place(one: str, other: str) -> bool:
    """Whether two addresses differ in their final slash at most."""
    return one.rstrip("/") == other.rstrip("/")


def below(url: str, tenant: str | None) -> str:
    """The address under which a tenant's paths begin."""
    return url if not tenant else f"{url.rstrip('/')}/{quote(tenant, safe='')}"


def origin_of(url: str) -> str:
    """Scheme and host of an address; of one that is none, the text itself."""
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return url
    return f"{parts.scheme}://{parts.hostname}:{port}"


def name_of(url: str) -> str:
    """What to call an agent that says no name: its host."""
    return urlsplit(url).netloc.rpartition("@")[2] or "agent"


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return is_loopback_address(host)
    except ValueError:
        return False


def _is_inner(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_private
    except ValueError:
        return "." not in host or host.endswith(_INNER)
