"""Whether the hub runs, and whether to send it calls. None of it needs a token, none shows names or addresses."""

from collections.abc import Callable

from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.inspection import Inspection
from dragoman.model.call import Arrival, Caller
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.store import Store
from dragoman.server.pages.page import Page, json_reply


def pages(store: Store, draining: Callable[[], bool], pressure: Pressure, inspection: Inspection) -> tuple[Page, ...]:
    """The pages of operation."""

    async def healthz(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, {"status": "ok"})

    async def readyz(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        store_works = await store.check()
        checks = {
            "store": "ok" if store_works else "failing",
            "draining": draining(),
            "pressure": pressure.level,
            "storage": "full" if pressure.storage_full else "ok",
            "integrity": inspection.state.value,
        }
        ready = store_works and not draining()
        # Pressed it still takes results, cancels and polls: whoever sends it nothing makes that worse.
        status = "not ready" if not ready else "degraded" if pressure.level else "ready"
        return json_reply(200 if ready else 503, {"status": status, "checks": checks})

    async def health(_request: HttpRequest, _caller: Caller, _arrival: Arrival) -> HttpReply:
        return json_reply(200, {"status": "healthy", "agent": "dragoman"})

    return (
        Page(method="GET", path="/healthz", answer=healthz, public=True),
        Page(method="GET", path="/readyz", answer=readyz, public=True),
        Page(method="GET", path="/health", answer=health, public=True),
    )
