"""The dialects' real URLs without a hub behind them: requests can be read, refused and answered, not carried out."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

from dragoman.dialects.dialect import Dialect
from dragoman.hub.files import Files
from dragoman.hub.handle import Hub
from dragoman.model.http import Headers, HttpRequest
from dragoman.server.exchange import DialectRoute
from dragoman.server.paths import Routed, dialect_routes
from dragoman.server.routes import Found, RouteTable
from dragoman.server.rpc import RpcRoute

CAPS: Final[Mapping[str, int]] = {"call": 10 * 1024 * 1024, "admin": 1024 * 1024}

Served = DialectRoute | RpcRoute


def served_urls(dialects: Iterable[Dialect]) -> tuple[Routed, ...]:
    """Every path of these dialects with its method and what serves it, as the server makes them."""
    # A route keeps the two for when it is to carry something out, which it never is here.
    hub, files = Hub.__new__(Hub), Files.__new__(Files)
    return tuple(dialect_routes(tuple(dialects), caps=CAPS, hub=hub, files=files))


def url_table(dialects: Iterable[Dialect]) -> RouteTable[Served]:
    """The same, to be looked up by path."""
    return RouteTable(served_urls(dialects))


def found_at(table: RouteTable[Served], method: str, url: str) -> Found[Served]:
    """What serves a request, and the params that its path has."""
    path = url.partition("?")[0]
    found = table.find(method, path, path.encode())
    assert found is not None, f"nothing serves {method} {path}"
    return found


def arrived(
    found: Found[Served], method: str, url: str, *, headers: Headers, body: bytes, at: datetime, hub: str, id: str = "1"
) -> HttpRequest:
    """A request as the server stamps it on arrival."""
    return HttpRequest(
        method=method,
        url=url,
        headers=headers,
        body=body,
        id=id,
        at=at,
        route=found.target.name,
        params=found.params,
        hub=hub,
    )
