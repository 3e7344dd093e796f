"""Run one ASGI application until it is told to stop, then let it finish.

    bind ─▶ lifespan.startup ─▶ listen ─▶ "dragoman is listening on …" ─▶ serve
    1st signal ─▶ drain: running requests have drain_s, listeners stay open (the application answers 503)
               ─▶ listeners close ─▶ lifespan.shutdown ─▶ return
    2nd signal ─▶ exit at once

Uvicorn's server without its polling and its exit codes. Deliberately not here: what the application says while it
drains, and settings.
"""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Generator
from pathlib import Path
from types import FrameType
from typing import Final

import msgspec
import uvloop
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import HANDLED_SIGNALS

from dragoman.ports.clock import Clock, SystemClock
from dragoman.server.drain import Drain
from dragoman.server.limits import Limits
from dragoman.server.listen import CannotListen, bind, is_loopback, port_of, raise_file_limit
from dragoman.server.protocol import NO_HOT_PATHS, BoundedProtocol
from dragoman.server.shortcut import HotPaths
from dragoman.server.watch import Network, Watch

BACKLOG: Final = 4096
# The loop accepts one connection of each listener in each of its turns: under load that is too slow to refuse the rest.
ACCEPTED_AT_ONCE: Final = 16
WEBSOCKET_BYTES: Final = 10 * 1024 * 1024  # of one message, where nobody says otherwise
WEBSOCKET_PING_S: Final = 20.0  # between two pings, and for the answer to one
CLOSE_S: Final = 5.0  # for the application to put away its store
FLUSH_S: Final = 1.0  # for the last bytes of the last answers
FLUSH_STEP_S: Final = 0.02

_log = logging.getLogger("dragoman.server")


class Tls(msgspec.Struct, frozen=True, kw_only=True):
    """Certificate chain and private key, PEM files."""

    certificate: Path
    key: Path


class StartFailed(Exception):
    """The application did not start; why is in the log."""


def serve(
    app: Callable[..., Awaitable[None]],
    *,
    host: str,
    port: int,
    limits: Limits | None = None,
    tls: Tls | None = None,
    log: logging.Logger = _log,
    drain: Drain | None = None,
    drain_s: float = 30.0,
    on_ready: Callable[[str], None] | None = None,
    uncapped: Collection[Network] = (),
    clock: Clock | None = None,
    hot_paths: HotPaths = NO_HOT_PATHS,
    websocket_bytes: int = WEBSOCKET_BYTES,
    finish: Callable[[], Awaitable[None]] | None = None,
    refused: Counter[str] | None = None,
) -> None:
    """Serve until SIGTERM, SIGINT or `drain.begin()`, finish what runs within `drain_s`, and return.

    Port 0 takes a free port; `on_ready` gets the address. `uncapped` are proxies, whose one address stands for many
    clients; `hot_paths` are served past ASGI; `websocket_bytes` is the most that one message over a WebSocket may have;
    `finish` returns when nothing runs that is no request: it has the same time as the requests; `refused` counts what
    is refused before it is a request.
    Raises AddressInUse or CannotListen before anything starts, StartFailed when the application cannot.
    """
    limits = limits or Limits()
    clock = clock or SystemClock()
    context = _tls_context(tls) if tls else None
    listeners = bind(host, port)
    raise_file_limit(limits.connections, log)
    watch = Watch(limits, clock, public=not all(map(is_loopback, listeners)), uncapped=uncapped, refused=refused)
    url = f"{'https' if tls else 'http'}://{f'[{host}]' if ':' in host else host}:{port_of(listeners[0])}"
    server = DrainingServer(
        app,
        listeners,
        watch=watch,
        clock=clock,
        log=log,
        drain=drain or Drain(),
        drain_s=drain_s,
        tls=context,
        hot_paths=hot_paths,
        websocket_bytes=websocket_bytes,
        finish=finish,
    )

    def ready() -> None:
        sys.stderr.write(f"dragoman is listening on {url}\n")
        sys.stderr.flush()
        if on_ready is not None:
            on_ready(url)

    server.on_ready = ready
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.serve())
    finally:
        for listener in listeners:
            listener.close()


