"""What settings mean for the parts: each function makes one part's own terms of them."""

import logging
import sys
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, Literal

import msgspec

from dragoman.config import Settings
from dragoman.delivery.key_file import KeyFileSource
from dragoman.hub.authenticate import DEFAULT_TENANT, OPERATOR
from dragoman.hub.flow.pressure import Thresholds
from dragoman.hub.quotas import Quotas
from dragoman.hub.retention import Retention
from dragoman.model.agent import Agent, RateLimits
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.net.addresses import AddressRule
from dragoman.net.client import Client
from dragoman.net.dial import DialLimits
from dragoman.net.errors import NetError
from dragoman.net.origin import ClientLimits
from dragoman.observe.export import Exporter, Spans, Unreached
from dragoman.observe.otel_settings import destination
from dragoman.ports.clock import Clock
from dragoman.ports.store import Housekeeping, Store, Vault
from dragoman.security.key_manager import KeyManager
from dragoman.security.sealed import Sealer
from dragoman.server import run
from dragoman.server.limits import Limits

LOG: Final = logging.getLogger("dragoman.server")
KIB: Final = 1024
ANYWHERE: Final = ("0.0.0.0/0", "::/0")
MEMORY_SHARE: Final = 0.8  # of what the process may hold
ADMINISTRATORS: Final = ("admin", OPERATOR.id)  # who comes with the admin token, and everybody where nobody needs one


def log_form(settings: Settings) -> Literal["json", "pretty"]:
    """How logs are written: as set, else for people on a terminal and for machines elsewhere."""
    if settings.log.form != "auto":
        return settings.log.form
    return "pretty" if sys.stderr.isatty() else "json"


def address_rule(settings: Settings) -> AddressRule:
    """Where agents and callbacks may live; never where this hub itself listens."""
    own = [(settings.host, settings.port)]
    if settings.on_loopback:
        own += [("127.0.0.1", settings.port), ("::1", settings.port)]
    return AddressRule.of(settings.allow_networks, own=own)


def client_limits(settings: Settings) -> ClientLimits:
    """Bounds of the outgoing client."""
    client = settings.client
    return ClientLimits(
        per_origin=client.connections_per_origin,
        total=client.connections,
        idle_s=client.idle_s,
        age_s=client.age_s,
        dial=DialLimits(connect_s=client.connect_s),
    )


def key_file_of(settings: Settings, vault: Vault, sealer: Sealer) -> KeyFileSource | None:
    """Where credentials are looked up that no owner stored: for the agents of the hub's own administrators."""
    if settings.key_file is None:
        return None

    def is_administrators(agent: Agent) -> bool:
        return agent.tenant == DEFAULT_TENANT and agent.owner_id in ADMINISTRATORS

    keys = KeyManager(settings.key_file)
    return KeyFileSource(keys, vault=vault, sealer=sealer, is_administrators=is_administrators)


def protocol_limits(settings: Settings) -> Limits:
    """What one client may take of the server."""
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


def tls_of(settings: Settings) -> run.Tls | None:
    """Certificate and key, if this process ends TLS itself."""
    if settings.tls_cert is None or settings.tls_key is None:
        return None
    return run.Tls(certificate=settings.tls_cert, key=settings.tls_key)


def quotas_of(settings: Settings, store: Housekeeping, clock: Clock) -> Quotas:
    """What each tenant may have."""
    quotas = settings.quotas
    return Quotas(
        store=store,
        clock=clock,
        agents=quotas.agents,
        open_calls=quotas.open_calls,
        stored_bytes=None if quotas.stored_mib is None else quotas.stored_mib * KIB * KIB,
    )


def retention_of(settings: Settings, store: Store, clock: Clock) -> Retention:
    """How long what has ended is kept."""
    calls_d, audit_d = settings.tasks.keep_d, settings.audit.keep_d
    return Retention(
        store=store,
        clock=clock,
        calls_for=None if calls_d is None else timedelta(days=calls_d),
        audit_for=None if audit_d is None else timedelta(days=audit_d),
    )


def tenant_limits(settings: Settings) -> RateLimits | None:
    """How often each tenant may call; None where that is not limited."""
    quotas = settings.quotas
    limits = RateLimits(
        requests_per_minute=quotas.requests_per_minute,
        requests_per_hour=quotas.requests_per_hour,
        concurrent_requests=quotas.concurrent_requests,
    )
    return None if limits == RateLimits() else limits


def pressure_of(settings: Settings, limit_bytes: int | None) -> Thresholds:
    """From where on the hub refuses, in a process that may hold so much memory."""
    pressure = settings.pressure
    memory_bytes = None if limit_bytes is None else int(limit_bytes * MEMORY_SHARE)
    if pressure.memory_mib is not None:
        memory_bytes = pressure.memory_mib * KIB * KIB
    return Thresholds(
        lag_s=pressure.lag_ms / 1000,
        full_lag_s=pressure.full_lag_ms / 1000,
        turn_s=pressure.turn_ms / 1000,
        waiting=pressure.waiting,
        full_waiting=pressure.full_waiting,
        waited_s=pressure.waited_s,
        full_waited_s=pressure.full_waited_s,
        memory_bytes=memory_bytes,
    )


class Exporting(msgspec.Struct, frozen=True):
    """The exporter of spans, and its own way out: where it goes is the operator's setting, wherever that is."""

    exporter: Exporter
    client: Client

    async def finish(self) -> None:
        """The hub stops: send what is left, and close."""
        await self.exporter.finish()
        await self.client.close()


def exporting_of(environ: Mapping[str, str], spans: Spans, clock: Clock) -> Exporting | None:
    """What OpenTelemetry's variables ask for; None where spans go nowhere."""
    to = destination(environ, LOG.warning)
    if to is None:
        return None
    client = Client(clock=clock, rule=AddressRule.of(ANYWHERE, plain_http_anywhere=True))

    async def post(request: HttpRequest, deadline: float) -> HttpReply:
        try:
            return await client.send(request, deadline=deadline, max_body=KIB * KIB, repeatable=True)
        except NetError as error:
            raise Unreached(str(error)) from None

    return Exporting(Exporter(to, spans=spans, post=post, clock=clock), client)
