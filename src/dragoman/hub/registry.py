"""The registry: agents taken in, found, ranked, and kept at hand for calls.

A call never reads an agent from the store twice: what was resolved is cached until the bus says that it changed.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from dragoman import __version__
from dragoman.dialects.text import ID_GRAMMAR
from dragoman.dialects.uuids import is_uuid4
from dragoman.hub.acts import act_of, act_of_hub
from dragoman.hub.authenticate import ANONYMOUS, DEFAULT_TENANT, OPERATOR
from dragoman.hub.authorize import may_change
from dragoman.hub.card_hygiene import cleaned
from dragoman.hub.card_trust import CardJudge, Fetch, Judged, SignedForms, approved, is_same_card
from dragoman.hub.key_ring import KEY_PREFIX, KeyRing, require_admin
from dragoman.hub.validate import compile_skill
from dragoman.model.agent import Agent, AgentCard, AgentStatus, Binding, CardTrust, Endpoint, RateLimits, Trust
from dragoman.model.answers import AgentPage, Card, Registered, SignsCards, Versions
from dragoman.model.call import Caller
from dragoman.model.errors import (
    AgentNotFound,
    AgentUnavailable,
    BadParams,
    CapabilityMismatch,
    NotAuthenticated,
    NotAuthorized,
    NotSupported,
    TaskNotFound,
    TooLarge,
)
from dragoman.model.json import JsonObject
from dragoman.model.operations import ChangeAgent, Discover, RegisterAgent
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier
from dragoman.ports.store import Registration, Scope, Store, Taken
from dragoman.security.scopes import CALL, RECEIVE, REGISTER

CACHED: Final = 10_000
MOST_AGENTS: Final = 1000  # that the hub's own card looks at
MOST_SKILLS: Final = 100  # that it names
HUB_ID: Final = "dragoman"
# Paths of the hub's own, and names of callers: an agent's token stands for the agent's id, so an agent of such a name
# could do whatever that caller can.
RESERVED_IDS: Final = frozenset({"connect", "calls", "admin", HUB_ID, OPERATOR.id, ANONYMOUS.id})

CardReader = Callable[[JsonObject, str | None], AgentCard]


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """The card of a registration; where it is by a URL, where it was found and what else was seen."""

    card: AgentCard
    found_at: str | None = None
    probe: JsonObject | None = None


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
        spoken: Mapping[str, frozenset[Binding]],
        max_card: int,
        hub_uuid: str,
        protected: bool,
        default_agent: str | None,
        fetch: Fetch,
        signed_forms: Mapping[str, SignedForms],
        signer: SignsCards,
        root_agent: str | None = None,
        most_agents: int | None = None,
    ) -> None:
        self._store = store
        self._most_agents = most_agents  # of each tenant
        self._courier = courier
        self._clock = clock
        self._keys = keys
        self._read_card = read_card
        self._new_uuid = new_uuid
        self._spoken = spoken
        self._max_card = max_card
        self._hub_uuid = hub_uuid
        self._protected = protected
        self._default_agent = root_agent or default_agent
        self._root_agent = root_agent
        self._signer = signer
        self._judge = CardJudge(fetch=fetch, read_card=read_card, forms=signed_forms)
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

    async def target(self, caller: Caller, name: str | None, skill: str | None, continued: Task | None) -> Agent:
        """The agent that a call goes to: the one named, the one that has the task, or the best that there is.

        Raises AgentNotFound, TaskNotFound, BadParams where nothing says which.
        """
        named = None if name is None or self.is_hub(name) else await self.resolve(caller, name)
        if continued is not None:
            if named is not None and named.id != continued.agent_id:
                raise TaskNotFound(f"{named.id} has no task {continued.id!r}.", call_id=continued.id)
            return await self.resolve(caller, continued.agent_id)
        if named is not None:
            return named
        if skill is not None:
            return await self.best(caller, skill)
        if self._default_agent is not None:
            return await self.resolve(caller, self._default_agent)
        page = await self._store.search(self._scope(caller), Discover(limit=2))
        if len(page.agents) == 1:
            return page.agents[0]
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

    def endpoint_of(self, agent: Agent) -> Endpoint:
        """The first of the agent's endpoints that this hub speaks to. Raises AgentUnavailable."""
        for endpoint in agent.card.endpoints:
            if self._can_call(endpoint):
                return endpoint
        raise AgentUnavailable(f"{agent.id} has no endpoint that this hub can call.", agent_id=agent.id)

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
            if asked.mine:
                raise NotAuthenticated
            seen = await self._store.search(self._scope(caller), Discover(limit=1))
            if not seen.agents:
                raise NotAuthenticated
        # Whoever sees everything still has agents of its own.
        scope = Scope(tenant=caller.tenant, principal=caller.id) if asked.mine else self._scope(caller)
        page = await self._store.search(scope, asked)
        return AgentPage(agents=page.agents, total=page.total, exceeded=page.exceeded, cursor=page.cursor)

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
        return self._card(agent, owner=owner)

    async def versions(self, caller: Caller, name: str) -> Versions:
        """The versions of an agent's card. Raises AgentNotFound."""
        agent = await self.resolve(caller, name)
        return Versions(agent_id=agent.id, versions=tuple(await self._store.versions(caller.tenant, agent.id)))

    async def register(self, caller: Caller, asked: RegisterAgent, request_id: str | None = None) -> Registered:
        """Take an agent in, or replace its card. Raises BadParams, NotAuthorized, RateLimited beyond the quota."""
        came = await self._card_of(asked)
        card = came.card
        if self._root_agent is not None and card.id != self._root_agent:
            raise NotSupported(
                f"This is the server of one agent, {self._root_agent}: register {card.id} at a hub.", agent_id=card.id
            )
        known = await self._store.find_agent(caller.tenant, card.id)
        if known is not None and not may_change(caller, known):
            raise NotAuthorized(f"The id {card.id} belongs to another key.", agent_id=card.id)
        judged = await self._judged(caller.tenant, came, asked.card_keys, known)
        now = self._clock.now()
        agent = _registered(judged.card, known, caller, asked, now, self._new_uuid)
        agent = self._standing(msgspec.structs.replace(agent, probe=came.probe), judged.trust)
        _refuse_open_with_scopes(agent)
        if asked.credentials is not None:
            # First: were they refused afterwards, the agent would stand there and its token be lost.
            await self._courier.keep_credentials(agent, asked.credentials)
        act = act_of(caller, "agent.registered", f"{agent.id}@{agent.card.version}", request_id)
        stored = await self._store.register(Registration(agent=agent, act=act, most=self._most_agents))
        if isinstance(stored, Taken):
            raise NotAuthorized(f"The id {stored.name} belongs to another key.", agent_id=stored.name)
        self.forget(stored.agent.id)
        if asked.credentials is not None and stored.agent.uuid != agent.uuid:
            await self._courier.keep_credentials(stored.agent, asked.credentials)  # revived under its old UUID
        if not stored.created:
            return Registered(agent=stored.agent, created=False, protected=self._needs_credential(stored.agent))
        made = await self._keys.create(
            tenant=caller.tenant,
            principal=card.id,
            name=f"agent {card.id}",
            scopes=(CALL, RECEIVE, REGISTER),
            agent_id=card.id,
            by=caller,
            request_id=request_id,
        )
        return Registered(
            agent=stored.agent,
            created=True,
            token=made.key,
            signing_secret=made.signing_secret,
            protected=self._needs_credential(stored.agent),
        )

    async def connect(self, caller: Caller, card: AgentCard) -> Agent:
        """Take in an agent that connects, or its new card; what it brings unchanged is not written again.

        Raises BadParams, NotAuthorized.
        """
        known = await self._store.find_agent(caller.tenant, card.id)
        same = known is not None and known.id == card.id and known.card == cleaned(card)
        if known is not None and same and may_change(caller, known):
            return known
        return (await self.register(caller, RegisterAgent(card=card))).agent

    async def change(self, caller: Caller, asked: ChangeAgent, request_id: str | None = None) -> Card:
        """Pause, resume or remove an agent, or change its marks. Raises AgentNotFound, NotAuthorized, BadParams."""
        agent = await self.resolve(caller, asked.agent_id)
        if not may_change(caller, agent):
            raise NotAuthorized(f"{agent.id} belongs to another key.", agent_id=agent.id)
        if asked.status is AgentStatus.REMOVED and agent.id == self._root_agent:
            raise NotSupported(f"This is the server of {agent.id}: stop it instead.", agent_id=agent.id)
        if asked.approve:
            agent = await self._approve(caller, agent, request_id)
        elif agent.status is AgentStatus.QUARANTINED and asked.status in (AgentStatus.ACTIVE, AgentStatus.PAUSED):
            raise NotAuthorized(in_quarantine(agent), agent_id=agent.id, reason="quarantined")
        if asked.open:
            _refuse_open_with_scopes(msgspec.structs.replace(agent, open=True))
        if asked.card is not None:
            card = msgspec.structs.replace(asked.card, id=agent.id)
            agent = (await self.register(caller, RegisterAgent(card=card), request_id)).agent
        if asked.credentials is not None:
            await self._courier.keep_credentials(agent, asked.credentials)
        if asked.probe:
            agent = await self.look_again(agent.tenant, agent.id)
        changed = await self._store.change_agent(
            agent.tenant,
            agent.id,
            asked.status,
            open_=asked.open,
            private=asked.private,
            act=act_of(caller, _action(asked), agent.id, request_id),
        )
        self.forget(agent.id)
        if changed is None:
            raise AgentNotFound(agent_id=asked.agent_id)
        return self._card(changed, owner=True)

    async def look_again(self, tenant: str, agent_id: str) -> Agent:
        """See what an agent really speaks now: its endpoints become those that answer, the rest of its card stays.

        Raises AgentNotFound, BadParams with what was seen where nothing answers; then nothing changes.
        """
        agent = await self._store.find_agent(tenant, agent_id)
        if agent is None:
            raise AgentNotFound(f"There is no agent {agent_id!r}.", agent_id=agent_id)
        url = _url_of(agent)
        if url is None:
            raise BadParams(f"{agent_id} has no URL that could be looked at.")
        seen = await self._courier.examine(url, agent=agent)
        endpoints = tuple(each for each in seen.card.endpoints if self._can_call(each))
        for endpoint in endpoints:
            await self._courier.may_dial(endpoint.url or "")
        card, agent = agent.card, await self._store.find_agent(tenant, agent_id)
        if agent is None or agent.card != card:
            # Whoever registered it meanwhile knows better.
            raise AgentUnavailable(f"{agent_id} was changed while it was looked at.", agent_id=agent_id)
        changes: JsonObject = {"probe": seen.probe}
        trust = agent.trust
        if trust.key is not None and seen.body is not None:
            shown = cleaned(msgspec.structs.replace(seen.card, id=agent.id), seen.body)
            judged = await self._judge.judge(shown, trust, found_at=seen.found_at)
            trust, endpoints = judged.trust, judged.card.endpoints
        elif trust.level is Trust.UNVERIFIED and is_same_card(agent.card, seen.body):
            trust = msgspec.structs.replace(trust, level=Trust.ENDPOINT)
        if endpoints and endpoints != agent.card.endpoints and not trust.doubt:
            card = msgspec.structs.replace(agent.card, endpoints=endpoints)
            changes |= {"card": card, "updated_at": self._clock.now()}
        agent = self._standing(msgspec.structs.replace(agent, **changes), trust)
        act = act_of_hub("agent.probed", agent.id, agent.tenant)
        stored = await self._store.register(Registration(agent=agent, act=act))
        self.forget(agent_id)
        return agent if isinstance(stored, Taken) else stored.agent

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

    def _card(self, agent: Agent, *, owner: bool) -> Card:
        return Card(
            agent=agent,
            owner=owner,
            protected=self._needs_credential(agent),
            at_root=agent.id == self._root_agent,
            signer=self._signer,
        )

    def _needs_credential(self, agent: Agent) -> bool:
        return self._protected and not agent.open

    def _can_call(self, endpoint: Endpoint) -> bool:
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

    async def _judged(self, tenant: str, came: Came, keys: tuple[JsonObject, ...], known: Agent | None) -> Judged:
        """What the card of a registration is worth; a removed agent's key counts as long as its tombstone."""
        before = known or await self._store.find_agent(tenant, came.card.id, removed=True)
        trust = CardTrust() if before is None else before.trust
        return await self._judge.judge(came.card, trust, found_at=came.found_at, keys=keys)

    def _standing(self, agent: Agent, trust: CardTrust) -> Agent:
        """The agent as its card is worth; in doubt it is quarantined, and stays so whatever it shows next.

        Where nobody is asked who he is, everybody is the administrator who would have to approve.
        """
        if trust.doubt and not self._protected:
            trust = approved(trust)
        status = AgentStatus.QUARANTINED if trust.doubt else agent.status
        return msgspec.structs.replace(agent, trust=trust, status=status)

    async def _approve(self, caller: Caller, agent: Agent, request_id: str | None) -> Agent:
        """Let an administrator end the doubt about an agent's card. Raises NotAuthorized, BadParams."""
        require_admin(caller)
        known = await self._store.find_agent(agent.tenant, agent.id)
        if known is None or known.status is not AgentStatus.QUARANTINED:
            raise BadParams(f"{agent.id} is not quarantined.", agent_id=agent.id)
        changed = msgspec.structs.replace(
            known, status=AgentStatus.ACTIVE, trust=approved(known.trust), updated_at=self._clock.now()
        )
        act = act_of(caller, "agent.approved", f"{agent.id}@{known.card.version}", request_id)
        stored = await self._store.register(Registration(agent=changed, act=act))
        self.forget(agent.id)
        return changed if isinstance(stored, Taken) else stored.agent

    async def _card_of(self, asked: RegisterAgent) -> Came:
        """The card of a registration, clean and such that it can be called."""
        probe: JsonObject | None = None
        came, found_at = asked.came, None
        if asked.url is not None:
            seen = await self._courier.examine(asked.url, asked.dialect, credentials=asked.credentials)
            card, probe, came, found_at = seen.card, seen.probe, seen.body, seen.found_at
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
        card = cleaned(card, came)
        if card.original is not None and len(card.original.as_it_came) > self._max_card:
            raise TooLarge(f"agent_card: larger than {self._max_card} bytes", limit=self._max_card)
        for skill in card.skills:
            compile_skill(card, skill)
        callable_ones = [endpoint for endpoint in card.endpoints if self._can_call(endpoint)]
        if not callable_ones:
            named = ", ".join(sorted({f"{each.dialect} {each.binding}" for each in card.endpoints})) or "none"
            raise BadParams(
                f"agent_card: this hub calls none of its interfaces yet ({named})",
                errors=[{"path": "agent_card", "message": "no interface that this hub calls"}],
            )
        for endpoint in callable_ones:
            if endpoint.url is not None:
                await self._courier.may_dial(endpoint.url)
        return Came(card=card, found_at=found_at, probe=probe)

    def _scope(self, caller: Caller) -> Scope:
        tenant = DEFAULT_TENANT if caller.anonymous else caller.tenant
        return Scope(tenant=tenant, principal=None if caller.admin else caller.id)


