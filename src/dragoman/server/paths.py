"""Where the dialects are spoken: the hub's own paths, the base of each agent, and the mounts below it.

HUB     exactly its path                     BASE    /agents/{agent} + path   /agents/{agent}/{dialect} + path
MOUNT   /agents/{agent}/{dialect} + path             and the path itself: the hub as an agent of its own

On the server of one agent that agent's base is the root, too: there BASE is the path itself and /{dialect} + path,
MOUNT /{dialect} + path, and all of these stand for that agent (`root_paths`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from dragoman.dialects.dialect import Dialect, Level, Route
from dragoman.hub.files import Files
from dragoman.hub.handle import Hub
from dragoman.server.exchange import DialectRoute
from dragoman.server.rpc import RpcRoute
from dragoman.server.sockets import SocketRoute

ALIASES: Final = ("", "/api")  # every path of a dialect that begins with /v1/a2a/ is also served below /api
BASE: Final = "/agents/{agent}"
SHARED: Final = ("/", BASE, "/v1/agents/{agent}/a2a")  # where every JSON-RPC dialect is spoken
ROOT_PAGES: Final = ("/health",)  # pages of an agent's base beside its dialects

Routed = tuple[str, str, DialectRoute | RpcRoute]


def dialect_routes(
    dialects: Sequence[Dialect], *, caps: Mapping[str, int], hub: Hub, files: Files, one_agent: bool = False
) -> Iterator[Routed]:
    """Every path of every dialect, and what serves it; with `one_agent` the mounts stand at the root, too."""
    mounts = ("", BASE) if one_agent else (BASE,)
    for dialect in dialects:
        for route in dialect.routes:
            served = DialectRoute(dialect, route.name, caps[route.body], hub, files)
            for path in _places(dialect, route, mounts):
                yield route.method, path, served
    for path, spoken in _rpc_urls(dialects, mounts).items():
        yield "POST", path, RpcRoute(spoken, cap=caps["call"], hub=hub, files=files)


def root_paths(dialects: Sequence[Dialect]) -> frozenset[str]:
    """The paths that are an agent's own where its base is the root."""
    own = {"/", *ROOT_PAGES}
    for dialect in dialects:
        if _has_methods(dialect):
            own.add(f"/{dialect.slug}")
        for route in dialect.routes:
            if route.level is Level.BASE:
                own.add(route.path)
            if route.level is not Level.HUB:
                own.add(f"/{dialect.slug}{route.path}")
    return frozenset(own)


def socket_routes(
    dialects: Sequence[Dialect], *, cap: int, hub: Hub, files: Files
) -> Iterator[tuple[str, str, SocketRoute]]:
    """Every path where a dialect is spoken over a WebSocket; the handshake is a GET."""
    for dialect in dialects:
        if dialect.dialogue is not None:
            served = SocketRoute(dialect, dialect.dialogue, cap, hub, files)
            for path in dialect.dialogue.paths:
                yield "GET", path, served


def _places(dialect: Dialect, route: Route, mounts: Sequence[str]) -> Iterator[str]:
    mounted = (f"{mount}/{dialect.slug}{route.path}" for mount in mounts)
    match route.level:
        case Level.HUB:
            aliases = ALIASES if route.path.startswith("/v1/a2a/") else ("",)
            yield from (alias + route.path for alias in aliases)
        case Level.BASE:
            yield from (route.path, BASE + route.path, *mounted)
            if route.tenant:
                yield "/{agent}" + route.path
        case Level.MOUNT:
            yield from mounted


def _has_methods(dialect: Dialect) -> bool:
    return bool(dialect.methods or dialect.methods_begin)


def _rpc_urls(dialects: Sequence[Dialect], mounts: Sequence[str]) -> Mapping[str, Sequence[Dialect]]:
    speaking = [each for each in dialects if _has_methods(each)]
    urls: dict[str, list[Dialect]] = {
        path: [each for each in dialects if each in speaking or each.owns_body is not None] for path in SHARED
    }
    for dialect in speaking:
        urls.update({f"{mount}/{dialect.slug}": [dialect] for mount in mounts})
        for path in dialect.rpc_paths:
            urls.setdefault(path, []).append(dialect)
    return urls
