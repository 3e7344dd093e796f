"""Agents as the hub knows them: the canonical card, its skills and endpoints, and the agent behind it.

A card keeps the bytes it came as (`original`), so no field is lost and foreign signatures still hold.
"""

from datetime import datetime
from enum import StrEnum
from typing import Final

import msgspec

from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject
from dragoman.model.rating import FRESH


class Binding(StrEnum):
    """How a dialect's words are framed."""

    JSONRPC = "JSONRPC"
    HTTP = "HTTP+JSON"
    GRPC = "GRPC"
    WS = "WS"


class Via(StrEnum):
    """How an agent is reached: by its URL, by the connection it opened to the hub, or in this process."""

    HTTP = "http"
    CONNECTED = "connected"
    LOCAL = "local"


class AgentStatus(StrEnum):
    """Whether an agent can be called now."""

    ACTIVE = "active"
    PAUSED = "paused"
    UNREACHABLE = "unreachable"
    QUARANTINED = "quarantined"  # its card is in doubt, and an administrator has not approved it yet
    REMOVED = "removed"


ACTIVE: Final = AgentStatus.ACTIVE  # Bound once, for what every call asks: to find a member in its enum is dear.


class Trust(StrEnum):
    """How far an agent's card is vouched for."""

    UNVERIFIED = "unverified"
    ENDPOINT = "endpoint"  # the endpoint that is called serves this card
    SIGNED = "signed"  # it bears a signature that holds


class _Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    pass


class Skill(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """One thing an agent can do."""

    id: str
    name: str
    description: str = ""
    input_schema: JsonObject | None = None
    output_schema: JsonObject | None = None
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    examples: tuple[Json, ...] = ()
    scopes: tuple[str, ...] = ()
    idempotent: bool = False
    signed: bool = False
    metadata: JsonObject | None = None


class Endpoint(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """One way to reach an agent: a dialect, its framing, and where."""

    dialect: str
    binding: Binding = Binding.JSONRPC
    via: Via = Via.HTTP
    url: str | None = None
    version: str | None = None
    tenant: str | None = None
    features: frozenset[Feature] = frozenset()


class AuthScheme(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """How an agent wants its callers to authenticate."""

    kind: str  # none, apiKey, bearer, basic, oauth2, openIdConnect, mutualTLS, or the dialect's own word
    id: str | None = None
    description: str | None = None
    location: str | None = None
    name: str | None = None
    token_url: str | None = None
    scopes: tuple[str, ...] = ()
    service_identifier: str | None = None
    raw: JsonObject | None = None


class RateLimits(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent takes at most."""

    requests_per_minute: int | None = None
    requests_per_hour: int | None = None
    concurrent_requests: int | None = None

    def over(self, others: "RateLimits") -> "RateLimits":
        """These, and the others where these say nothing."""
        if others == NO_LIMITS:
            return self
        return RateLimits(
            requests_per_minute=_first(self.requests_per_minute, others.requests_per_minute),
            requests_per_hour=_first(self.requests_per_hour, others.requests_per_hour),
            concurrent_requests=_first(self.concurrent_requests, others.concurrent_requests),
        )


NO_LIMITS: Final = RateLimits()


def _first(mine: int | None, theirs: int | None) -> int | None:
    return theirs if mine is None else mine


class Provider(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """Who stands behind an agent."""

    name: str
    url: str | None = None
    contact: str | None = None


class Extension(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """A protocol extension that an agent offers or requires."""

    uri: str
    description: str | None = None
    required: bool = False
    params: JsonObject | None = None


class Original(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """A card as it came: which dialect, its JSON fit to be shown, and the very bytes where those are others."""

    dialect: str
    body: bytes
    verbatim: bytes | None = None

    @property
    def as_it_came(self) -> bytes:
        """The bytes that were sent to the hub, for those who check signatures."""
        return self.body if self.verbatim is None else self.verbatim


class AgentCard(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent says of itself, in no dialect's words."""

    id: str
    name: str
    description: str = ""
    version: str = "1.0.0"
    skills: tuple[Skill, ...] = ()
    endpoints: tuple[Endpoint, ...] = ()
    auth: tuple[AuthScheme, ...] = ()
    scopes_required: tuple[str, ...] = ()
    limits: RateLimits = NO_LIMITS
    streaming: bool = False
    push: bool = False
    memory: bool = False
    long_running: bool = False
    signed: bool = False
    extended: bool = False
    default_skill: str | None = None
    pricing: JsonObject | None = None
    labels: tuple[str, ...] = ()  # words of dialects whose capabilities are free words
    tags: tuple[str, ...] = ()
    input_modes: tuple[str, ...] = ()
    output_modes: tuple[str, ...] = ()
    extensions: tuple[Extension, ...] = ()
    provider: Provider | None = None
    links: dict[str, str] | None = None  # documentation, icon, privacy, terms
    keys: tuple[JsonObject, ...] = ()  # public JWKs for signatures and encryption
    aliases: tuple[str, ...] = ()  # further names under which it is known
    metadata: JsonObject | None = None
    original: Original | None = None

    def skill(self, skill_id: str) -> Skill | None:
        """The skill of that id or name."""
        for skill in self.skills:
            if skill.id == skill_id or skill.name == skill_id:
                return skill
        return None


class AgentFigures(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """What was measured of an agent; a fresh one starts with these (never taken from its card)."""

    rating: float = FRESH
    p95_ms: int = 0
    availability: float = 1.0
    calls: int = 0  # of the last day, that count for or against it
    failures: int = 0  # those of them that failed
    seen_at: datetime | None = None  # when it last answered

    @property
    def success(self) -> float:
        """The share of its calls that it completed; all of none."""
        return 1 - self.failures / self.calls if self.calls else 1.0


class CardTrust(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """What an agent's card was found to be worth, and the key that signs it from now on.

    In `doubt`, what is `offered` takes the place of the key once an administrator approves; none: no key does.
    """

    level: Trust = Trust.UNVERIFIED
    key: JsonObject | None = None  # the public JWK that signed the first signed card, and has to sign all later ones
    by: str = ""  # whose key it is: the origin that publishes it, or who gave it
    offered: JsonObject | None = None
    doubt: str = ""  # why the agent is quarantined


class Agent(_Record, frozen=True, kw_only=True, omit_defaults=True):
    """A registered agent: its card, whose it is, and how it stands."""

    card: AgentCard
    uuid: str
    tenant: str
    owner_id: str
    registered_at: datetime
    updated_at: datetime
    status: AgentStatus = AgentStatus.ACTIVE
    open: bool = False
    private: bool = False
    aliases: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    figures: AgentFigures = AgentFigures()
    probe: JsonObject | None = None  # what the hub saw when it last looked at the agent's URL
    trust: CardTrust = CardTrust()
    limits_set: RateLimits | None = None  # by its owner

    @property
    def id(self) -> str:
        """The id callers use."""
        return self.card.id

    @property
    def limits(self) -> RateLimits:
        """What it takes at most: what its owner set, and for the rest what its card says."""
        if self.limits_set is None:
            return self.card.limits
        return self.limits_set.over(self.card.limits)

    @property
    def trusted(self) -> Trust:
        """How far its card is vouched for; not at all while it is in doubt."""
        return Trust.UNVERIFIED if self.trust.doubt else self.trust.level