def _action(asked: ChangeAgent) -> str:
    """What a change is, in the audit's words."""
    match asked.status:
        case AgentStatus.REMOVED:
            return "agent.removed"
        case AgentStatus.PAUSED:
            return "agent.paused"
        case AgentStatus.ACTIVE:
            return "agent.resumed"
        case _:
            return "agent.changed"


def in_quarantine(agent: Agent) -> str:
    """Why nobody can call an agent whose card is in doubt, and who can change that."""
    return (
        f"{agent.id} is quarantined: {agent.trust.doubt}. An administrator approves it with "
        f"`dragoman agents approve {agent.id}`."
    )


def _url_of(agent: Agent) -> str | None:
    """Where to look at an agent: at the URL it was registered by, else at its first endpoint."""
    given = None if agent.probe is None else agent.probe.get("url")
    named = next((each.url for each in agent.card.endpoints if each.url is not None), None)
    return given if isinstance(given, str) else named


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
            aliases=card.aliases,
            tags=asked.tags,
        )
    return msgspec.structs.replace(
        known,
        card=card,
        updated_at=now,
        status=AgentStatus.ACTIVE if known.status is AgentStatus.REMOVED else known.status,
        open=known.open if asked.open is None else asked.open,
        private=known.private if asked.private is None else asked.private,
        aliases=card.aliases,
        tags=asked.tags or known.tags,
    )


def _refuse_open_with_scopes(agent: Agent) -> None:
    if agent.open and any(scope != CALL for scope in agent.card.scopes_required):
        raise BadParams(
            "open: an agent whose card requires scopes of its callers cannot be open to everyone",
            errors=[{"path": "open", "message": "the card requires scopes"}],
        )
