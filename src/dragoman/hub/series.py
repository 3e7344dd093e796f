"""What calls came to over time, for those who look at graphs: read from the minutes on disk, nothing finer.

A caller sees the sums of its own tenant, an administrator those of all; with an agent, that agent's.
"""

from collections.abc import Sequence

import msgspec

from dragoman.hub.authorize import lacking
from dragoman.hub.figures import Figures
from dragoman.hub.registry import Registry
from dragoman.model.call import Caller
from dragoman.model.figures import Tally
from dragoman.ports.minutes import MinuteQuery, Minutes
from dragoman.security.scopes import CALL


class SeriesQuery(msgspec.Struct, frozen=True, kw_only=True):
    """From which minute (since 1970) up to which, so many at a time; of one agent, of one skill, or of all."""

    since: int
    until: int
    by: int
    agent: str | None = None
    skill: str | None = None


class Series:
    """Adds up minutes."""

    def __init__(self, *, store: Minutes, figures: Figures, registry: Registry) -> None:
        self._store = store
        self._figures = figures
        self._registry = registry

    async def of(self, caller: Caller, asked: SeriesQuery) -> tuple[Sequence[tuple[int, Tally]], Tally]:
        """The sums of each stretch in which there was something, by its first minute, and those of all of them.

        Raises NotAuthorized, AgentNotFound.
        """
        if CALL not in caller.scopes:
            raise lacking(caller, (CALL,))
        agent = None if asked.agent is None else await self._registry.resolve(caller, asked.agent)
        await self._figures.write()  # What was counted in the last seconds is in it, too.
        query = MinuteQuery(
            since=asked.since,
            until=asked.until,
            by=asked.by,
            tenant=None if caller.admin and agent is None else caller.tenant,
            agent_id=None if agent is None else agent.id,
            skill=asked.skill,
        )
        stretches: dict[int, Tally] = {}
        total = Tally()
        for row in await self._store.minutes(query):
            stretches.setdefault(row.minute, Tally()).add(row.counted)
            total.add(row.counted)
        return list(stretches.items()), total
