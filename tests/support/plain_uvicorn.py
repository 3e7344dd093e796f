"""A real hub behind uvicorn as shipped: none of our own protocol, in a thread of the test."""

import asyncio
import contextlib
import threading
from collections.abc import Generator
from pathlib import Path

import uvicorn

from dragoman.backends.local.bus import LocalBus
from dragoman.config import load
from dragoman.observe.calls import CallLog
from dragoman.ports.clock import SystemClock
from dragoman.server.app import living, load_secrets, sqlite_store
from dragoman.server.drain import Drain
from dragoman.server.lifespan import Living
from tests.support.hub import HubProcess


@contextlib.contextmanager
def plain_hub(data: Path) -> Generator[HubProcess]:
    """A hub that asks nobody who he is; the object only talks to it, its process is the test's own."""
    hub = HubProcess(data, auth="none")
    settings = load({"data": str(data), "port": str(hub.port), "auth": "none"}, {}, None)
    ready = threading.Event()
    servers: list[uvicorn.Server] = []

    class Announcing(uvicorn.Server):
        async def startup(self, sockets: object = None) -> None:
            await super().startup()
            ready.set()

    def run() -> None:
        clock, bus, drain = SystemClock(), LocalBus(), Drain()
        app = Living(
            lambda: living(
                settings,
                load_secrets(settings),
                store=sqlite_store(settings, clock, bus),
                bus=bus,
                clock=clock,
                drain=drain,
                calls=CallLog(form="json"),
            )
        )
        config = uvicorn.Config(app, interface="asgi3", port=hub.port, lifespan="on", log_config=None)
        servers.append(Announcing(config))
        asyncio.run(servers[0].serve())

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        assert ready.wait(20), "uvicorn did not start"
        yield hub
    finally:
        servers[0].should_exit = True
        thread.join(20)
        assert not thread.is_alive()
