"""The composition root: settings become backends, a hub, and the application that serves it.

The only file that names backends; everything else meets them at the ports.
"""

import asyncio
import gc
import logging
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, nullcontext
from ipaddress import ip_network
from pathlib import Path
from typing import Final

import msgspec

from dragoman import __version__
from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.lock import StoreInUse
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.config import Settings
from dragoman.delivery.connections import Connections
from dragoman.hub.endings import Endings
from dragoman.model.secret import Secret
from dragoman.observe import logs
from dragoman.observe.calls import CallLog
from dragoman.observe.metrics import Metrics
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.store import Store
from dragoman.security.admin import load_admin_token
from dragoman.security.private_files import private_directory
from dragoman.security.redact import Redactor
from dragoman.security.sealed import RootKey, load_root_key
from dragoman.server import run
from dragoman.server.asgi import Application
from dragoman.server.build import REPLICA, build, forget_changes
from dragoman.server.built import MIB, Resident, Secrets
from dragoman.server.drain import Drain
from dragoman.server.from_settings import log_form, protocol_limits, tls_of
from dragoman.server.lifespan import Living
from dragoman.server.serving import application
from dragoman.server.shortcut import HotPaths

__all__ = ["DATABASE", "Facts", "Resident", "StoreInUse", "facts_of", "living", "load_secrets", "serve", "sqlite_store"]

LOG: Final = logging.getLogger("dragoman")
DATABASE: Final = "hub.db"
# The writer thread gets its turn sooner, so that a waiting commit does not wait for a busy loop.
SWITCH_S: Final = 0.0005
# A call leaves no cycles behind: looking for them less often measured 3 to 6 % less CPU per call.
GC_THRESHOLDS: Final = (20_000, 50, 100)


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a starting hub tells its operator; the admin token only when it was made just now."""

    version: str
    url: str
    data: Path
    auth: str
    admin_token: Secret | None
    admin_token_file: Path | None


def sqlite_store(settings: Settings, clock: Clock, bus: Bus) -> Store:
    """The embedded store, in the data directory."""
    return SqliteStore(
        settings.data / DATABASE,
        clock=clock,
        bus=bus,
        hold_s=settings.calls.hold_ms / 1000,
        wal_mib=settings.sqlite.wal_mib,
        ballast_mib=settings.sqlite.ballast_mib,
        readers=settings.sqlite.readers,
    )


def serve(
    settings: Settings,
    *,
    banner: Callable[[Facts], None] | None = None,
    make_store: Callable[[Settings, Clock, Bus], Store] = sqlite_store,
    resident: Resident | None = None,
) -> int:
    """Run the hub, or the server of one agent, until it is told to stop; the process's exit code.

    Raises SecretRefused, CannotListen, StoreInUse before anything starts.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GC_THRESHOLDS)
    form = log_form(settings)
    secrets = load_secrets(settings)
    redact = Redactor(os.urandom(32), known=[secrets.admin] if secrets.admin is not None else []).json
    lines = logs.configure(form, settings.log.level, redact)
    drain = Drain()
    clock = SystemClock()
    bus = LocalBus()
    store = make_store(settings, clock, bus)
    calls = CallLog(form=form, level=settings.log.level, lines=lines, replica=REPLICA, redact=redact)
    metrics = Metrics(clock=clock, max_values=settings.metrics.max_values)

    def told(url: str) -> None:
        gc.freeze()  # What is there at the start stays: no collection need ever look at it again.
        if banner is not None:
            banner(facts_of(settings, secrets, url))

    hot_paths = HotPaths()

    @asynccontextmanager
    async def life() -> AsyncGenerator[Application]:
        async with living(
            settings,
            secrets,
            store=store,
            bus=bus,
            clock=clock,
            drain=drain,
            calls=calls,
            resident=resident,
            metrics=metrics,
        ) as built:
            if settings.server.shortcut:
                hot_paths.open(built.hot_path)
            yield built
            hot_paths.close()

    app = Living(life)
    try:
        run.serve(
            app,
            host=settings.host,
            port=settings.port,
            limits=protocol_limits(settings),
            tls=tls_of(settings),
            drain=drain,
            drain_s=settings.calls.drain_s,
            on_ready=told,
            uncapped=[ip_network(proxy) for proxy in settings.trusted_proxies],
            clock=clock,
            hot_paths=hot_paths,
            websocket_bytes=settings.limits.call_body_mib * MIB,
            finish=None if resident is None else resident.finish,
            refused=metrics.early,
        )
    except run.StartFailed:
        # What went wrong in building the hub says more than that it did.
        if app.failure is not None:
            raise app.failure from None
        raise
    return 0


