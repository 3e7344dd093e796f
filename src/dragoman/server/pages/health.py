"""Whether the hub runs, and whether to send it calls. None of it needs a token, none shows names or addresses."""

from collections.abc import Callable

from dragoman.model.call import Arrival, Caller
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.store import Store
from dragoman.server.pages.page import Page, json_reply


def pages(store: Store, draining: Callable[[], bool]) -> tuple[Page, ...]:
    """The pages of operation."""

    async def healthz(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, {"status": "ok"})

    async def readyz(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        checks = {"store": "ok" if await store.check() else "failing", "draining": draining()}
        ready = checks["store"] == "ok" and not draining()
        return json_reply(200 if ready else 503, {"status": "ready" if ready else "not ready", "checks": checks})

    async def health(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, {"status": "healthy", "agent": "dragoman"})

    return (
        Page(method="GET", path="/healthz", answer=healthz, public=True),
        Page(method="GET", path="/readyz", answer=readyz, public=True),
        Page(method="GET", path="/health", answer=health, public=True),
    )
