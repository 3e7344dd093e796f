"""The ASGI application: the one boundary for all requests. Finds what serves a path and lets it answer."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from dragoman.dialects.dialect import Dialect
from dragoman.hub.files import Files
from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.handle import Hub
from dragoman.hub.registry import Registry
from dragoman.model.http import NO_PARAMS, HttpReply, HttpRequest
from dragoman.server.agent_sockets import AgentSockets
from dragoman.server.body import ClientGone
from dragoman.server.exchange import DialectRoute, Exchanger, Receive, Scope, Send
from dragoman.server.mcp import route as mcp
from dragoman.server.mcp.route import McpRoute
from dragoman.server.pages import connect
from dragoman.server.pages.page import Page, PageRoute, no_such_page
from dragoman.server.paths import dialect_routes, root_paths, socket_routes
from dragoman.server.routes import RouteTable
from dragoman.server.rpc import RpcRoute
from dragoman.server.shortcut import SHORT_BYTES, Serve
from dragoman.server.sockets import Sockets, decline

Target = DialectRoute | RpcRoute | McpRoute | PageRoute


class Application:
    """Serves the dialects' routes and the hub's pages."""

    def __init__(
        self,
        *,
        exchanger: Exchanger,
        sockets: Sockets,
        agent_sockets: AgentSockets,
        hub: Hub,
        files: Files,
        dialects: Iterable[Dialect],
        pages: Iterable[Page],
        registry: Registry,
        caps: Mapping[str, int],
        root_agent: str | None = None,
        pressure: Pressure | None = None,
    ) -> None:
        self._exchanger = exchanger
        self._exchange = exchanger.exchange
        self._sockets = sockets
        self._agent_sockets = agent_sockets
        dialects = tuple(dialects)
        routes: list[tuple[str, str, Target]] = [
            *dialect_routes(dialects, caps=caps, hub=hub, files=files, one_agent=root_agent is not None)
        ]
        served = McpRoute(hub=hub, registry=registry, cap=caps["call"])
        routes += [(method, mcp.PATH, served) for method in mcp.METHODS]
        routes += [(page.method, page.path, PageRoute(page, caps["admin"], pressure)) for page in pages]
        implied = {} if root_agent is None else {path: {"agent": root_agent} for path in root_paths(dialects)}
        self._routes = RouteTable(routes, implied)
        opened = tuple(socket_routes(dialects, cap=caps["call"], hub=hub, files=files))
        self._socket_routes = RouteTable(opened)
        # Everything that can be reached, for whoever has to see to it that nothing is by accident.
        self.routes: Final = tuple(routes)
        self.socket_paths: Final = (connect.PATH, *(path for _, path, _ in opened))
        self._nowhere = PageRoute(no_such_page(self._allowed), caps["admin"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or one WebSocket."""
        if scope["type"] == "http":
            found = self._routes.find(scope["method"], scope["path"], scope.get("raw_path") or b"")
            try:
                if found is None:
                    await self._exchange(scope, receive, send, self._nowhere, NO_PARAMS)
                elif isinstance(found.target, DialectRoute):  # noqa: SIM114 - each has its own kind of request
                    await self._exchange(scope, receive, send, found.target, found.params)
                elif isinstance(found.target, RpcRoute):  # noqa: SIM114
                    await self._exchange(scope, receive, send, found.target, found.params)
                elif isinstance(found.target, McpRoute):
                    await self._exchange(scope, receive, send, found.target, found.params)
                else:
                    await self._exchange(scope, receive, send, found.target, found.params)
            except ClientGone:
                return  # There is nobody to answer.
        elif scope["path"].rstrip("/") == connect.PATH:
            await self._agent_sockets.serve(scope, receive, send)
        else:
            opened = self._socket_routes.find("GET", scope["path"], scope.get("raw_path") or b"")
            if opened is None:
                await decline(scope, send, HttpReply(status=404))
            else:
                await self._sockets.serve(scope, receive, send, opened.target, opened.params)

    def hot_path(self, url: bytes) -> Serve | None:
        """What the server may ask without ASGI for a POST to that URL: a dialect's path, without any escapes."""
        if not url.isascii() or b"%" in url or b"?" in url or b"#" in url or not url.startswith(b"/"):
            return None
        path = url.decode()
        found = self._routes.find("POST", path, url)
        if found is None or found.target.cap < SHORT_BYTES:
            return None
        match found.target:
            case DialectRoute() as target:
                return partial(self._exchanger.post, target, found.params, path)
            case RpcRoute() as target:
                return partial(self._exchanger.post, target, found.params, path)
            case McpRoute() | PageRoute():
                return None

    def _allowed(self, request: HttpRequest) -> list[str]:
        path = request.url.partition("?")[0]
        return self._routes.allowed(path, path.encode())
