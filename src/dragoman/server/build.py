"""Put a hub together, from the bottom up, on the store and the bus it is handed."""

import asyncio
import os
import uuid
from functools import partial
from typing import Final

import msgspec

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
from dragoman.net.client import Client
from dragoman.observe.calls import CallLog
from dragoman.ports.bus import AGENTS_CHANGED, KEY_REVOKED, Bus, Lost
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store, Vault
from dragoman.security.sealed import Purpose, RootKey, Sealer
from dragoman.security.tokens import HubTokens, SigningKey, new_signing_key, public_jwks, restore_signing_key
from dragoman.server.asgi import Application
from dragoman.server.drain import Drain
from dragoman.server.exchange import Exchanger
from dragoman.server.from_settings import address_rule, client_limits
from dragoman.server.hosts import Hosts
from dragoman.server.pages import agents, documents, health, keys

REPLICA: Final = "hub"  # SQLite has one process; its epochs tell its lives apart
SIGNING_KEY: Final = "hub signing key"
MIB: Final = 1024 * 1024
KIB: Final = 1024


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """What must be there before anything starts: the root key and, where callers need one, the admin token."""

    root: RootKey
    admin: Secret | None
    admin_is_new: bool


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


async def build(
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
    client = Client(clock=clock, rule=address_rule(settings), limits=client_limits(settings))
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
    # A turn later: the caller's answer leaves before its line is made.
    ended = partial(asyncio.get_running_loop().call_soon, calls.write)
    carrier = Carrier(courier=courier, tasks=tasks, schemas=schemas, clock=clock, spawn=spawn, ended=ended)
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


def application(settings: Settings, built: Built, store: Store, clock: Clock, drain: Drain) -> Application:
    """The ASGI application that serves a hub."""
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


async def forget_changes(bus: Bus, registry: Registry, authenticator: Authenticator, credentials: Credentials) -> None:
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
