"""The ASGI application of a hub that was built: its dialects, its sockets, its pages."""

from dragoman.config import Settings
from dragoman.hub.deliveries import DeliveryDesk
from dragoman.hub.signatures import Signatures
from dragoman.hub.usage import UsageDesk
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store
from dragoman.server.agent_sockets import AgentSockets
from dragoman.server.asgi import Application
from dragoman.server.built import MIB, Built
from dragoman.server.drain import Drain
from dragoman.server.exchange import Exchanger
from dragoman.server.hosts import Hosts
from dragoman.server.pages import (
    agents,
    audit,
    bases,
    calls,
    connect,
    deliveries,
    documents,
    feed,
    files,
    health,
    keys,
    metrics,
    oauth,
    series,
    signing_keys,
    status,
    traces,
    usage,
)
from dragoman.server.proxies import proxies_of
from dragoman.server.sockets import Sockets


def application(
    settings: Settings, built: Built, store: Store, clock: Clock, drain: Drain, root_agent: str | None = None
) -> Application:
    """The ASGI application that serves a hub, or one agent at its root."""
    used = UsageDesk(store=store, ledger=built.spending.ledger)
    exchanger = Exchanger(
        authenticator=built.authenticator,
        signatures=Signatures(
            seen=store,
            secrets=built.ring.secrets,
            clock=clock,
            strict=settings.signing.strict,
            knows_all=settings.auth != "none" and root_agent is None,
        ),
        clock=clock,
        hosts=Hosts(public_url=settings.public_url, more=settings.hosts, loopback=settings.on_loopback),
        public_url=settings.public_url,
        depth=settings.limits.depth,
        noticed=built.noticed,
        metrics=built.metrics,
        proxies=proxies_of(settings.trusted_proxies),
    )
    return Application(
        exchanger=exchanger,
        sockets=Sockets(
            exchanger=exchanger,
            boxes=built.boxes,
            clock=clock,
            drain=drain,
            patience_s=settings.limits.stalled_reader_s,
        ),
        agent_sockets=AgentSockets(exchanger=exchanger, desk=built.desk, clock=clock, drain=drain),
        hub=built.hub,
        files=built.files,
        dialects=built.dialects.values(),
        registry=built.registry,
        pages=(
            *files.pages(store, built.links, clock),
            *health.pages(store, lambda: drain.draining, built.pressure, built.inspection),
            *status.pages(built.hub, lambda: drain.draining),
            *agents.pages(built.hub, built.credentials.facts, built.breakers.state),
            *connect.pages(built.desk),
            *series.pages(built.series),
            *calls.pages(built.hub, store, built.files, built.forgetter, used),
            *usage.pages(used),
            *feed.pages(built.hub),
            *traces.pages(built.traces),
            *audit.pages(built.audit),
            *metrics.pages(built.scrape, built.set_level, store, is_open=settings.metrics.open or settings.here_alone),
            *keys.pages(built.ring, built.authenticator, built.credentials.forget),
            *deliveries.pages(DeliveryDesk(store=store, clock=clock, due=built.callbacks.wake)),
            *oauth.pages(
                built.authenticator,
                built.signing_keys.signing,
                clock,
                settings.public_url,
                [each.issuer for each in settings.issuers],
            ),
            *signing_keys.pages(built.signing_keys, clock, built.distrust, store.note),
            *documents.pages(settings, lambda: built.card_key.jwks(built.signing_keys.jwks())),
            *bases.pages(built.hub, at_root=root_agent is not None),  # last: the root may be an agent's
        ),
        caps={
            "call": settings.limits.call_body_mib * MIB,
            "admin": settings.limits.admin_body_mib * MIB,
        },
        root_agent=root_agent,
        pressure=built.pressure,
    )
