"""Where the dialects are spoken: the hub's own paths, the base of each agent, and the mounts below it.

HUB     exactly its path                     BASE    /agents/{agent} + path   /agents/{agent}/{dialect} + path
MOUNT   /agents/{agent}/{dialect} + path             and the path itself: the hub as an agent of its own
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

Routed = tuple[str, str, DialectRoute | RpcRoute]


def dialect_routes(dialects: Sequence[Dialect], *, caps: Mapping[str, int], hub: Hub, files: Files) -> Iterator[Routed]:
    """Every path of every dialect, and what serves it."""
    for dialect in dialects:
        for route in dialect.routes:
            served = DialectRoute(dialect, route.name, caps[route.body], hub, files)
            for path in _places(dialect, route):
                yield route.method, path, served
    for path, spoken in _rpc_urls(dialects).items():
        yield "POST", path, RpcRoute(spoken, cap=caps["call"], hub=hub, files=files)


def socket_routes(
    dialects: Sequence[Dialect], *, cap: int, hub: Hub, files: Files
) -> Iterator[tuple[str, str, SocketRoute]]:
    """Every path where a dialect is spoken over a WebSocket; the handshake is a GET."""
    for dialect in dialects:
        if dialect.dialogue is not None:
            served = SocketRoute(dialect, dialect.dialogue, cap, hub, files)
            for path in dialect.dialogue.paths:
                yield "GET", path, served


def _places(dialect: Dialect, route: Route) -> Iterator[str]:
    mount = f"{BASE}/{dialect.slug}{route.path}"
    match route.level:
        case Level.HUB:
            aliases = ALIASES if route.path.startswith("/v1/a2a/") else ("",)
            yield from (alias + route.path for alias in aliases)
        case Level.BASE:
            yield from (route.path, BASE + route.path, mount)
            if route.tenant:
                yield "/{agent}" + route.path
        case Level.MOUNT:
            yield mount


def _rpc_urls(dialects: Sequence[Dialect]) -> Mapping[str, Sequence[Dialect]]:
    speaking = [each for each in dialects if each.methods or each.methods_begin]
    urls: dict[str, list[Dialect]] = {
        path: [each for each in dialects if each in speaking or each.owns_body is not None] for path in SHARED
    }
    for dialect in speaking:
        urls[f"{BASE}/{dialect.slug}"] = [dialect]
        for path in dialect.rpc_paths:
            urls.setdefault(path, []).append(dialect)
    return urls
