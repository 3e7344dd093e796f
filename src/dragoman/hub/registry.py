"""The registry: agents taken in, found, ranked, and kept at hand for calls.

A call never reads an agent from the store twice: what was resolved is cached until the bus says that it changed.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.text import ID_GRAMMAR
from dragoman.hub.authenticate import ANONYMOUS, DEFAULT_TENANT, OPERATOR
from dragoman.hub.authorize import may_change
from dragoman.hub.key_ring import KEY_PREFIX, KeyRing
from dragoman.hub.validate import compile_skill
from dragoman.model.agent import Agent, AgentCard, AgentStatus, Binding, Endpoint, RateLimits
from dragoman.model.answers import AgentPage, Card, Registered, Versions
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound, BadParams, NotAuthenticated, NotAuthorized, TooLarge
from dragoman.model.json import JsonObject
from dragoman.model.operations import ChangeAgent, Discover, RegisterAgent
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier
from dragoman.ports.store import Registration, Scope, Store, Taken
from dragoman.security.scopes import CALL, RECEIVE, REGISTER

CACHED: Final = 10_000
# Paths of the hub's own, and names of callers: an agent's token stands for the agent's id, so an agent of such a name
# could do whatever that caller can.
RESERVED_IDS: Final = frozenset({"connect", "calls", "admin", OPERATOR.id, ANONYMOUS.id})

CardReader = Callable[[JsonObject, str | None], AgentCard]


class Registry:
    """Agents, for those who call them and those who own them."""

    def __init__(
        self,
        *,
        store: Store,
        courier: Courier,
        clock: Clock,
        keys: KeyRing,
        read_card: CardReader,
        new_uuid: Callable[[], str],
        spoken: frozenset[str],
        max_card: int,
    ) -> None:
        self._store = store
        self._courier = courier
        self._clock = clock
        self._keys = keys
        self._read_card = read_card
        self._new_uuid = new_uuid
        self._spoken = spoken
        self._max_card = max_card
        self._cache: dict[tuple[str, str], Agent] = {}

    async def resolve(self, caller: Caller, name: str) -> Agent:
        """The agent a caller means by an id, UUID or alias; `@version` pins a card.

        Raises AgentNotFound.
        """
        agent = self._cache.get((caller.tenant, name))
        if agent is None:
            agent = await self._load(caller.tenant, name)
        return agent

    async def best(self, caller: Caller, skill: str) -> Agent:
        """The best agent that has a skill.

        Raises AgentNotFound.
        """
        page = await self._store.search(self._scope(caller), Discover(skills=(skill,), limit=1))
        if not page.agents:
            raise AgentNotFound(f"No agent has the skill {skill!r}.", skill=skill)
        return page.agents[0]

    async def discover(self, caller: Caller, asked: Discover) -> AgentPage:
        """A page of the agents this caller may see. Raises NotAuthenticated, BadParams."""
        if caller.anonymous:
            seen = await self._store.search(self._scope(caller), Discover(limit=1))
            if not seen.agents:
                raise NotAuthenticated
        page = await self._store.search(self._scope(caller), asked)
        return AgentPage(agents=page.agents, total=page.total, exceeded=page.exceeded, cursor=page.cursor)

    async def card(self, caller: Caller, name: str) -> Card:
        """One agent, as this caller may see it. Raises AgentNotFound."""
        agent = await self.resolve(caller, name)
        return Card(agent=agent, owner=may_change(caller, agent))

    async def versions(self, caller: Caller, name: str) -> Versions:
        """The versions of an agent's card. Raises AgentNotFound."""
        agent = await self.resolve(caller, name)
        return Versions(agent_id=agent.id, versions=tuple(await self._store.versions(caller.tenant, agent.id)))

    async def register(self, caller: Caller, asked: RegisterAgent) -> Registered:
        """Take an agent in, or replace its card. Raises BadParams, NotAuthorized."""
        card = await self._card_of(asked)
        known = await self._store.find_agent(caller.tenant, card.id)
        if known is not None and not may_change(caller, known):
            raise NotAuthorized(f"The id {card.id} belongs to another key.", agent_id=card.id)
        now = self._clock.now()
        agent = _registered(card, known, caller, asked, now, self._new_uuid)
        _refuse_open_with_scopes(agent)
        if asked.credentials is not None:
            # First: were they refused afterwards, the agent would stand there and its token be lost.
            await self._courier.keep_credentials(agent, asked.credentials)
        stored = await self._store.register(Registration(agent=agent))
        if isinstance(stored, Taken):
            raise NotAuthorized(f"The id {stored.name} belongs to another key.", agent_id=stored.name)
        self.forget(stored.agent.id)
        if asked.credentials is not None and stored.agent.uuid != agent.uuid:
            await self._courier.keep_credentials(stored.agent, asked.credentials)  # revived under its old UUID
        if not stored.created:
            return Registered(agent=stored.agent, created=False)
        made = await self._keys.create(
            tenant=caller.tenant,
            principal=card.id,
            name=f"agent {card.id}",
            scopes=(CALL, RECEIVE, REGISTER),
            agent_id=card.id,
        )
        return Registered(agent=stored.agent, created=True, token=made.key, signing_secret=made.signing_secret)

    async def change(self, caller: Caller, asked: ChangeAgent) -> Card:
        """Pause, resume or remove an agent, or change its marks. Raises AgentNotFound, NotAuthorized, BadParams."""
        agent = await self.resolve(caller, asked.agent_id)
        if not may_change(caller, agent):
            raise NotAuthorized(f"{agent.id} belongs to another key.", agent_id=agent.id)
        if asked.open:
            _refuse_open_with_scopes(msgspec.structs.replace(agent, open=True))
        if asked.credentials is not None:
            await self._courier.keep_credentials(agent, asked.credentials)
        changed = await self._store.change_agent(
            agent.tenant, agent.id, asked.status, open_=asked.open, private=asked.private
        )
        self.forget(agent.id)
        if changed is None:
            raise AgentNotFound(agent_id=asked.agent_id)
        return Card(agent=changed, owner=True)

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        await self._courier.may_dial(url)

    def forget(self, agent_id: str) -> None:
        """Drop what is cached of an agent, under whatever name."""
        for name in [name for name, agent in self._cache.items() if agent.id == agent_id]:
            del self._cache[name]

    def forget_all(self) -> None:
        """Drop everything cached: something may have changed unseen."""
        self._cache.clear()

    async def _load(self, tenant: str, name: str) -> Agent:
        agent_name, at, version = name.partition("@")
        agent = await self._store.find_agent(tenant, agent_name, version if at else None)
        if agent is None or agent.status is AgentStatus.REMOVED:
            raise AgentNotFound(f"There is no agent {name!r}.", agent_id=name)
        if len(self._cache) >= CACHED:
            self._cache.clear()
        self._cache[tenant, name] = agent
        return agent

    async def _card_of(self, asked: RegisterAgent) -> AgentCard:
        if asked.url is not None:
            card = await self._courier.examine(asked.url, asked.dialect)
        elif asked.any_card is not None:
            card = self._read_card(asked.any_card, asked.dialect)
        elif asked.card is not None:
            card = asked.card
        else:
            raise BadParams("Send either agent_card or url.")
        if asked.id is not None:
            card = msgspec.structs.replace(card, id=_given_id(asked.id))
        if card.id in RESERVED_IDS or card.id.startswith(KEY_PREFIX):
            raise BadParams(f"id: {card.id} is reserved", errors=[{"path": "id", "message": "reserved"}])
        if card.original is not None and len(card.original.body) > self._max_card:
            raise TooLarge(f"agent_card: larger than {self._max_card} bytes", limit=self._max_card)
        for skill in card.skills:
            compile_skill(card, skill)
        callable_ones = [endpoint for endpoint in card.endpoints if can_call(endpoint, self._spoken)]
        if not callable_ones:
            named = ", ".join(sorted({f"{each.dialect} {each.binding}" for each in card.endpoints})) or "none"
            raise BadParams(
                f"agent_card: this hub calls none of its interfaces yet ({named})",
                errors=[{"path": "agent_card", "message": "no interface that this hub calls"}],
            )
        for endpoint in callable_ones:
            if endpoint.url is not None:
                await self._courier.may_dial(endpoint.url)
        return card

    def _scope(self, caller: Caller) -> Scope:
        tenant = DEFAULT_TENANT if caller.anonymous else caller.tenant
        return Scope(tenant=tenant, principal=None if caller.admin else caller.id)


