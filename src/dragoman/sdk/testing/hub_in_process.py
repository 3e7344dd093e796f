"""A whole hub in the running loop, for tests. `testing.hub()` looks first whether the server is installed."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, final

from dragoman.backends.local.bus import LocalBus
from dragoman.config import load
from dragoman.hub.authenticate import OPERATOR
from dragoman.model.json import JsonObject
from dragoman.observe.calls import CallLog
from dragoman.ports.clock import SystemClock
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.connect.connection import Connection
from dragoman.sdk.serve.local_link import LocalLink
from dragoman.sdk.testing.moved_clock import MovedClock
from dragoman.server.app import living, load_secrets, sqlite_store
from dragoman.server.asgi import Application
from dragoman.server.built import MIB, Built
from dragoman.server.drain import Drain
from dragoman.server.from_settings import protocol_limits
from dragoman.server.lifespan import Living
from dragoman.server.listen import bind, port_of
from dragoman.server.run import DrainingServer
from dragoman.server.shortcut import HotPaths
from dragoman.server.watch import Watch

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent

HOST: Final = "127.0.0.1"
LATE_MS: Final = "60000"
LEASE_S: Final = 86_400
LEAVE_S: Final = 2.0  # for what runs when a test ends

_log = logging.getLogger("dragoman.server")


@final
class HubInProcess:
    """A hub that a test has to itself."""

    def __init__(self, url: str, clock: MovedClock) -> None:
        self.url = url
        self.clock = clock
        self._built: Built | None = None
        self._group: asyncio.TaskGroup | None = None
        self._connections: list[Connection] = []

    def client(self) -> A2AClient:
        """A client of this hub."""
        return A2AClient(self.url)

    async def add(self, agent: "Agent") -> str:
        """Connect an agent, in memory; its id. Its handlers run in this loop. Raises what the hub refuses it for."""
        assert self._built is not None and self._group is not None, "the hub runs"  # noqa: S101 - narrows types
        client = A2AClient(self.url)
        connection = Connection(agent, LocalLink(self._built.desk, OPERATOR), clock=self.clock, client=client)
        working = self._group.create_task(connection.run())
        opened = self._group.create_task(connection.opened.wait())
        await asyncio.wait({opened, working}, return_when=asyncio.FIRST_COMPLETED)
        opened.cancel()
        if working.done():
            await working
        self._connections.append(connection)
        return agent.id

    async def advance(self, seconds: float) -> None:
        """Let so many seconds pass for the hub and its agents, at once."""
        await self.clock.advance(seconds)

    # -- what the hub asks of what lives beside it

    @property
    def root_agent(self) -> str | None:
        """None: this is a hub."""
        return None

    @asynccontextmanager
    async def living(self, built: Built) -> AsyncGenerator[None]:
        """Agents are connected while the hub lives."""
        self._built = built
        async with asyncio.TaskGroup() as self._group:
            yield
            for connection in self._connections:
                connection.stop()

    def verify(self, token: str, now: datetime) -> JsonObject | None:
        """Nobody else's tokens are taken."""
        return None

    async def finish(self) -> None:
        """Nothing of a test is waited for."""


class _TestServer(DrainingServer):
    """Takes no signals: the process is the test's."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave them as they are."""
        yield


@asynccontextmanager
async def hub_in_process() -> AsyncGenerator[HubInProcess]:
    """A hub from its start to its end; what it keeps goes with it."""
    with TemporaryDirectory(prefix="dragoman-test-") as folder, ExitStack() as stack:
        listeners = bind(HOST, 0)
        stack.callback(lambda: [listener.close() for listener in listeners])
        port = port_of(listeners[0])
        # Its agents live as long as it does: however far a test moves the clock, none is taken for lost.
        # And however slow the machine is that runs the tests, it takes every call.
        patient = {
            "DRAGOMAN_CONNECT_LEASE_S": str(LEASE_S),
            "DRAGOMAN_PRESSURE_LAG_MS": LATE_MS,
            "DRAGOMAN_PRESSURE_FULL_LAG_MS": LATE_MS,
        }
        settings = load({"host": HOST, "port": str(port), "data": f"{folder}/data", "auth": "none"}, patient, None)
        clock, bus, drain, hot_paths = MovedClock(), LocalBus(), Drain(), HotPaths()
        hub = HubInProcess(f"http://{HOST}:{port}", clock)

        @asynccontextmanager
        async def life() -> AsyncGenerator[Application]:
            async with living(
                settings,
                load_secrets(settings),
                store=sqlite_store(settings, clock, bus),
                bus=bus,
                clock=clock,
                drain=drain,
                calls=CallLog(form="json", level="critical"),
                resident=hub,
            ) as built:
                hot_paths.open(built.hot_path)
                yield built
                hot_paths.close()

        app = Living(life)
        real = SystemClock()  # for connections: those of a test are not to time out because it moves the hub's clock
        server = _TestServer(
            app,
            listeners,
            watch=Watch(protocol_limits(settings), real, public=False, uncapped=()),
            clock=real,
            log=_log,
            drain=drain,
            drain_s=LEAVE_S,
            tls=None,
            hot_paths=hot_paths,
            websocket_bytes=settings.limits.call_body_mib * MIB,
        )
        ready = asyncio.Event()
        server.on_ready = ready.set
        failed: Exception | None = None
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve())
            listening = group.create_task(ready.wait())
            await asyncio.wait({serving, listening}, return_when=asyncio.FIRST_COMPLETED)
            listening.cancel()
            if app.failure is not None:
                raise app.failure
            try:
                yield hub
            except Exception as error:  # noqa: BLE001 - a test's own, which is to leave as it is, not in a group
                failed = error
            finally:
                drain.begin()
        if failed is not None:
            raise failed
