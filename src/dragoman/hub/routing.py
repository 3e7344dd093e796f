"""The choice of an agent for a call that names only a skill.

    the 20 best by score ──(1 s)──► in order, by their last hour ──(50 ms)──► the first that takes the call
    of those that can be called       success in steps of 2 points, expected time, rating, price
                                      (anew at once when the first one fails)

Where calls wait for the first one, it is the better of two drawn at random of those about as good; one call in twenty
goes to an agent of which little is known yet; a conversation stays with an agent that remembers it. When warm a choice
is memory alone, and mostly one that was made before. Who may not take a call after all is admission's to say.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final, final

import msgspec

from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.hub.figures import Figures
from dragoman.model.agent import Agent, AgentStatus, Via
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound, AgentUnavailable
from dragoman.model.figures import ENOUGH, SkillFigures
from dragoman.model.operations import Discover, ListTasks, SendTask, Wait
from dragoman.model.route import SHOWN, Candidate, Route, RouteReason, order_of, price_of
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope, Store
from dragoman.security.scopes import allows

MOST: Final = 20
LOOKED_AT: Final = 1000  # agents, for a key that may not call all of them
FRESH_S: Final = 1.0
ORDERED_S: Final = 0.05
STALE_S: Final = 5.0  # for so long others go on with what is there while one looks anew
SKILLS: Final = 1000  # looked up at once
CONVERSATIONS: Final = 10_000
TRIAL_EVERY: Final = 20
TRIED: Final = 0.95  # of success at least, with what it is credited with, for one who is on trial
NEAR: Final = 2  # steps behind the best that are about as good
UNKNOWN_MS: Final = 1000  # where no candidate ever had a call

Load = Callable[[Agent], tuple[int, int]]  # calls that wait for it, and how many it takes at once
IsOpen = Callable[[Agent], bool]
Chance = Callable[[], float]  # from 0 up to 1


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked, one after the other, and why the first of them."""

    agents: tuple[Agent, ...]
    route: Route


@final
class _Found:
    """The candidates for one skill, and their order."""

    __slots__ = ("agents", "asked", "choice", "failures", "ordered_until", "placed", "until")

    def __init__(self, agents: tuple[Agent, ...], until: float, asked: int) -> None:
        self.agents = agents
        self.until = until
        self.asked = asked  # calls so far, to give every twentieth away
        self.placed: list[tuple[Candidate, Agent]] = []
        self.choice: Choice | None = None  # who is first, as long as nobody waits for it
        self.ordered_until = 0.0
        self.failures = 0  # of the first one, when the order was made


