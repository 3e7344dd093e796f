"""The composition root: settings become backends, a hub, and the application that serves it.

The only file that names backends; everything else meets them at the ports.
"""

import asyncio
import gc
import logging
import os
import sys
import uuid
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Final, Literal

import msgspec

from dragoman import __version__
from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.lock import StoreInUse
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.config import Settings
from dragoman.delivery.courier import HttpCourier
from dragoman.delivery.credentials import Credentials
from dragoman.delivery.over_http import Wire
from dragoman.dialects import DIALECTS
from dragoman.dialects.cards import read_any_card
from dragoman.hub.admission import Admission
from dragoman.hub.authenticate import Authenticator
from dragoman.hub.carry import Carrier, Spawn
from dragoman.hub.handle import Hub
from dragoman.hub.key_ring import KeyRing
from dragoman.hub.recovery import Recovery
from dragoman.hub.registry import Registry
from dragoman.hub.tasks import TaskBook
from dragoman.hub.validate import Schemas
from dragoman.model.secret import Secret
from dragoman.net.addresses import AddressRule
from dragoman.net.client import Client
from dragoman.net.dial import DialLimits
from dragoman.net.pool import ClientLimits
from dragoman.observe import logs
from dragoman.observe.calls import CallLog
from dragoman.ports.bus import AGENTS_CHANGED, KEY_REVOKED, Bus, Lost
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.store import Store, Vault
from dragoman.security.admin import load_admin_token
from dragoman.security.private_files import private_directory
from dragoman.security.sealed import Purpose, RootKey, Sealer, load_root_key
from dragoman.security.tokens import HubTokens, SigningKey, new_signing_key, public_jwks, restore_signing_key
from dragoman.server import run
from dragoman.server.asgi import Application
from dragoman.server.drain import Drain
from dragoman.server.exchange import Exchanger
from dragoman.server.hosts import Hosts
from dragoman.server.lifespan import Living
from dragoman.server.limits import Limits
from dragoman.server.pages import agents, documents, health, keys

__all__ = ["Facts", "StoreInUse", "living", "load_secrets", "log_form", "serve", "sqlite_store"]

LOG: Final = logging.getLogger("dragoman")
DATABASE: Final = "hub.db"
REPLICA: Final = "hub"  # SQLite has one process; its epochs tell its lives apart
SIGNING_KEY: Final = "hub signing key"
MIB: Final = 1024 * 1024
KIB: Final = 1024
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


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """What must be there before anything starts: the root key and, where callers need one, the admin token."""

    root: RootKey
    admin: Secret | None
    admin_is_new: bool


def sqlite_store(settings: Settings, clock: Clock, bus: Bus) -> Store:
    """The embedded store, in the data directory."""
    return SqliteStore(
        settings.data / DATABASE,
        clock=clock,
        bus=bus,
        hold_s=settings.calls.hold_ms / 1000,
        wal_mib=settings.sqlite.wal_mib,
        readers=settings.sqlite.readers,
    )


