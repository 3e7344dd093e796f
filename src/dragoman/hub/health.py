"""Health: agents that have a URL and have not been heard of are asked whether they are there.

    ACTIVE ── two checks in a row without an answer ──► UNREACHABLE ── one answer ──► ACTIVE
              (a call that cannot connect brings the next one forward)    checks after 30 s, doubling to 5 min

One walk over the registry after the other, each agent a little after the one before: a walk takes as long as the
interval, or longer where there are more agents than may be checked in it. Only those in trouble are remembered. Who
connects to the hub or has a mailbox is not asked, nor who is paused or in quarantine.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, final

from dragoman.hub.carry import Spawn
from dragoman.hub.figures import Figures
from dragoman.model.agent import Agent, AgentStatus, Via
from dragoman.model.call import AdmittedCall
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store

LOG: Final = logging.getLogger("dragoman.hub")
PAGE: Final = 200
SHARE: Final = 0.2  # by which each wait is shorter or longer
LONG_AGO: Final = 0.75  # of the interval without a word, after which an agent is asked
IN_A_ROW: Final = 2
AT_ONCE: Final = 250  # checks under way
MOST_TROUBLED: Final = 10_000  # remembered; of others each failure is the first
SOONEST: Final = 6  # a check is brought forward to this part of the interval after the one before
_CHECKED: Final = frozenset({AgentStatus.ACTIVE, AgentStatus.UNREACHABLE})

Problem = Callable[[Agent, str], Awaitable[str | None]]  # why an agent does not answer at a URL; None: it does
Key = tuple[str, str]  # tenant, agent


@final
class _Troubled:
    """An agent that did not answer: how often in a row, when it was last asked and when it is asked again."""

    __slots__ = ("asked", "due", "failures", "sooner", "wait_s")

    def __init__(self, wait_s: float) -> None:
        self.failures = 0
        self.wait_s = wait_s
        self.asked = float("-inf")
        self.due = float("-inf")
        self.sooner = False  # the next check is on its way, out of turn


class Health:
    """Checks the agents of one hub."""

    def __init__(
        self,
        *,
        store: Store,
        changed: Callable[[str], None],
        figures: Figures,
        problem: Problem,
        clock: Clock,
        spawn: Spawn,
        every_s: float,
        longest_s: float,
        per_s: float,
    ) -> None:
        self._store = store
        self._changed = changed  # told the id of an agent that stands differently now
        self._figures = figures
        self._problem = problem
        self._clock = clock
        self._spawn = spawn
        self._every_s = every_s  # 0: nobody is checked
        self._longest_s = max(longest_s, every_s)
        self._gap_s = 1 / per_s
        self._troubled: dict[Key, _Troubled] = {}
        self._slots = asyncio.Semaphore(AT_ONCE)

    async def run(self) -> None:
        """Check whoever is due, for as long as the hub lives."""
        if not self._every_s:
            return
        count = 0
        while True:
            count = await self._walk(count)
            if not count:
                await self._clock.sleep(self._clock.jitter(self._every_s, SHARE))

    def down(self) -> list[str]:
        """The agents that do not answer, by their ids."""
        return [agent_id for (_, agent_id), each in self._troubled.items() if each.failures >= IN_A_ROW]

    def unreached(self, call: AdmittedCall) -> None:
        """A call's agent could not be reached: see soon whether it is there at all."""
        if not self._every_s or url_of(call.agent) is None:
            return
        tenant, agent_id = call.agent.tenant, call.agent.id
        troubled = self._trouble((tenant, agent_id))
        if troubled.sooner or troubled.failures >= IN_A_ROW:
            return
        troubled.sooner = True
        when = max(self._clock.monotonic(), troubled.asked + self._every_s / SOONEST)
        self._clock.call_at(when, lambda: self._spawn(self._sooner(tenant, agent_id)))

    async def _walk(self, before: int) -> int:
        """Look at every agent once; how many of them may be asked. In the walk before it were so many."""
        count, after = 0, 0
        while page := await self._store.agents_to_check(after, PAGE):
            asked = [agent for _, agent in page if url_of(agent) is not None]
            count += len(asked)
            gap_s = max(self._gap_s, self._every_s / max(before, count, 1))
            for agent in asked:
                await self._clock.sleep(self._clock.jitter(gap_s, SHARE))
                if self._is_due(agent):
                    await self._slots.acquire()
                    self._spawn(self._check(agent.tenant, agent.id))
            after = page[-1][0]
        return count

    def _is_due(self, agent: Agent) -> bool:
        now = self._clock.monotonic()
        troubled = self._troubled.get((agent.tenant, agent.id))
        if troubled is not None:
            return now >= troubled.due and not troubled.sooner
        heard = self._figures.heard(agent.tenant, agent.id)
        # Less than the interval, for that is shorter at times: else every second check would be left out.
        return heard is None or now - heard >= self._every_s * LONG_AGO

    async def _sooner(self, tenant: str, agent_id: str) -> None:
        await self._slots.acquire()
        troubled = self._troubled.get((tenant, agent_id))
        if troubled is not None:
            troubled.sooner = False
        await self._check(tenant, agent_id)

    async def _check(self, tenant: str, agent_id: str) -> None:
        """Ask an agent once, as it stands now, and note what that comes to. A slot was taken for it."""
        try:
            agent = await self._store.find_agent(tenant, agent_id)
            url = None if agent is None or agent.status not in _CHECKED else url_of(agent)
            if agent is None or url is None:
                self._troubled.pop((tenant, agent_id), None)
                return
            problem = await self._problem(agent, url)
        finally:
            self._slots.release()
        await self._checked(agent, problem)

    async def _checked(self, agent: Agent, problem: str | None) -> None:
        key = (agent.tenant, agent.id)
        self._figures.checked(*key, answered=problem is None)
        if problem is None:
            self._troubled.pop(key, None)
            if agent.status is AgentStatus.UNREACHABLE:
                await self._stands(agent, AgentStatus.ACTIVE, "it answers again")
            return
        troubled = self._trouble(key)
        if agent.status is AgentStatus.ACTIVE and troubled.failures >= IN_A_ROW:
            troubled.failures, troubled.wait_s = 0, self._every_s  # Somebody has said that it is there.
        troubled.failures += 1
        troubled.asked = self._clock.monotonic()
        if troubled.failures < IN_A_ROW and agent.status is AgentStatus.ACTIVE:
            troubled.due = troubled.asked
            return
        troubled.due = troubled.asked + troubled.wait_s * (1 - SHARE)
        troubled.wait_s = min(troubled.wait_s * 2, self._longest_s)
        if agent.status is AgentStatus.ACTIVE:
            await self._stands(agent, AgentStatus.UNREACHABLE, problem)

    async def _stands(self, agent: Agent, status: AgentStatus, why: str) -> None:
        """Write down how an agent stands, unless its owner has said something else meanwhile."""
        now = await self._store.find_agent(agent.tenant, agent.id)
        if now is None or now.status is not agent.status:
            return
        await self._store.change_agent(agent.tenant, agent.id, status, open_=None, private=None)
        self._changed(agent.id)
        fields = {"agent_id": agent.id, "tenant": agent.tenant, "status": status.value, "reason": why}
        if status is AgentStatus.UNREACHABLE:
            LOG.warning("an agent is unreachable", extra={"fields": fields})
        else:
            LOG.info("an agent is back", extra={"fields": fields})

    def _trouble(self, key: Key) -> _Troubled:
        troubled = self._troubled.get(key)
        if troubled is None:
            if len(self._troubled) >= MOST_TROUBLED:
                del self._troubled[next(iter(self._troubled))]
            troubled = self._troubled[key] = _Troubled(self._every_s)
        return troubled


def url_of(agent: Agent) -> str | None:
    """Where an agent is asked; None where it is not, because it connects to the hub itself or has a mailbox."""
    endpoints = agent.card.endpoints
    if any(endpoint.via is not Via.HTTP for endpoint in endpoints):
        return None
    return next((endpoint.url for endpoint in endpoints if endpoint.url is not None), None)