@asynccontextmanager
async def living(
    settings: Settings,
    secrets: Secrets,
    *,
    store: Store,
    bus: Bus,
    clock: Clock,
    drain: Drain,
    calls: CallLog,
    resident: Resident | None = None,
    metrics: Metrics | None = None,
) -> AsyncGenerator[Application]:
    """A hub on these parts, from its start to its end, with what lives beside it."""
    root_agent = None if resident is None else resident.root_agent
    await store.start()
    endings = Endings(clock=clock, soon=asyncio.get_running_loop().call_soon)
    try:
        async with asyncio.TaskGroup() as group:

            def spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
                return group.create_task(_guarded(work))

            built = await build(settings, secrets, store, bus, clock, drain, calls, endings, spawn, resident, metrics)
            listening = spawn(forget_changes(bus, built.registry, built.authenticator, built.credentials))
            working = [spawn(built.calls.run()), spawn(built.callbacks.run()), spawn(built.workflows.run())]
            working += [spawn(built.health.run()), spawn(built.presence.watch_start())]
            working += [spawn(_told_to_drain(drain, built.connections))]
            working += [spawn(built.signing_keys.run()), spawn(built.heads.run()), spawn(built.quotas.run())]
            working += [spawn(built.retention.run()), spawn(built.inspection.run())]
            if built.exporting is not None:
                working.append(spawn(built.exporting.exporter.run()))
            working.append(spawn(built.wall.run()))
            built.pressure.start()
            try:
                async with nullcontext() if resident is None else resident.living(built):
                    yield application(settings, built, store, clock, drain, root_agent)
            finally:
                built.presence.close()
                built.pressure.stop()
                for background in (listening, *working):
                    background.cancel()
                await built.client.close()
                if built.exporting is not None:
                    await built.exporting.finish()
                await built.heads.sign()
                await built.estimates.write()
                await built.figures.write()
                await built.spending.ledger.write()
    finally:
        await bus.close()
        await store.close()
        endings.close()
        calls.close()


def load_secrets(settings: Settings) -> Secrets:
    """The root key and the admin token, made where they are missing. Raises SecretRefused."""
    private_directory(settings.data)
    if settings.root_key is not None:
        root = RootKey.from_text(settings.root_key.reveal(), source="DRAGOMAN_ROOT_KEY")
    else:
        root = load_root_key(settings.data)
    if settings.auth == "none":
        return Secrets(root=root, admin=None, admin_is_new=False)
    admin, is_new = load_admin_token(settings.data, settings.admin_token, loopback=settings.here_alone)
    return Secrets(root=root, admin=admin, admin_is_new=is_new)


def facts_of(settings: Settings, secrets: Secrets, url: str) -> Facts:
    """What is told of a hub that starts."""
    given = settings.admin_token is not None or settings.auth == "none"
    return Facts(
        version=__version__,
        url=url,
        data=settings.data,
        auth=settings.auth,
        admin_token=secrets.admin if secrets.admin_is_new else None,
        admin_token_file=None if given else settings.data / "admin-token",
    )


async def _told_to_drain(drain: Drain, connections: Connections) -> None:
    await drain.begun()
    connections.drain()


async def _guarded(work: Coroutine[None, None, None]) -> None:
    """Work of the hub's own: what breaks in it is logged and ends nothing else."""
    try:
        await work
    except Exception:
        LOG.exception("background work broke")
