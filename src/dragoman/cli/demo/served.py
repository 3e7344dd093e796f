"""An agent's server beside others in one process: on its own port, with its own data, until it is told to stop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Final

import msgspec
import uvicorn

from dragoman.backends.local.bus import LocalBus
from dragoman.model.json import JsonObject
from dragoman.observe.calls import CallLog
from dragoman.ports.clock import Clock
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.client.client import A2AClient
from dragoman.sdk.serve.agent_server import AgentResident, settings_of
from dragoman.server import app
from dragoman.server.asgi import Application
from dragoman.server.drain import Drain
from dragoman.server.exchange import Receive, Scope, Send
from dragoman.server.lifespan import Living

CARD_PATHS: Final = ("/.well-known/agent-card", "/agent-card")


class Served:
    """One agent, listening."""

    def __init__(
        self,
        agent: Agent,
        dialect: str,
        port: int,
        data: Path,
        clock: Clock,
        card: Callable[[str], JsonObject] | None = None,
    ) -> None:
        """Take a port, or a free one where that is in use; nothing is served yet.

        `card` writes a dotted card of its own for the agent at a URL, in place of the one that is made.
        """
        self.agent = agent
        self.dialect = dialect
        self.wanted = port
        self._listener = listen(port)
        self.port: int = self._listener.getsockname()[1]
        self._clock = clock
        # Only what is given here counts: the environment holds the hub's settings, not the agents'.
        self._settings = settings_of(
            agent, host="127.0.0.1", port=self.port, data=data / agent.id, auth="none", environ={}
        )
        self._card = None if card is None else card(self.url)
        self._living = Living(self._life)
        config = uvicorn.Config(
            self._app,
            interface="asgi3",
            lifespan="on",
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=5,
        )
        self._server = _Server(config)

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://localhost:{self.port}"

    async def register(self, client: A2AClient) -> None:
        """Make it known to a hub once it listens: by its own card, else by where it speaks its dialect and no other."""
        await self._server.listening.wait()
        what = f"{self.url}/{self.dialect}/" if self._card is None else self._card
        await client.register(what, id=self.agent.id, dialect=self.dialect)

    async def run(self) -> None:
        """Serve until `stop`. Raises what kept it from starting."""
        try:
            await self._server.serve(sockets=[self._listener])
        except SystemExit:
            # Uvicorn ends the process when an application does not start: here others run in it.
            raise self._living.failure or OSError(f"{self.agent.id} could not be served") from None

    async def stop(self) -> None:
        """Take no more requests, and end; one that is just starting ends when it has, as nothing is put away before."""
        await self._server.listening.wait()
        self._server.should_exit = True

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._card is not None and scope.get("method") == "GET" and scope["path"] in CARD_PATHS:
            body = msgspec.json.encode(self._card)
            headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
        else:
            await self._living(scope, receive, send)

    @contextlib.asynccontextmanager
    async def _life(self) -> AsyncGenerator[Application]:
        bus = LocalBus()
        resident = AgentResident(self.agent, self._settings, self._clock, register=None)
        async with app.living(
            self._settings,
            app.load_secrets(self._settings),
            store=app.sqlite_store(self._settings, self._clock, bus),
            bus=bus,
            clock=self._clock,
            drain=Drain(),
            # Whoever looks at the demo sees each call once: in the hub's log.
            calls=CallLog(form="json", level="error"),
            resident=resident,
        ) as built:
            yield built
            await resident.finish()


class _Server(uvicorn.Server):
    """Uvicorn's server, which says when it listens, and leaves signals to the process that has several."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.listening = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen."""
        await super().startup(sockets=sockets)
        self.listening.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take none."""
        yield


def listen(port: int) -> socket.socket:
    """A socket on that port of the loopback address, or on a free one when it is taken."""
    for wanted in (port, 0):
        # Named as TCP: asyncio turns off Nagle for such sockets only, and an answer of two writes would wait 40 ms.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", wanted))
            listener.listen()  # At once: while nobody listens, another that starts now gets the same port.
        except OSError:
            listener.close()
            continue
        return listener
    raise OSError("no free port on 127.0.0.1")