class Router:
    """Chooses agents by skill."""

    def __init__(
        self, *, store: Store, figures: Figures, clock: Clock, load: Load, is_open: IsOpen, chance: Chance | None = None
    ) -> None:
        self._store = store
        self._figures = figures
        self._clock = clock
        self._load = load
        self._is_open = is_open
        self._chance = chance or (lambda: clock.jitter(0.5, 1.0))
        self._found: dict[tuple[object, ...], _Found] = {}
        # Which agent has a conversation in its memory; None: nobody.
        self._kept: OrderedDict[tuple[str, str, str, str], str | None] = OrderedDict()

    async def choose(self, caller: Caller, skill: str, asked: SendTask) -> Choice:
        """Who is to be asked. Raises AgentNotFound where nobody has the skill, AgentUnavailable where nobody can."""
        found = await self._candidates(caller, skill, accepted=asked.wait is Wait.NONE)
        choice = self._choice(found, caller.tenant, skill)
        return choice if asked.context_id is None else await self._keeping(caller, skill, asked.context_id, choice)

    def keep(self, caller: Caller, skill: str, context_id: str | None, agent: Agent) -> None:
        """The agent has the call: if it remembers conversations, this one stays with it."""
        if context_id is not None and agent.card.memory:
            self._note(_conversation(caller, context_id, skill), agent.id)

    def missed(self, task: Task) -> None:
        """The agent that a call was for could not be reached, and another has it now: that counts against the first."""
        self._figures.missed(task)

    def forget(self) -> None:
        """Agents have changed: look anew."""
        self._found.clear()

    async def _candidates(self, caller: Caller, skill: str, *, accepted: bool) -> _Found:
        tenant = DEFAULT_TENANT if caller.anonymous else caller.tenant
        key = (tenant, caller.anonymous, skill, caller.allow, accepted)
        known, now = self._found.get(key), self._clock.monotonic()
        if known is not None and now < known.until:
            return known
        if known is not None and now < known.until + STALE_S:
            known.until = now + FRESH_S  # The others need not wait for what this one looks up.
        agents = await self._look(caller, Scope(tenant=tenant, principal=caller.id), skill, accepted=accepted)
        await self._figures.have(agents)
        found = _Found(agents, self._clock.monotonic() + FRESH_S, 0 if known is None else known.asked)
        if len(self._found) >= SKILLS:
            self._found.clear()
        self._found[key] = found
        return found

    async def _look(self, caller: Caller, scope: Scope, skill: str, *, accepted: bool) -> tuple[Agent, ...]:
        """The best that the caller may use and that can be called. Raises AgentNotFound, AgentUnavailable."""
        active = await self._best(caller, scope, Discover(skills=(skill,), status=AgentStatus.ACTIVE, limit=MOST))
        if active:
            return active
        away = await self._best(caller, scope, Discover(skills=(skill,), limit=MOST))
        if not away:
            raise AgentNotFound(f"No agent has the skill {skill!r}.", skill=skill)
        # One that connects to the hub may come back at any time: what nobody waits for can wait for that.
        waited_for = tuple(each for each in away if _connects(each)) if accepted else ()
        if not waited_for:
            named = ", ".join(f"{each.id} is {each.status}" for each in away[:SHOWN])
            raise AgentUnavailable(f"No agent with the skill {skill!r} can be called now: {named}.", retry_after_s=30)
        return waited_for

    async def _best(self, caller: Caller, scope: Scope, asked: Discover) -> tuple[Agent, ...]:
        if not caller.allow:
            return (await self._store.search(scope, asked)).agents
        found: list[Agent] = []
        first: tuple[Agent, ...] = ()
        looked_at = 0
        asked = msgspec.structs.replace(asked, limit=100)
        while len(found) < MOST and looked_at < LOOKED_AT:
            page = await self._store.search(scope, asked)
            first = first or page.agents
            looked_at += len(page.agents)
            found += [each for each in page.agents if allows(caller.allow, each.id, asked.skills[0])]
            if page.cursor is None:
                break
            asked = msgspec.structs.replace(asked, cursor=page.cursor)
        return tuple(found[:MOST]) or first[:MOST]  # Where it may use none, it is told so by name.

    def _choice(self, found: _Found, tenant: str, skill: str) -> Choice:
        now = self._clock.monotonic()
        found.asked += 1
        choice = found.choice
        if (
            choice is None
            or now >= found.ordered_until
            or self._figures.failures(tenant, choice.agents[0].id) != found.failures
        ):
            found.placed = self._in_order(found.agents, tenant, skill)
            found.choice = choice = _choice(found.placed, skill, RouteReason.BEST)
            found.failures = self._figures.failures(tenant, choice.agents[0].id)
            found.ordered_until = now + ORDERED_S
        if len(found.placed) == 1:
            return choice
        if found.asked % TRIAL_EVERY == 0:
            on_trial = _on_trial(found.placed)
            if on_trial is not None:
                return _choice(_first(on_trial, found.placed), skill, RouteReason.TRIAL)
        first = choice.agents[0]
        if self._load(first)[0] or self._is_open(first):
            return self._crowded(found, tenant, skill)
        return choice

    def _crowded(self, found: _Found, tenant: str, skill: str) -> Choice:
        """Calls wait for the best: the better of two drawn at random, so that not all go to the next best at once."""
        placed = self._in_order(found.agents, tenant, skill)
        best = placed[0][0].step
        near = [each for each in placed if best - each[0].step <= NEAR]
        if not placed[0][0].waiting or len(near) < 2:
            return _choice(placed, skill, RouteReason.BEST)
        one = near.pop(int(self._chance() * len(near)))
        other = near[int(self._chance() * len(near))]
        better = min(one, other, key=lambda each: order_of(each[0]))
        return _choice(_first(better, placed), skill, RouteReason.DRAWN)

    def _in_order(self, agents: Sequence[Agent], tenant: str, skill: str) -> list[tuple[Candidate, Agent]]:
        """The candidates as they stand now; those that are left alone only where there are no others."""
        usable = [agent for agent in agents if not self._is_open(agent)] or agents
        figures = [self._figures.of_skill(tenant, agent.id, skill) for agent in usable]
        known = [each.p95_ms for each in figures if each.p95_ms is not None]
        # Of whom nothing is known the best is assumed: else it would never have the chance to show it.
        assumed = min(known, default=UNKNOWN_MS)
        placed = [(self._candidate(agent, each, assumed), agent) for agent, each in zip(usable, figures, strict=True)]
        return sorted(placed, key=lambda each: order_of(each[0]))

    def _candidate(self, agent: Agent, figures: SkillFigures, assumed: int) -> Candidate:
        waiting, at_once = self._load(agent)
        usual = assumed if figures.p95_ms is None else figures.p95_ms
        return Candidate(
            agent=agent.id,
            version=agent.card.version,
            success=round(figures.success, 4),
            calls=figures.calls,
            p95_ms=figures.p95_ms,
            expected_ms=round(usual * (1 + waiting / at_once)),
            waiting=waiting,
            rating=agent.figures.rating,
            price_usd=price_of(agent.card),
        )

    async def _keeping(self, caller: Caller, skill: str, context_id: str, choice: Choice) -> Choice:
        """The choice, with the agent first that remembers the conversation, if there is one that can be called."""
        key = _conversation(caller, context_id, skill)
        if key not in self._kept:
            scope = Scope(tenant=caller.tenant, principal=caller.id)
            query = ListTasks(context_id=context_id, skill=skill, limit=1)
            last = (await self._store.list_tasks(scope, query)).tasks
            self._note(key, last[0].agent_id if last else None)
        agent_id = self._kept[key]
        if agent_id is None:
            return choice
        agent = next((each for each in choice.agents if each.id == agent_id), None)
        if agent is None:
            agent = await self._store.find_agent(caller.tenant, agent_id)
        if agent is None or not _can_keep(agent, skill) or self._is_open(agent):
            return choice
        others = tuple(each for each in choice.agents if each.id != agent_id)
        route = msgspec.structs.replace(choice.route, chosen=agent_id, reason=RouteReason.CONVERSATION)
        return Choice(agents=(agent, *others), route=route)

    def _note(self, key: tuple[str, str, str, str], agent_id: str | None) -> None:
        self._kept[key] = agent_id
        self._kept.move_to_end(key)
        if len(self._kept) > CONVERSATIONS:
            self._kept.popitem(last=False)