class DrainingServer(Server):
    """Uvicorn's server, which keeps its listeners open while it finishes what runs."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        listeners: list[socket.socket],
        *,
        watch: Watch,
        clock: Clock,
        log: logging.Logger,
        drain: Drain,
        drain_s: float,
        tls: ssl.SSLContext | None,
        hot_paths: HotPaths,
        websocket_bytes: int,
        finish: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        super().__init__(_config(app, websocket_bytes))
        self._app = app
        self._hot_paths = hot_paths
        self.on_ready: Callable[[], None] = lambda: None
        self._listeners = listeners
        self._watch = watch
        self._clock = clock
        self._log = log
        self._drain = drain
        self._drain_s = drain_s
        self._last_work = finish
        self._tls = tls
        self._until = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the application, then listen, then say so."""
        self._drain.bind()
        await self.lifespan.startup()
        if self.lifespan.should_exit:
            raise StartFailed("The application did not start; the log says why.")
        state = self.lifespan.state
        self.server_state.default_headers = self.config.encoded_headers
        loop = asyncio.get_running_loop()

        def protocol() -> BoundedProtocol:
            return BoundedProtocol(
                self._app, self._watch, self.config, self.server_state, state, loop, hot_paths=self._hot_paths
            )

        self.servers = [
            await loop.create_server(
                protocol,
                sock=sock,
                ssl=self._tls,
                # The protocol hears of a connection only after the handshake, so its deadline is set here.
                ssl_handshake_timeout=self._watch.limits.header_s if self._tls else None,
                backlog=BACKLOG,
            )
            for listener in self._listeners
            for sock in (listener, *(listener.dup() for _ in range(ACCEPTED_AT_ONCE - 1)))
        ]
        self.started = True
        self.on_ready()

    async def main_loop(self) -> None:
        """Wait for the drain, then for the requests that run when it begins."""
        await self._drain.begun()
        self._until = self._clock.monotonic() + self._drain_s
        self._watch.stopping = True
        self._stop_streams(carried=False)
        await self._finish(set(self.server_state.tasks))
        if self._last_work is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._until - self._clock.monotonic())):
                    await self._last_work()
        self._stop_streams(carried=True)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the listeners, let what still runs finish in the time left, close the application."""
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        late = await self._finish(set(self.server_state.tasks))
        if late:
            self._log.warning("%d requests did not finish in %g s and are broken off.", len(late), self._drain_s)
            for task in late:
                task.cancel()
            await asyncio.wait(late, timeout=FLUSH_S)
        await self._flush()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self.lifespan.shutdown()
        except TimeoutError:
            self._log.error("The application did not close in %g s.", CLOSE_S)

    async def _finish(self, tasks: set[asyncio.Task[None]]) -> set[asyncio.Task[None]]:
        if not tasks:
            return tasks
        _, late = await asyncio.wait(tasks, timeout=max(0.0, self._until - self._clock.monotonic()))
        return late

    def _stop_streams(self, *, carried: bool) -> None:
        """Have readers come back later: at once, or, those whose call runs here, when its time is over."""
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedProtocol):
                connection.stop_stream(carried=carried)

    async def _flush(self) -> None:
        until = self._clock.monotonic() + FLUSH_S
        while self.server_state.connections and self._clock.monotonic() < until:
            await self._clock.sleep(FLUSH_STEP_S)
        for connection in list(self.server_state.connections):
            connection.transport.abort()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """The first signal drains, the second exits; afterwards both mean again what they meant before."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.handle_exit) for number in HANDLED_SIGNALS}
        try:
            yield
        finally:
            for number, meaning in before.items():
                signal.signal(number, meaning)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drain; or, told twice, exit: everything acknowledged is on disk."""
        if self._drain.draining:
            os._exit(128 + sig)
        self._drain.begin()


def _config(app: Callable[..., Awaitable[None]], websocket_bytes: int) -> Config:
    return Config(
        app,
        interface="asgi3",
        http=HttpToolsProtocol,  # only to load no other: startup makes our own
        lifespan="on",
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        proxy_headers=False,  # whose word counts is the application's business
        server_header=False,
        date_header=False,
        ws_max_size=websocket_bytes,
        ws_ping_interval=WEBSOCKET_PING_S,
        ws_ping_timeout=WEBSOCKET_PING_S,
        ws_per_message_deflate=False,  # its memory is per connection, and most messages are small
    )


def _tls_context(tls: Tls) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(tls.certificate, tls.key)
    except (OSError, ssl.SSLError) as error:
        raise CannotListen(
            f"The TLS certificate {tls.certificate} or its key {tls.key} cannot be used: {error}"
        ) from error
    return context
