"""What calls came to, minute by minute, and how agents stand by it: the part of the store that statistics live in."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.figures import Counted


class Minute(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one skill that came to the same within a minute (its number since 1970); checks have no skill."""

    tenant: str
    agent_id: str
    skill: str
    minute: int
    counted: Counted


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured of an agent of late: calls that count and those of them that failed, and the rest."""

    tenant: str
    agent_id: str
    calls: int
    failures: int
    p95_ms: int
    availability: float
    seen_at: datetime | None = None


class MinuteQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which minutes are added up: from one up to another, so many at a time; of a tenant, an agent, a skill, or all."""

    since: int
    until: int
    by: int
    tenant: str | None = None
    agent_id: str | None = None
    skill: str | None = None


class Minutes(Protocol):
    """Statistics."""

    async def add_minutes(self, counted: Sequence[Minute], measured: Sequence[Measured]) -> Sequence[Agent]:
        """Add these to what is there, and let agents stand by what was measured; the agents that stand differently."""
        ...

    async def minutes(self, query: MinuteQuery) -> Sequence[Minute]:
        """What there is, added up, in the order of time. Only with an agent's id each skill is told apart."""
        ...