def _choice(placed: Sequence[tuple[Candidate, Agent]], skill: str, reason: RouteReason) -> Choice:
    route = Route(
        skill=skill,
        chosen=placed[0][0].agent,
        reason=RouteReason.ONLY if len(placed) == 1 else reason,
        candidates=tuple(candidate for candidate, _ in placed[:SHOWN]),
        more=max(len(placed) - SHOWN, 0),
    )
    return Choice(agents=tuple(agent for _, agent in placed), route=route)


def _first(chosen: tuple[Candidate, Agent], placed: Sequence[tuple[Candidate, Agent]]) -> list[tuple[Candidate, Agent]]:
    return [chosen, *(each for each in placed if each is not chosen)]


def _on_trial(placed: Sequence[tuple[Candidate, Agent]]) -> tuple[Candidate, Agent] | None:
    """The one of whom least is known, if that is too little, and nothing bad."""
    least = [each for each in placed[1:] if each[0].calls < ENOUGH and each[0].credited >= TRIED]
    return min(least, key=lambda each: each[0].calls, default=None)


def _conversation(caller: Caller, context_id: str, skill: str) -> tuple[str, str, str, str]:
    return (caller.tenant, caller.id, context_id, skill)


def _can_keep(agent: Agent, skill: str) -> bool:
    return agent.card.memory and agent.status is AgentStatus.ACTIVE and agent.card.skill(skill) is not None


def _connects(agent: Agent) -> bool:
    return any(endpoint.via is Via.CONNECTED for endpoint in agent.card.endpoints)
