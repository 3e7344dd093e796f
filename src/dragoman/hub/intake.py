"""Taking agents in: their cards read, cleaned, judged and kept; and what their owners change of them later.

Does not look at an agent that is registered already (`looking.py`), nor find one (`registry.py`).
"""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.text import ID_GRAMMAR
from dragoman.hub.acts import act_of
from dragoman.hub.authenticate import ANONYMOUS, OPERATOR
from dragoman.hub.authorize import may_change
from dragoman.hub.card_hygiene import cleaned
from dragoman.hub.card_trust import CardJudge, Judged, approved, standing
from dragoman.hub.key_ring import KEY_PREFIX, KeyRing, require_admin
from dragoman.hub.looking import SecondLook
from dragoman.hub.registry import HUB_ID, Registry, in_quarantine
from dragoman.hub.validate import compile_skill
from dragoman.model.agent import Agent, AgentCard, AgentStatus, CardTrust, Via
from dragoman.model.answers import Card, Registered
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound, BadParams, NotAuthorized, NotSupported, TooLarge
from dragoman.model.given_limits import limits_of
from dragoman.model.json import JsonObject
from dragoman.model.operations import ChangeAgent, RegisterAgent
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier
from dragoman.ports.store import Registration, Store, Taken
from dragoman.security.scopes import CALL, RECEIVE, REGISTER

# Paths of the hub's own, and names of callers: an agent's token stands for the agent's id, so an agent of such a name
# could do whatever that caller can.
RESERVED_IDS: Final = frozenset({"connect", "calls", "admin", HUB_ID, OPERATOR.id, ANONYMOUS.id})

CardReader = Callable[[JsonObject, str | None], AgentCard]


class Came(msgspec.Struct, frozen=True, kw_only=True):
    """The card of a registration; where it is by a URL, where it was found and what else was seen."""

    card: AgentCard
    found_at: str | None = None
    probe: JsonObject | None = None


class Intake:
    """Takes agents in, for those who own them."""

    def __init__(
        self,
        *,
        registry: Registry,
        looker: SecondLook,
        judge: CardJudge,
        store: Store,
        courier: Courier,
        clock: Clock,
        keys: KeyRing,
        read_card: CardReader,
        new_uuid: Callable[[], str],
        max_card: int,
        protected: bool,
        root_agent: str | None = None,
        most_agents: int | None = None,
    ) -> None:
        self._registry = registry
        self._looker = looker
        self._judge = judge
        self._store = store
        self._courier = courier
        self._clock = clock
        self._keys = keys
        self._read_card = read_card
        self._new_uuid = new_uuid
        self._max_card = max_card
        self._protected = protected
        self._root_agent = root_agent
        self._most_agents = most_agents  # of each tenant

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
        agent = standing(msgspec.structs.replace(agent, probe=came.probe), judged.trust, protected=self._protected)
        _refuse_open_with_scopes(agent)
        if asked.credentials is not None:
            # First: were they refused afterwards, the agent would stand there and its token be lost.
            await self._courier.keep_credentials(agent, asked.credentials)
        act = act_of(caller, "agent.registered", f"{agent.id}@{agent.card.version}", request_id)
        stored = await self._store.register(Registration(agent=agent, act=act, most=self._most_agents))
        if isinstance(stored, Taken):
            raise NotAuthorized(f"The id {stored.name} belongs to another key.", agent_id=stored.name)
        self._registry.forget(stored.agent.id)
        if asked.credentials is not None and stored.agent.uuid != agent.uuid:
            await self._courier.keep_credentials(stored.agent, asked.credentials)  # revived under its old UUID
        protected = self._registry.needs_credential(stored.agent)
        if not stored.created:
            return Registered(agent=stored.agent, created=False, protected=protected)
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
            protected=protected,
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
        agent = await self._registry.resolve(caller, asked.agent_id)
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
            agent = await self._looker.look_again(agent.tenant, agent.id)
        changed = await self._store.change_agent(
            agent.tenant,
            agent.id,
            asked.status,
            open_=asked.open,
            private=asked.private,
            act=act_of(caller, _action(asked), agent.id, request_id),
            limits=asked.rate_limits,
        )
        self._registry.forget(agent.id)
        if changed is None:
            raise AgentNotFound(agent_id=asked.agent_id)
        return self._registry.shown(changed, owner=True)

    async def _judged(self, tenant: str, came: Came, keys: tuple[JsonObject, ...], known: Agent | None) -> Judged:
        """What the card of a registration is worth; a removed agent's key counts as long as its tombstone."""
        before = known or await self._store.find_agent(tenant, came.card.id, removed=True)
        trust = CardTrust() if before is None else before.trust
        return await self._judge.judge(came.card, trust, found_at=came.found_at, keys=keys)

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
        self._registry.forget(agent.id)
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
        callable_ones = [endpoint for endpoint in card.endpoints if self._registry.can_call(endpoint)]
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
    limits = None if asked.rate_limits is None else limits_of(asked.rate_limits)
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
            limits_set=limits,
        )
    return msgspec.structs.replace(
        known,
        card=card,
        updated_at=now,
        status=AgentStatus.ACTIVE if _counts_as_there(known, card) else known.status,
        open=known.open if asked.open is None else asked.open,
        private=known.private if asked.private is None else asked.private,
        aliases=card.aliases,
        tags=asked.tags or known.tags,
        limits_set=known.limits_set if limits is None else limits,
    )


def _refuse_open_with_scopes(agent: Agent) -> None:
    if agent.open and any(scope != CALL for scope in agent.card.scopes_required):
        raise BadParams(
            "open: an agent whose card requires scopes of its callers cannot be open to everyone",
            errors=[{"path": "open", "message": "the card requires scopes"}],
        )


def _counts_as_there(known: Agent, card: AgentCard) -> bool:
    """Whether who registers an agent anew says that it can be called; of one that connects its sessions say that."""
    if known.status is AgentStatus.UNREACHABLE:
        return all(endpoint.via is Via.HTTP for endpoint in card.endpoints)
    return known.status is AgentStatus.REMOVED
