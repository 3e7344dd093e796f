"""The gate before each agent: so many calls at once, the others wait in its queue, the most urgent first.

Where the agent's card or its owner says how many, a call counts from its sending to its end. Where nobody does, the
hub's own number counts while the hub exchanges words with the agent; of agents that connect, their sessions say. A call
that failed at its agent counts no longer while it waits for its next try.
"""

from collections.abc import Awaitable, Callable, Mapping
from math import ceil
from typing import Final

import msgspec

from dragoman.hub.flow.limits import rate_limited
from dragoman.hub.flow.queue import Permit, Places, Target
from dragoman.model.agent import Agent, Endpoint, Via
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.errors import RateLimited
from dragoman.model.operations import ACCEPTED, SendTask
from dragoman.model.rank import rank
from dragoman.ports.clock import Clock

REMEMBERED: Final = 10_000  # agents that nobody calls now, before those are forgotten
UNKNOWN_WAIT_S: Final = 1
LONGEST_WAIT_S: Final = 60
_CONNECTED: Final = Via.CONNECTED

Usual = Callable[[str, str, str | None], int | None]  # milliseconds, by tenant, agent and skill; None: not known


class Gate:
    """Who runs and who waits, by agent."""

    def __init__(self, *, clock: Clock, per_agent: int, accepted: int, usual_ms: Usual) -> None:
        """`per_agent` run at once where nobody says how many; `accepted` wait for one that nobody waits for."""
        self._clock = clock
        self._per_agent = per_agent
        self._accepted = accepted
        self._usual_ms = usual_ms
        self._targets: dict[str, Target] = {}
        self._placed: dict[str, Target] = {}  # where a call has a place, though it has not come to wait yet

    def waiting(self) -> Mapping[str, int]:
        """How many calls wait for their turn, by agent id; those that none wait for are left out."""
        return self._counted(lambda target: target.waiting)

    def running(self) -> Mapping[str, int]:
        """How many calls have a permit, by agent id; idle agents are left out."""
        return self._counted(lambda target: target.running)

    def load(self, agent: Agent) -> tuple[int, int]:
        """How many calls wait for an agent, and how many it takes at once."""
        target = self._targets.get(agent.uuid)
        waiting = 0 if target is None else target.waiting
        return waiting, agent.limits.concurrent_requests or self._per_agent

    def refuse(self, call: AdmittedCall) -> None:
        """Raise RateLimited where a call would find no place to wait, or could not begin before its deadline."""
        target = self._targets.get(call.agent.uuid)
        if target is not None and (self._placed or target.running >= target.most):
            self._refuse(call, target)

    def _refuse(self, call: AdmittedCall, target: Target) -> None:
        caller, agent, asked = call.caller, call.agent, call.operation
        most = self._most(agent, call.endpoint)
        if most is None:
            return
        spare = max(0, most - target.running)
        accepted = asked.wait is ACCEPTED
        if _places(target, asked).full(None if caller.admin else caller.id, spare):
            wait_s = self._wait_s(call, target.waiting, most)
            raise self._busy(agent, most, wait_s, "Too many calls wait for {}.")
        if spare or accepted:
            return
        ahead = target.before(rank(asked.priority, self._clock.now()))
        wait_s = self._wait_s(call, ahead, most)
        if wait_s and self._clock.monotonic() + wait_s > call.deadline:
            raise self._busy(agent, most, wait_s, "Others wait for {}, it could not begin this call in time.")

    def reserve(self, call: AdmittedCall) -> None:
        """Keep a place for a call that has to be on disk before it comes."""
        if self._most(call.agent, call.endpoint) is None:
            return
        target = self._target(call.agent)
        _places(target, call.operation).take(call.task.id, call.caller.id)
        self._placed[call.task.id] = target

    def leave(self, task_id: str) -> None:
        """A call needs the place no more that was kept for it."""
        target = self._placed.pop(task_id, None)
        if target is not None:
            target.accepted.leave(task_id)
            target.waited_for.leave(task_id)

    def enter(self, opened: OpenedCall, *, sent: bool = False) -> Permit | Awaitable[Permit] | None:
        """A permit of the target for a call that is about to be sent: now, when it is its turn, or none is needed.

        `sent`: the target has the call already, and it counts whether there is room or not. Whoever waits gets
        AgentTimeout at the call's deadline.
        """
        call = opened.call
        agent = call.agent
        target = self._targets.get(agent.uuid)
        if target is None or target.agent is not agent:
            target = self._target(agent)
        if not target.to_the_end and (sent or call.endpoint.via is _CONNECTED):
            return None
        if sent:
            target.running += 1  # Its agent has it, whatever the number says.
        elif not target.take():
            return self._queued(opened, target)
        if self._placed:
            self.leave(opened.task.id)
        return target

    async def aside(self, call: AdmittedCall, seconds: float) -> None:
        """Wait before a call's next try while others have its permit, and then until it is its turn again.

        It has a place meanwhile, like any that waits: so there are never more calls than places and permits. Where no
        place is left it keeps its permit, and so does a message for a task that is under way, which may have none of
        its own. However this ends, the call has its permit. Raises AgentTimeout at the call's deadline.
        """
        caller, asked, task, target = call.caller, call.operation, call.task, self._targets.get(call.agent.uuid)
        places = None if target is None or asked.continues is not None else _places(target, asked)
        if target is None or places is None or places.full(None if caller.admin else caller.id, 0):
            await self._clock.sleep(seconds)
            return
        places.take(task.id, caller.id)
        target.give_back()
        has_permit = False
        try:
            await self._clock.sleep(seconds)
            has_permit = target.take()
            if not has_permit:
                await target.wait(task.id, rank(asked.priority, task.created_at), call.deadline, call.timeout_s)
                has_permit = True
        finally:
            places.leave(task.id)
            if not has_permit:
                target.running += 1  # Whoever carries it gives it back, and knows nothing of this.

    async def _queued(self, opened: OpenedCall, target: Target) -> Permit:
        call, task = opened.call, opened.task
        _places(target, call.operation).take(task.id, call.caller.id)
        self._placed.pop(task.id, None)
        return await target.wait(task.id, rank(call.operation.priority, task.created_at), call.deadline, call.timeout_s)

    def _most(self, agent: Agent, endpoint: Endpoint) -> int | None:
        own = agent.limits.concurrent_requests
        return own or (None if endpoint.via is _CONNECTED else self._per_agent)

    def _target(self, agent: Agent) -> Target:
        """The agent's permits, as many as it takes at once now."""
        target = self._targets.get(agent.uuid)
        if target is None:
            if len(self._targets) >= REMEMBERED:
                self._targets = {uuid: target for uuid, target in self._targets.items() if not target.idle}
            target = self._targets[agent.uuid] = Target(agent, self._clock, accepted=self._accepted)
        own = agent.limits.concurrent_requests
        target.agent = agent
        target.most = self._per_agent if own is None else own
        target.to_the_end = own is not None
        return target

    def _wait_s(self, call: AdmittedCall, ahead: int, most: int) -> float:
        """How long a call will wait, by how long those before it will take; 0 where that is not known."""
        skill = None if call.skill is None else call.skill.id
        usual_ms = self._usual_ms(call.caller.tenant, call.agent.id, skill)
        return 0.0 if usual_ms is None else usual_ms / 1000 * ahead / most

    def _busy(self, agent: Agent, most: int, ahead_s: float, said: str) -> RateLimited:
        wait_s = min(max(UNKNOWN_WAIT_S, ceil(ahead_s)), LONGEST_WAIT_S)
        refusal = rate_limited(
            said.format(agent.id),
            limit="concurrent_requests",
            scope="agent",
            allowed=most,
            wait_s=wait_s,
            reset=round(self._clock.now().timestamp()) + wait_s,
        )
        refusal.details["reason"] = "queue_full"
        return refusal

    def _counted(self, count: Callable[[Target], int]) -> Mapping[str, int]:
        counted: dict[str, int] = {}
        for target in self._targets.values():
            number = count(target)
            if number:
                agent_id = target.agent.id
                counted[agent_id] = counted.get(agent_id, 0) + number
        return counted


def waited(opened: OpenedCall, seconds: float) -> OpenedCall:
    """The call with the time it waited for its permit, too, where that is worth noting."""
    waited_ms = round(seconds * 1000)
    return opened if waited_ms < 1 else msgspec.structs.replace(opened, waited_ms=(opened.waited_ms or 0) + waited_ms)


def _places(target: Target, asked: SendTask) -> Places:
    """Where a call waits, by whether somebody waits for it."""
    return target.accepted if asked.wait is ACCEPTED else target.waited_for
