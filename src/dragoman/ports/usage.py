"""What calls used up, as the store keeps it: sums of days, and what can be learnt from the calls themselves."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Protocol

import msgspec

from dragoman.model.task import Task
from dragoman.model.usage import Sums


class By(StrEnum):
    """By what usage is told apart."""

    CALLER = "caller"
    TARGET = "target"
    SKILL = "skill"
    MODEL = "model"
    CONVERSATION = "conversation"
    DAY = "day"


class DayOf(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Whose sums they are; `day` is counted from 1970 (UTC)."""

    day: int
    tenant: str
    caller: str
    target: str
    skill: str
    model: str


class UsageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which sums are asked for: those of a tenant, or of one caller of it, from one day to another."""

    by: By
    tenant: str
    caller: str | None
    first: int
    last: int


class UsageSum(msgspec.Struct, frozen=True, kw_only=True):
    """The sums of one caller, target, skill, model, conversation or day (by its number since 1970)."""

    name: str
    sums: Sums


class UsageDays(Protocol):
    """Sums of days."""

    async def add_usage(self, days: Sequence[tuple[DayOf, Sums]], at: datetime) -> None:
        """Add to the sums; all calls that ended before are counted with it."""
        ...

    async def uncounted(self, before: datetime) -> Sequence[Task] | None:
        """The calls that ended after sums were last added to, and before a time; None where that never was."""
        ...

    async def spent_on(self, day: int, tenant: str, caller: str) -> Sums:
        """What one caller used up on a day, as far as it was added."""
        ...

    async def usage_by(self, query: UsageQuery) -> Sequence[UsageSum]:
        """The sums that were asked for, in no order; not by conversation, which the days do not know."""
        ...


class Conversations(Protocol):
    """What the calls themselves tell."""

    async def calls_in(
        self, tenant: str, context_id: str, *, caller: str | None, since: datetime | None, most: int
    ) -> int:
        """How many calls a conversation has had, of one caller or all, counted up to a number."""
        ...

    async def spent_in(self, tenant: str, context_id: str, caller: str) -> Sums:
        """What a caller's calls in one conversation used up: of the newest thousands."""
        ...

    async def below(self, task_id: str, most: int) -> Sequence[Task]:
        """The calls that say they belong to one, up to a number."""
        ...
