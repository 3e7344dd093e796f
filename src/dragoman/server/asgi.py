"""The ASGI application: the one boundary for all requests. Finds what serves a path and lets it answer."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from dragoman.dialects.dialect import Dialect
from dragoman.hub.handle import Hub
from dragoman.model.http import NO_PARAMS, HttpRequest
from dragoman.server.body import ClientGone
from dragoman.server.exchange import DialectRoute, Exchanger, Receive, Scope, Send
from dragoman.server.pages.page import Page, PageRoute, no_such_page
from dragoman.server.routes import RouteTable
from dragoman.server.shortcut import SHORT_BYTES, Serve

ALIASES: Final = ("", "/api")  # every path of a dialect that begins with /v1/ is also served below /api


class Application:
    """Serves the dialects' routes and the hub's pages."""

    def __init__(
        self,
        *,
        exchanger: Exchanger,
        hub: Hub,
        dialects: Iterable[Dialect],
        pages: Iterable[Page],
        caps: Mapping[str, int],
    ) -> None:
        self._exchanger = exchanger
        self._exchange = exchanger.exchange
        routes: list[tuple[str, str, DialectRoute | PageRoute]] = [
            (route.method, alias + route.path, DialectRoute(dialect, route.name, caps[route.body], hub))
            for dialect in dialects
            for route in dialect.routes
            for alias in (ALIASES if route.path.startswith("/v1/") else ("",))
        ]
        routes += [(page.method, page.path, PageRoute(page, caps["admin"])) for page in pages]
        self._served = routes
        self._routes = RouteTable(routes)
        self._nowhere = PageRoute(no_such_page(self._allowed), caps["admin"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; there is no WebSocket here yet."""
        if scope["type"] == "http":
            found = self._routes.find(scope["method"], scope["path"], scope.get("raw_path") or b"")
            try:
                if found is None:
                    await self._exchange(scope, receive, send, self._nowhere, NO_PARAMS)
                elif isinstance(found.target, DialectRoute):
                    await self._exchange(scope, receive, send, found.target, found.params)
                else:
                    await self._exchange(scope, receive, send, found.target, found.params)
            except ClientGone:
                return  # There is nobody to answer.
        else:
            await send({"type": "websocket.close", "code": 1008})

    def hot_paths(self) -> dict[bytes, Serve]:
        """What the server may ask without ASGI: the dialects' paths that are posted to."""
        return {
            path.encode(): partial(self._exchanger.post, target, path)
            for method, path, target in self._served
            if method == "POST" and "{" not in path and isinstance(target, DialectRoute) and target.cap >= SHORT_BYTES
        }

    def _allowed(self, request: HttpRequest) -> list[str]:
        path = request.url.partition("?")[0]
        return self._routes.allowed(path, path.encode())
