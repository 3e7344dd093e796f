"""Looking again at an agent that is registered: what it really speaks now.

Its endpoints become those that answer; a card that it shows there is judged as at its registration. Of an agent that
has no card, and tells what it has when it is asked, the skills become those that it tells of now.
"""

import msgspec

from dragoman.hub.acts import act_of_hub
from dragoman.hub.card_hygiene import cleaned
from dragoman.hub.card_trust import CardJudge, is_same_card, standing
from dragoman.hub.registry import Registry
from dragoman.hub.validate import compile_skill
from dragoman.model.agent import Agent, AgentCard, Trust
from dragoman.model.errors import AgentNotFound, AgentUnavailable, BadParams
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier, Probed
from dragoman.ports.store import Registration, Store, Taken


class SecondLook:
    """Looks at registered agents."""

    def __init__(
        self, *, registry: Registry, judge: CardJudge, store: Store, courier: Courier, clock: Clock, protected: bool
    ) -> None:
        self._registry = registry
        self._judge = judge
        self._store = store
        self._courier = courier
        self._clock = clock
        self._protected = protected

    async def look_again(self, tenant: str, agent_id: str) -> Agent:
        """See what an agent really speaks now: its endpoints become those that answer, the rest of its card stays,
        unless it has none but what it tells of itself.

        Raises AgentNotFound, BadParams with what was seen where nothing answers; then nothing changes.
        """
        agent = await self._store.find_agent(tenant, agent_id)
        if agent is None:
            raise AgentNotFound(f"There is no agent {agent_id!r}.", agent_id=agent_id)
        url = _url_of(agent)
        if url is None:
            raise BadParams(f"{agent_id} has no URL that could be looked at.")
        seen = await self._courier.examine(url, agent=agent)
        endpoints = tuple(each for each in seen.card.endpoints if self._registry.can_call(each))
        for endpoint in endpoints:
            await self._courier.may_dial(endpoint.url or "")
        card, agent = agent.card, await self._store.find_agent(tenant, agent_id)
        if agent is None or agent.card != card:
            # Whoever registered it meanwhile knows better.
            raise AgentUnavailable(f"{agent_id} was changed while it was looked at.", agent_id=agent_id)
        looked_at, trust = msgspec.structs.replace(agent, probe=seen.probe), agent.trust
        if trust.key is not None and seen.body is not None:
            shown = cleaned(msgspec.structs.replace(seen.card, id=agent.id), seen.body)
            judged = await self._judge.judge(shown, trust, found_at=seen.found_at)
            trust, endpoints = judged.trust, judged.card.endpoints
        elif trust.level is Trust.UNVERIFIED and is_same_card(agent.card, seen.body):
            trust = msgspec.structs.replace(trust, level=Trust.ENDPOINT)
        card = msgspec.structs.replace(agent.card, endpoints=endpoints)
        if seen.introduced:
            card = _told_anew(card, seen)
        if endpoints and card != agent.card and not trust.doubt:
            looked_at = msgspec.structs.replace(looked_at, card=card, updated_at=self._clock.now())
        agent = standing(looked_at, trust, protected=self._protected)
        act = act_of_hub("agent.probed", agent.id, agent.tenant)
        stored = await self._store.register(Registration(agent=agent, act=act))
        self._registry.forget(agent_id)
        return agent if isinstance(stored, Taken) else stored.agent


def _told_anew(card: AgentCard, seen: Probed) -> AgentCard:
    """The card with what the agent tells of itself now. Raises BadParams where that could not be taken in."""
    told = cleaned(msgspec.structs.replace(seen.card, id=card.id), seen.body)
    for skill in told.skills:
        compile_skill(told, skill)
    return msgspec.structs.replace(
        card, description=told.description, version=told.version, skills=told.skills, original=told.original
    )


def _url_of(agent: Agent) -> str | None:
    """Where to look at an agent: at the URL it was registered by, else at its first endpoint."""
    given = None if agent.probe is None else agent.probe.get("url")
    named = next((each.url for each in agent.card.endpoints if each.url is not None), None)
    return given if isinstance(given, str) else named
