"""Which of the agents that connect to the hub are there: with a session they are active, without one unreachable.

An agent that its owner has paused or removed stays so. What was asked for last counts: changes of one agent are made
one after the other.
"""

from collections.abc import AsyncIterator, Callable
from typing import Final

from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.hub.carry import Spawn
from dragoman.model.agent import Agent, AgentStatus, Via
from dragoman.model.operations import Discover
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope, Store

PAGE: Final = 100
_STANDING: Final = frozenset({AgentStatus.ACTIVE, AgentStatus.UNREACHABLE})


class Presence:
    """Notes of one replica who is there."""

    def __init__(
        self, *, store: Store, clock: Clock, spawn: Spawn, lease_s: float, changed: Callable[[str], None]
    ) -> None:
        self._store = store
        self._changed = changed  # told the id of an agent that stands differently now
        self._clock = clock
        self._spawn = spawn
        self._lease_s = lease_s
        self._here: set[tuple[str, str]] = set()
        self._closed = False

    async def came(self, tenant: str, agent_id: str) -> None:
        """The agent has a session; returns when it can be called."""
        self._here.add((tenant, agent_id))
        await self._note(tenant, agent_id)

    def gone(self, tenant: str, agent_id: str, after_s: float) -> None:
        """The agent has no session any more; that counts if it has none after so many seconds."""
        self._here.discard((tenant, agent_id))
        self._clock.call_at(self._clock.monotonic() + after_s, lambda: self._missed(tenant, agent_id))

    def close(self) -> None:
        """The hub stops, and with it every session: that says nothing of the agents."""
        self._closed = True

    async def watch_start(self) -> None:
        """Give the agents of the hub's earlier life one lease to come back; then those that did not are away."""
        await self._clock.sleep(self._lease_s)
        for tenant in {DEFAULT_TENANT, *(key.tenant for key in await self._store.list_keys(None))}:
            async for agent in self._active(tenant):
                await self._note(tenant, agent.id)

    async def _active(self, tenant: str) -> AsyncIterator[Agent]:
        cursor: str | None = None
        while True:
            asked = Discover(status=AgentStatus.ACTIVE, limit=PAGE, cursor=cursor)
            page = await self._store.search(Scope(tenant=tenant, principal=None), asked)
            for agent in page.agents:
                if connects(agent):
                    yield agent
            cursor = page.cursor
            if cursor is None:
                return

    def _missed(self, tenant: str, agent_id: str) -> None:
        if not self._closed:
            self._spawn(self._note(tenant, agent_id))

    async def _note(self, tenant: str, agent_id: str) -> None:
        """Write down how the agent stands, until that is how it stands."""
        while True:
            agent = await self._store.find_agent(tenant, agent_id)
            here = (tenant, agent_id) in self._here
            status = AgentStatus.ACTIVE if here else AgentStatus.UNREACHABLE
            if agent is None or agent.status not in _STANDING or not connects(agent) or agent.status is status:
                return
            await self._store.change_agent(tenant, agent.id, status, open_=None, private=None)
            self._changed(agent.id)


def connects(agent: Agent) -> bool:
    """Whether an agent is called over connections that it opens."""
    return any(endpoint.via is Via.CONNECTED for endpoint in agent.card.endpoints)
