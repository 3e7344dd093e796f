"""What settings mean for the parts: each function makes one part's own terms of them."""

import sys
from typing import Final, Literal

from dragoman.config import Settings
from dragoman.delivery.key_file import KeyFileSource
from dragoman.hub.authenticate import DEFAULT_TENANT, OPERATOR
from dragoman.hub.quotas import Quotas
from dragoman.model.agent import Agent
from dragoman.net.addresses import AddressRule
from dragoman.net.dial import DialLimits
from dragoman.net.origin import ClientLimits
from dragoman.ports.clock import Clock
from dragoman.ports.store import Housekeeping, Vault
from dragoman.security.key_manager import KeyManager
from dragoman.security.sealed import Sealer
from dragoman.server import run
from dragoman.server.limits import Limits

KIB: Final = 1024
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
