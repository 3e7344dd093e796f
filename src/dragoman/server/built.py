"""What a hub is put together from and consists of, for those who serve it or live beside it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Final, Protocol

import msgspec

from dragoman.delivery.connections import Connections
from dragoman.delivery.credentials import Credentials
from dragoman.dialects.dialect import Dialect
from dragoman.hub.audit import AuditDesk, Heads
from dragoman.hub.authenticate import Authenticator
from dragoman.hub.boxes import Boxes
from dragoman.hub.card_key import CardKey
from dragoman.hub.durations import Estimates
from dragoman.hub.figures import Figures
from dragoman.hub.files import Files
from dragoman.hub.flow.breakers import Breakers
from dragoman.hub.flow.gate import Gate
from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.flow.spending import Spending
from dragoman.hub.forgetting import Forgetter
from dragoman.hub.handle import Hub
from dragoman.hub.health import Health
from dragoman.hub.inspection import Inspection
from dragoman.hub.key_ring import KeyRing
from dragoman.hub.presence import Presence
from dragoman.hub.quotas import Quotas
from dragoman.hub.registry import Registry
from dragoman.hub.retention import Retention
from dragoman.hub.series import Series
from dragoman.hub.signing_keys import SigningKeys
from dragoman.hub.traces import Traces
from dragoman.hub.worker import Worker
from dragoman.model.json import JsonObject
from dragoman.model.secret import Secret
from dragoman.net.client import Client
from dragoman.observe.metrics import Metrics
from dragoman.observe.noticed import Noticed
from dragoman.observe.scrape import Scrape
from dragoman.observe.wall_watch import WallWatch
from dragoman.security.file_links import FileLinks
from dragoman.security.sealed import RootKey
from dragoman.server.desk import Desk
from dragoman.server.from_settings import (
    Exporting,
)

MIB: Final = 1024 * 1024


class Secrets(msgspec.Struct, frozen=True, kw_only=True):
    """What must be there before anything starts: the root key and, where callers need one, the admin token."""

    root: RootKey
    admin: Secret | None
    admin_is_new: bool


class Built(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a hub that its surroundings still have to know."""

    hub: Hub
    boxes: Boxes
    registry: Registry
    authenticator: Authenticator
    credentials: Credentials
    ring: KeyRing
    client: Client
    dialects: Mapping[str, Dialect]
    calls: Worker
    callbacks: Worker
    workflows: Worker
    estimates: Estimates
    figures: Figures
    series: Series
    health: Health
    spending: Spending
    files: Files
    links: FileLinks
    signing_keys: SigningKeys
    card_key: CardKey
    distrust: Callable[[], None]  # what the hub has signed so far must not count any more
    connections: Connections
    presence: Presence
    desk: Desk
    noticed: Noticed
    quotas: Quotas
    retention: Retention
    inspection: Inspection
    gate: Gate
    heads: Heads
    audit: AuditDesk
    forgetter: Forgetter
    breakers: Breakers
    traces: Traces
    exporting: Exporting | None
    pressure: Pressure
    wall: WallWatch
    metrics: Metrics
    scrape: Scrape
    set_level: Callable[[str], None]


class Resident(Protocol):
    """What lives in the hub's own process: the agent whose server this is, or agents under test."""

    @property
    def root_agent(self) -> str | None:
        """The agent whose base is the root, where this is the server of one agent."""
        ...

    def living(self, built: Built) -> AbstractAsyncContextManager[None]:
        """Its life beside the hub: entered before the first request, left after the last."""
        ...

    def verify(self, token: str, now: datetime) -> JsonObject | None:
        """What a token of somebody else's says that is taken here, in the words of our own; None if it is none."""
        ...

    async def finish(self) -> None:
        """The process stops: return when no call runs here any more."""
        ...