def serve(
    settings: Settings,
    *,
    banner: Callable[[Facts], None] | None = None,
    make_store: Callable[[Settings, Clock, Bus], Store] = sqlite_store,
) -> int:
    """Run the hub until it is told to stop; the process's exit code.

    Raises SecretRefused, CannotListen, StoreInUse before anything starts.
    """
    sys.setswitchinterval(SWITCH_S)
    gc.set_threshold(*GC_THRESHOLDS)
    form = log_form(settings)
    logs.configure(form, settings.log.level)
    secrets = load_secrets(settings)
    drain = Drain()
    clock = SystemClock()
    bus = LocalBus()
    store = make_store(settings, clock, bus)
    calls = CallLog(clock=clock, form=form, level=settings.log.level)

    def told(url: str) -> None:
        gc.freeze()  # What is there at the start stays: no collection need ever look at it again.
        if banner is not None:
            banner(_facts(settings, secrets, url))

    app = Living(lambda: living(settings, secrets, store=store, bus=bus, clock=clock, drain=drain, calls=calls))
    try:
        run.serve(
            app,
            host=settings.host,
            port=settings.port,
            limits=_limits(settings),
            tls=_tls(settings),
            drain=drain,
            drain_s=settings.calls.drain_s,
            on_ready=told,
            uncapped=[ip_network(proxy) for proxy in settings.trusted_proxies],
            clock=clock,
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
) -> AsyncGenerator[Application]:
    """A hub on these parts, from its start to its end."""
    await store.start()
    try:
        async with asyncio.TaskGroup() as group:

            def spawn(work: Coroutine[None, None, None]) -> asyncio.Task[None]:
                return group.create_task(_guarded(work))

            built = await _build(settings, secrets, store, bus, clock, drain, calls, spawn)
            listening = spawn(_forget_changes(bus, built.registry, built.authenticator, built.credentials))
            spawn(built.recovery.run())
            try:
                yield _application(settings, built, store, clock, drain)
            finally:
                listening.cancel()
                await built.client.close()
    finally:
        await bus.close()
        await store.close()
        calls.close()


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a hub that its surroundings still have to know."""

    hub: Hub
    registry: Registry
    authenticator: Authenticator
    credentials: Credentials
    ring: KeyRing
    client: Client
    recovery: Recovery
    signing_key: SigningKey


async def _build(
    settings: Settings,
    secrets: Secrets,
    store: Store,
    bus: Bus,
    clock: Clock,
    drain: Drain,
    calls: CallLog,
    spawn: Spawn,
) -> Built:
    """Every part, from the bottom up."""
    sealer = Sealer(secrets.root)
    pepper = secrets.root.subkey(Purpose.PEPPER)
    signing_key = await _signing_key(store, sealer)
    owner = await store.begin_epoch(REPLICA)
    spoken = frozenset(DIALECTS)
    client = Client(clock=clock, rule=_address_rule(settings), limits=_client_limits(settings))
    ring = KeyRing(keys=store, vault=store, clock=clock, pepper=pepper, sealer=sealer, random_bytes=os.urandom)
    credentials = Credentials(
        vault=store,
        sealer=sealer,
        clock=clock,
        tokens=HubTokens(signing_key, issuer=settings.public_url),
        signing_secret=ring.agent_secret,
    )
    wire = Wire(client=client, max_answer=settings.client.answer_mib * MIB)
    courier = HttpCourier(wire=wire, credentials=credentials, clock=clock, dialects=DIALECTS)
    registry = Registry(
        store=store,
        courier=courier,
        clock=clock,
        keys=ring,
        read_card=read_any_card,
        new_uuid=lambda: str(uuid.UUID(bytes=os.urandom(16), version=4)),
        spoken=spoken,
        max_card=settings.limits.card_kib * KIB,
    )
    authenticator = Authenticator(
        keys=store, clock=clock, pepper=pepper, admin_token=secrets.admin, trusting=settings.auth == "none"
    )
    schemas = Schemas()
    tasks = TaskBook(store=store, clock=clock, owner=owner, keep_h=settings.idempotency.keep_h)
    admission = Admission(
        registry=registry,
        tasks=tasks,
        schemas=schemas,
        clock=clock,
        spoken=spoken,
        timeout_s=settings.calls.timeout_s,
        max_timeout_s=settings.calls.max_timeout_s,
    )
    carrier = Carrier(courier=courier, tasks=tasks, schemas=schemas, clock=clock, spawn=spawn, ended=calls.write)
    hub = Hub(
        store=store,
        bus=bus,
        clock=clock,
        registry=registry,
        admission=admission,
        tasks=tasks,
        carrier=carrier,
        draining=lambda: drain.draining,
    )
    recovery = Recovery(
        store=store, owner=owner, clock=clock, admission=admission, tasks=tasks, carrier=carrier, spawn=spawn
    )
    return Built(
        hub=hub,
        registry=registry,
        authenticator=authenticator,
        credentials=credentials,
        ring=ring,
        client=client,
        recovery=recovery,
        signing_key=signing_key,
    )


def _application(settings: Settings, built: Built, store: Store, clock: Clock, drain: Drain) -> Application:
    exchanger = Exchanger(
        authenticator=built.authenticator,
        clock=clock,
        hosts=Hosts(public_url=settings.public_url, more=settings.hosts, loopback=settings.on_loopback),
        public_url=settings.public_url,
        depth=settings.limits.depth,
    )
    return Application(
        exchanger=exchanger,
        hub=built.hub,
        dialects=DIALECTS.values(),
        pages=(
            *health.pages(store, lambda: drain.draining),
            *agents.pages(built.hub),
            *keys.pages(built.ring, built.authenticator, built.credentials.forget),
            *documents.pages(settings, public_jwks([built.signing_key])),
        ),
        caps={
            "call": settings.limits.call_body_mib * MIB,
            "admin": settings.limits.admin_body_mib * MIB,
        },
    )


def load_secrets(settings: Settings) -> Secrets:
    """The root key and the admin token, made where they are missing. Raises SecretRefused."""
    private_directory(settings.data)
    if settings.root_key is not None:
        root = RootKey.from_text(settings.root_key.reveal(), source="DRAGOMAN_ROOT_KEY")
    else:
        root = load_root_key(settings.data)
    if settings.auth == "none":
        return Secrets(root=root, admin=None, admin_is_new=False)
    admin, is_new = load_admin_token(settings.data, settings.admin_token, loopback=settings.on_loopback)
    return Secrets(root=root, admin=admin, admin_is_new=is_new)


def log_form(settings: Settings) -> Literal["json", "pretty"]:
    """How logs are written: as set, else for people on a terminal and for machines elsewhere."""
    if settings.log.form != "auto":
        return settings.log.form
    return "pretty" if sys.stderr.isatty() else "json"


def _facts(settings: Settings, secrets: Secrets, url: str) -> Facts:
    given = settings.admin_token is not None or settings.auth == "none"
    return Facts(
        version=__version__,
        url=url,
        data=settings.data,
        auth=settings.auth,
        admin_token=secrets.admin if secrets.admin_is_new else None,
        admin_token_file=None if given else settings.data / "admin-token",
    )


async def _signing_key(vault: Vault, sealer: Sealer) -> SigningKey:
    """The key of the hub's own tokens: made on the first start, sealed ever after."""
    sealed = await vault.get_sealed(SIGNING_KEY)
    if sealed is not None:
        opened = sealer.open(sealed, table="sealed", column="value", row=SIGNING_KEY, tenant="")
        return restore_signing_key(Secret(opened.decode()))
    key = new_signing_key()
    plain = key.private_jwk.reveal().encode()
    await vault.put_sealed(SIGNING_KEY, sealer.seal(plain, table="sealed", column="value", row=SIGNING_KEY, tenant=""))
    return key


