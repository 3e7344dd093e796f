"""Agents in the store: their cards, how they are found, what callers think of them, what was measured of them."""

from collections.abc import Sequence

import msgspec

from dragoman.backends.sqlite import agents, durations, minutes, ratings, search
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.shelf import Shelf
from dragoman.model.agent import Agent, AgentStatus, RateLimits
from dragoman.model.errors import RateLimited
from dragoman.model.operations import Discover
from dragoman.ports.audit import Act
from dragoman.ports.minutes import Measured, Minute, MinuteQuery
from dragoman.ports.store import AgentList, Rating, Registration, Scope, StoredAgent, Taken, Took


class AgentShelf(Shelf):
    """Agents, and their figures."""

    async def register(self, registration: Registration) -> StoredAgent | Taken:
        """Put an agent in, or replace its card: the owner's alone. Every card version stays readable.

        Raises RateLimited where its tenant has as many agents as it may.
        """
        self._file.space.refuse_new()
        agent, act = registration.agent, registration.act

        def noted(stored: StoredAgent | Taken | agents.Full) -> Act | None:
            if act is None or not isinstance(stored, StoredAgent):
                return None
            return msgspec.structs.replace(act, outcome="created" if stored.created else "changed")

        stored = await self._file.write(lambda connection: agents.register(connection, agent, registration.most), noted)
        if isinstance(stored, agents.Full):
            raise RateLimited(
                f"The tenant {agent.tenant} has {stored.most} agents, as many as it may.",
                reason="quota",
                quota="agents",
                limit=stored.most,
            )
        if isinstance(stored, StoredAgent):
            self._tell_agent(agent.tenant, agent.id)
        return stored

    async def find_agent(
        self, tenant: str, name: str, version: str | None = None, *, removed: bool = False
    ) -> Agent | None:
        """An agent by id, UUID or alias, with its current card or the one of that version; `removed`: its tombstone."""
        return await self._file.read(lambda connection: agents.find(connection, tenant, name, version, removed=removed))

    async def versions(self, tenant: str, agent_id: str) -> Sequence[str]:
        """The versions its card has had, newest first."""
        return await self._file.read(lambda connection: agents.versions(connection, tenant, agent_id))

    async def search(self, scope: Scope, query: Discover) -> AgentList:
        """Agents that match, best rating first. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: search.search(connection, scope, query))

    async def change_agent(
        self,
        tenant: str,
        agent_id: str,
        status: AgentStatus | None,
        open_: bool | None,
        private: bool | None,
        act: Act | None = None,
        limits: RateLimits | None = None,
    ) -> Agent | None:
        """Change how an agent stands; None if there is none. Empty limits take away those that were set."""

        def change(connection: Connection) -> Agent | None:
            return agents.change(connection, tenant, agent_id, status, open_, private, limits)

        agent = await self._file.write(change, lambda changed: None if changed is None else act)
        if agent is not None:
            self._tell_agent(tenant, agent_id)
        return agent

    async def agents_to_check(self, after: int, limit: int) -> Sequence[tuple[int, Agent]]:
        """Agents of all tenants that may be called, or might again, after a number, each with its own."""
        return await self._file.read(lambda connection: agents.to_check(connection, after, limit))

    async def rate(self, rating: Rating) -> Agent | None:
        """Keep a rating in place of the call's earlier one; the agent as it is rated now, None if there is none."""
        found = await self._file.write(lambda connection: ratings.rate(connection, rating))
        if found is None:
            return None
        agent, changed = found
        if changed:
            self._tell_agent(agent.tenant, agent.id)
        return agent

    async def add_minutes(self, counted: Sequence[Minute], measured: Sequence[Measured]) -> Sequence[Agent]:
        """Add what was counted, and let agents stand by what was measured; those that stand differently now."""
        return await self._file.write(lambda connection: minutes.add(connection, counted, measured))

    async def minutes(self, query: MinuteQuery) -> Sequence[Minute]:
        """What was counted, added up."""
        return await self._file.read(lambda connection: minutes.read(connection, query))

    async def put_took(self, histories: Sequence[Took]) -> None:
        """Keep these histories, each in place of the one that was there."""
        await self._file.write(lambda connection: durations.put(connection, histories))

    async def took(self, tenant: str, agent_id: str, skill: str) -> Sequence[int]:
        """The history of one skill; empty where there is none."""
        return await self._file.read(lambda connection: durations.get(connection, tenant, agent_id, skill))
