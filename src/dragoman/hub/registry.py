"""The registry: agents found by their names, shown, and kept at hand for calls.

A call never reads an agent from the store twice: what was resolved is cached until the bus says that it changed.
Does not take agents in (`intake.py`), nor choose one by its skill (`routing.py`).
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman import __version__
from dragoman.dialects.uuids import is_uuid4
from dragoman.hub.authenticate import DEFAULT_TENANT, OPERATOR
from dragoman.hub.authorize import may_change
from dragoman.model.agent import Agent, AgentCard, AgentStatus, Binding, Endpoint
from dragoman.model.answers import AgentPage, Card, SignsCards, Versions
from dragoman.model.call import Caller
from dragoman.model.errors import (
    AgentNotFound,
    AgentUnavailable,
    BadParams,
    CapabilityMismatch,
    NotAuthenticated,
    TaskNotFound,
)
from dragoman.model.operations import Discover, SendTask
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier
from dragoman.ports.store import Scope, Store

CACHED: Final = 10_000
MOST_AGENTS: Final = 1000  # that the hub's own card looks at
MOST_SKILLS: Final = 100  # that it names
HUB_ID: Final = "dragoman"


class Registry:
    """Agents, for those who call them and those who own them."""

    def __init__(
        self,
        *,
        store: Store,
        courier: Courier,
        clock: Clock,
        spoken: Mapping[str, frozenset[Binding]],
        hub_uuid: str,
        protected: bool,
        default_agent: str | None,
        signer: SignsCards,
        root_agent: str | None = None,
        changed: Callable[[], None] = lambda: None,
        seen_at: Callable[[str, str], datetime | None] = lambda _tenant, _agent: None,
    ) -> None:
        self._store = store
        self._courier = courier
        self._spoken = spoken
        self._hub_uuid = hub_uuid
        self._protected = protected
        self._default_agent = root_agent or default_agent
        self._root_agent = root_agent
        self._signer = signer
        self._changed = changed  # told that some agent stands differently than before
        self._seen_at = seen_at  # when an agent last answered, where that is newer than what is stored
        self._started_at = clock.now()
        self._cache: dict[tuple[str, str], Agent] = {}

    async def resolve(self, caller: Caller, name: str) -> Agent:
        """The agent a caller means by an id, UUID or alias; `@version` pins a card.

        Raises AgentNotFound.
        """
        agent = self._cache.get((caller.tenant, name))
        if agent is None:
            agent = await self._load(caller.tenant, name)
        return agent

    def target(self, caller: Caller, name: str | None, continued: Task | None) -> Agent | Awaitable[Agent]:
        """The agent that a call goes to: the one named, the one that has the task, or the only one that there is.

        At hand, or to be awaited: that raises AgentNotFound, TaskNotFound, BadParams where nothing says which.
        """
        if name is None or continued is not None or name == self._hub_uuid:
            return self._meant(caller, name, continued)
        return self._cache.get((caller.tenant, name)) or self._load(caller.tenant, name)

    async def _meant(self, caller: Caller, name: str | None, continued: Task | None) -> Agent:
        named = None if name is None or self.is_hub(name) else await self.resolve(caller, name)
        if continued is not None:
            if named is not None and named.id != continued.agent_id:
                raise TaskNotFound(f"{named.id} has no task {continued.id!r}.", call_id=continued.id)
            return await self.resolve(caller, continued.agent_id)
        if named is not None:
            return named
        if self._default_agent is not None:
            return await self.resolve(caller, self._default_agent)
        page = await self._store.search(self._scope(caller), Discover(limit=2))
        if len(page.agents) == 1:
            return await self.resolve(caller, page.agents[0].id)
        raise BadParams("Nothing says which agent is meant: post to /agents/{id}/, or name an agent or a skill.")

    async def speaking(self, caller: Caller, sender: str, *, registered: bool) -> Caller:
        """The caller as the agent it says it is, if it may speak for that one.

        Raises CapabilityMismatch, AgentNotFound where only a registered one will do: a UUID that nobody has passes
        where nobody is asked who he is, and is nobody's to speak for elsewhere.
        """
        try:
            agent = await self.resolve(caller, sender)
        except AgentNotFound:
            if registered and (caller.anonymous or not is_uuid4(sender)):
                raise
            if not registered or not self._protected:
                return caller  # A name of the caller's own: nobody is harmed by it.
            agent = None
        if agent is not None and agent.id == caller.agent_id:
            return caller
        if agent is None or not may_change(caller, agent):
            raise CapabilityMismatch(f"This key may not speak for {sender}.", sender=sender)
        return msgspec.structs.replace(caller, agent_id=agent.id)

    async def box(self, name: str, caller: Caller) -> str:
        """The mailbox that a name means, if the caller may read it. Raises CapabilityMismatch."""
        try:
            agent = await self.resolve(caller, name)
        except AgentNotFound:
            agent = None
        if not caller.admin and name != caller.name and (agent is None or not may_change(caller, agent)):
            raise CapabilityMismatch(f"This key may not read the mail of {name}.", agent=name)
        return name if agent is None else agent.id

    def is_hub(self, name: str) -> bool:
        """Whether a name is the hub's own."""
        return name == self._hub_uuid

    def names_only_skill(self, asked: SendTask) -> bool:
        """Whether a new call is for any agent that has its skill: none is named, or the hub."""
        if asked.skill is None or asked.continues is not None:
            return False
        return asked.agent is None or asked.agent == self._hub_uuid

    def endpoint_of(self, agent: Agent) -> Endpoint:
        """The first of the agent's endpoints that this hub speaks to. Raises AgentUnavailable."""
        for endpoint in agent.card.endpoints:
            if self.can_call(endpoint):
                return endpoint
        raise unspoken(agent)

    async def discover(self, caller: Caller, asked: Discover) -> AgentPage:
        """A page of the agents this caller may see. Raises NotAuthenticated, BadParams."""
        if caller.anonymous:
            if asked.mine:
                raise NotAuthenticated
            seen = await self._store.search(self._scope(caller), Discover(limit=1))
            if not seen.agents:
                raise NotAuthenticated
        # Whoever sees everything still has agents of its own.
        scope = Scope(tenant=caller.tenant, principal=caller.id) if asked.mine else self._scope(caller)
        page = await self._store.search(scope, asked)
        agents = tuple([self._as_seen(agent) for agent in page.agents])
        return AgentPage(agents=agents, total=page.total, exceeded=page.exceeded, cursor=page.cursor)

    async def card(self, caller: Caller, name: str | None) -> Card:
        """One agent, or the hub as one, as this caller may see it. Raises AgentNotFound."""
        if name is None or self.is_hub(name):
            return await self._hub_card(caller)
        agent = await self.resolve(caller, name)
        if agent.private and caller.anonymous:
            raise AgentNotFound(f"There is no agent {name!r}.", agent_id=name)
        owner = may_change(caller, agent)
        if agent.status is AgentStatus.QUARANTINED and not owner:
            raise AgentUnavailable(in_quarantine(agent), reason="quarantined", agent_id=agent.id)
        return self.shown(agent, owner=owner)

    async def versions(self, caller: Caller, name: str) -> Versions:
        """The versions of an agent's card. Raises AgentNotFound."""
        agent = await self.resolve(caller, name)
        return Versions(agent_id=agent.id, versions=tuple(await self._store.versions(caller.tenant, agent.id)))

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        await self._courier.may_dial(url)

    def forget(self, agent_id: str) -> None:
        """Drop what is cached of an agent, under whatever name."""
        for name in [name for name, agent in self._cache.items() if agent.id == agent_id]:
            del self._cache[name]
        self._changed()

    def forget_all(self) -> None:
        """Drop everything cached: something may have changed unseen."""
        self._cache.clear()
        self._changed()

    def refigured(self, agents: Sequence[Agent]) -> None:
        """These were measured anew: their figures are others, all else is as it was."""
        figures = {(agent.tenant, agent.id): agent.figures for agent in agents}
        for name, known in self._cache.items():
            found = figures.get((known.tenant, known.id))
            if found is not None:
                self._cache[name] = msgspec.structs.replace(known, figures=found)

    async def _hub_card(self, caller: Caller) -> Card:
        """The hub as an agent that has the skills of all its agents, and picks one for each call."""
        page = await self._store.search(self._scope(caller), Discover(limit=MOST_AGENTS))
        skills = {skill.id: skill for agent in page.agents for skill in agent.card.skills}
        at = max((agent.updated_at for agent in page.agents), default=self._started_at)
        card = AgentCard(
            id=HUB_ID,
            name="Dragoman",
            description="A hub: it hands each call to the best of its agents that has the skill.",
            version=__version__,
            skills=tuple(skills.values())[:MOST_SKILLS],
        )
        hub = Agent(
            card=card,
            uuid=self._hub_uuid,
            tenant=caller.tenant,
            owner_id=OPERATOR.id,
            registered_at=self._started_at,
            updated_at=at,
        )
        return Card(agent=hub, protected=self._protected, is_hub=True, signer=self._signer)

    def shown(self, agent: Agent, *, owner: bool) -> Card:
        """An agent, for one who may see it."""
        return Card(
            agent=self._as_seen(agent),
            owner=owner,
            protected=self.needs_credential(agent),
            at_root=agent.id == self._root_agent,
            signer=self._signer,
        )

    def needs_credential(self, agent: Agent) -> bool:
        """Whether who calls an agent has to say who it is."""
        return self._protected and not agent.open

    def can_call(self, endpoint: Endpoint) -> bool:
        """Whether this hub has the words and the framing for an endpoint."""
        return endpoint.binding in self._spoken.get(endpoint.dialect, ())

    async def _load(self, tenant: str, name: str) -> Agent:
        agent_name, at, version = name.partition("@")
        agent = await self._store.find_agent(tenant, agent_name, version if at else None)
        if agent is None and "/" in agent_name:
            owner, _, own = agent_name.partition("/")  # how a dialect whose names have an owner in them shows it
            found = await self._store.find_agent(tenant, own, version if at else None)
            agent = found if found is not None and found.id == own and found.owner_id == owner else None
        if agent is None or agent.status is AgentStatus.REMOVED:
            raise AgentNotFound(f"There is no agent {name!r}.", agent_id=name)
        if len(self._cache) >= CACHED:
            self._cache.clear()
        self._cache[tenant, name] = agent
        return agent

    def _as_seen(self, agent: Agent) -> Agent:
        """The agent with the time at which it last answered."""
        seen = self._seen_at(agent.tenant, agent.id)
        if seen is None:
            return agent
        return msgspec.structs.replace(agent, figures=msgspec.structs.replace(agent.figures, seen_at=seen))

    def _scope(self, caller: Caller) -> Scope:
        tenant = DEFAULT_TENANT if caller.anonymous else caller.tenant
        return Scope(tenant=tenant, principal=None if caller.admin else caller.id)


def unspoken(agent: Agent) -> AgentUnavailable:
    """The refusal of calls to an agent that this hub cannot speak to."""
    return AgentUnavailable(f"{agent.id} has no endpoint that this hub can call.", agent_id=agent.id)


def in_quarantine(agent: Agent) -> str:
    """Why nobody can call an agent whose card is in doubt, and who can change that."""
    return (
        f"{agent.id} is quarantined: {agent.trust.doubt}. An administrator approves it with "
        f"`dragoman agents approve {agent.id}`."
    )