async def _forget_changes(bus: Bus, registry: Registry, authenticator: Authenticator, credentials: Credentials) -> None:
    """Drop from the caches what the bus says has changed; all of it, when something may have been missed."""

    async def changed_agents() -> None:
        async with bus.subscribe(AGENTS_CHANGED) as said:
            async for each in said:
                if isinstance(each, Lost):
                    registry.forget_all()
                else:
                    registry.forget(each.data.decode().rpartition("\n")[2])
                credentials.forget()

    async def revoked_keys() -> None:
        async with bus.subscribe(KEY_REVOKED) as said:
            async for each in said:
                authenticator.forget(None if isinstance(each, Lost) else each.data.decode())

    async with asyncio.TaskGroup() as group:
        group.create_task(changed_agents())
        group.create_task(revoked_keys())


async def _guarded(work: Coroutine[None, None, None]) -> None:
    """Work of the hub's own: what breaks in it is logged and ends nothing else."""
    try:
        await work
    except Exception:
        LOG.exception("background work broke")


def _address_rule(settings: Settings) -> AddressRule:
    own = [(settings.host, settings.port)]
    if settings.on_loopback:
        own += [("127.0.0.1", settings.port), ("::1", settings.port)]
    return AddressRule.of(settings.allow_networks, own=own)


def _client_limits(settings: Settings) -> ClientLimits:
    client = settings.client
    return ClientLimits(
        per_origin=client.connections_per_origin,
        total=client.connections,
        idle_s=client.idle_s,
        age_s=client.age_s,
        dial=DialLimits(connect_s=client.connect_s),
    )


def _limits(settings: Settings) -> Limits:
    limits = settings.limits
    return Limits(
        header_s=limits.header_s,
        body_s=limits.body_s,
        idle_s=limits.keepalive_s,
        reader_s=limits.stalled_reader_s,
        header_lines=limits.header_lines,
        header_bytes=limits.header_kib * KIB,
        url_bytes=limits.url_kib * KIB,
        connections=limits.connections,
        connections_per_address=limits.connections_per_address,
    )


def _tls(settings: Settings) -> run.Tls | None:
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return run.Tls(certificate=settings.tls_cert, key=settings.tls_key)