def can_call(endpoint: Endpoint, spoken: frozenset[str]) -> bool:
    """Whether this hub has the words and the framing for an endpoint."""
    return endpoint.dialect in spoken and endpoint.binding is Binding.JSONRPC


def _given_id(given: str) -> str:
    if ID_GRAMMAR.fullmatch(given) is None:
        rule = "letters, digits, . _ and -, at most 128"
        raise BadParams(f"id: {rule}", errors=[{"path": "id", "message": rule}])
    return given


def _registered(
    card: AgentCard,
    known: Agent | None,
    caller: Caller,
    asked: RegisterAgent,
    now: datetime,
    new_uuid: Callable[[], str],
) -> Agent:
    if asked.rate_limits is not None:
        try:
            card = msgspec.structs.replace(card, limits=msgspec.convert(asked.rate_limits, RateLimits))
        except msgspec.ValidationError as error:
            raise BadParams(f"rate_limits: {error}", errors=[{"path": "rate_limits", "message": str(error)}]) from None
    if known is None:
        return Agent(
            card=card,
            uuid=new_uuid(),
            tenant=caller.tenant,
            owner_id=caller.id,
            registered_at=now,
            updated_at=now,
            open=bool(asked.open),
            private=bool(asked.private),
            tags=asked.tags,
        )
    return msgspec.structs.replace(
        known,
        card=card,
        updated_at=now,
        status=AgentStatus.ACTIVE if known.status is AgentStatus.REMOVED else known.status,
        open=known.open if asked.open is None else asked.open,
        private=known.private if asked.private is None else asked.private,
        tags=asked.tags or known.tags,
    )


def _refuse_open_with_scopes(agent: Agent) -> None:
    if agent.open and any(scope != CALL for scope in agent.card.scopes_required):
        raise BadParams(
            "open: an agent whose card requires scopes of its callers cannot be open to everyone",
            errors=[{"path": "open", "message": "the card requires scopes"}],
        )
