"""All breakers of a process: which targets are left alone, and what is learnt of them from each attempt.

Of a target that is well nothing is kept but how many calls it answered lately. What counts:

    failure   no connection, no answer in time, HTTP 5xx, an answer that makes no sense
    success   every other answer: a failed task, a refusal, HTTP 4xx and 429, a question
    neither   what was cancelled; a timeout no longer than what the target usually needs; the absence of an agent that
              connects to the hub, which is known anyway

In memory, of this process alone. A breaker that nothing was heard of for an hour is forgotten.
"""

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping
from math import ceil
from typing import Final, final

from dragoman.hub.flow.answered import Answered
from dragoman.hub.flow.breaker import WINDOW_S, Breaker
from dragoman.model.agent import Agent, Via
from dragoman.model.call import AdmittedCall
from dragoman.model.circuit import Circuit
from dragoman.model.errors import CircuitOpen
from dragoman.model.fit import Feature
from dragoman.ports.attempts import ANSWERED, REFUSED, AttemptOutcome
from dragoman.ports.clock import Clock

LOG: Final = logging.getLogger("dragoman.hub")
MOST_TARGETS: Final = 10_000  # in trouble at once; beyond it the one that was heard of longest ago is forgotten
FORGOTTEN_S: Final = 3600.0
_UNREACHABLE: Final = AttemptOutcome.UNREACHABLE

# The milliseconds within which 95 % of calls are answered, by tenant, agent and skill; None where too few are known.
Usual = Callable[[str, str, str | None], int | None]
Listener = Callable[[AdmittedCall, AttemptOutcome, float, bool], object]
Aside = Callable[[AdmittedCall, float], Awaitable[None]]  # waits so many seconds while others have the call's place


@final
class Target:
    """A target in trouble."""

    __slots__ = ("agent_id", "breaker", "heard_at", "shown", "tenant", "why")

    def __init__(self, agent: Agent, breaker: Breaker, now: float) -> None:
        self.tenant = agent.tenant
        self.agent_id = agent.id
        self.breaker = breaker
        self.heard_at = now
        self.shown = Circuit.CLOSED  # the state that was last told of
        self.why = ""  # how its last failed attempt ended


class Breakers:
    """The breakers of this process; told of every attempt, and tells the other `listeners`."""

    def __init__(
        self,
        *,
        clock: Clock,
        p95_ms: Usual,
        listeners: Iterable[Listener] = (),
        unreached: Callable[[AdmittedCall], None] = lambda _: None,
        opens: bool = True,
        aside: Aside | None = None,
    ) -> None:
        self._opens = opens  # False: whatever fails is called all the same
        self._clock = clock
        self._p95_ms = p95_ms
        self._listeners = tuple(listeners)
        self._unreached = unreached  # told of each call that found no connection to its target
        self._aside: Aside = aside or _asleep(clock)
        self._targets: OrderedDict[str, Target] = OrderedDict()  # by the agent's UUID; the longest unheard of first
        self._answered = Answered()
        self._pauses: dict[str, set[asyncio.Timeout]] = {}  # of calls before their next try
        self.transitions: dict[Circuit, int] = dict.fromkeys(Circuit, 0)  # into each state, since the start

    # -- for who lets calls in, and who shows them

    def refuse(self, agent: Agent) -> None:
        """Raises CircuitOpen while the target is left alone; lets one call through when it is time to look again."""
        if self._targets and (target := self._targets.get(agent.uuid)) is not None:
            now = self._clock.monotonic()
            wait_s = target.breaker.let_in(now)
            self._tell(target, now)
            if wait_s is not None:
                raise refusal(target, wait_s)

    def state(self, agent: Agent) -> Circuit:
        """Where the target's breaker stands."""
        if not self._targets or (target := self._targets.get(agent.uuid)) is None:
            return Circuit.CLOSED
        return target.breaker.look(self._clock.monotonic())

    def circuits(self, agents: Iterable[Agent]) -> Mapping[str, Circuit]:
        """Those of the agents whose breaker is not closed, by their id."""
        if not self._targets:
            return {}
        found = {agent.id: self.state(agent) for agent in agents}
        return {agent_id: state for agent_id, state in found.items() if state is not Circuit.CLOSED}

    def states(self) -> list[tuple[str, str, Circuit]]:
        """Every target in trouble: tenant, agent, where its breaker stands."""
        now = self._clock.monotonic()
        self._forget_old(now)
        return [(each.tenant, each.agent_id, each.breaker.look(now)) for each in self._targets.values()]

    # -- for delivery: ports/attempts.py

    def begin(self, call: AdmittedCall) -> None:
        """An attempt is about to be made. Raises CircuitOpen where the target is to be left alone."""
        if self._targets and (target := self._targets.get(call.agent.uuid)) is not None:
            now = self._clock.monotonic()
            wait_s = target.breaker.begin(call.task.id, now)
            self._tell(target, now)
            if wait_s is not None:
                raise refusal(target, wait_s)

    def answering(self, call: AdmittedCall) -> None:
        """The target has begun to tell of a call: it is there."""
        if self._targets and (target := self._targets.get(call.agent.uuid)) is not None:
            now = self._clock.monotonic()
            if target.breaker.look(now) is Circuit.HALF_OPEN:
                self._fine(call.agent.uuid, target, now)

    def ended(self, call: AdmittedCall, outcome: AttemptOutcome, took_s: float, *, will_retry: bool) -> None:
        """One attempt is over."""
        now, uuid = self._clock.monotonic(), call.agent.uuid
        target = self._targets.get(uuid) if self._targets else None
        if outcome is ANSWERED or outcome is REFUSED:
            if target is None:
                self._answered.note(uuid, now)
            else:
                self._fine(uuid, target, now)
        elif self._says_nothing(call, outcome, took_s):
            if target is not None:
                target.breaker.given_up(call.task.id, now)
        else:
            self._failed(call, outcome, target or self._new(call.agent, now), now)
        if outcome is _UNREACHABLE:
            self._unreached(call)
        for listener in self._listeners:
            listener(call, outcome, took_s, will_retry)

    async def pause(self, call: AdmittedCall, seconds: float, *, aside: bool) -> None:
        """Wait before a retry, but not for a target that is left alone meanwhile: `begin` then says so."""
        uuid = call.agent.uuid
        pauses = self._pauses.setdefault(uuid, set())
        pause = asyncio.timeout(None)
        pauses.add(pause)
        try:
            with contextlib.suppress(TimeoutError):
                async with pause:
                    if self.state(call.agent) is not Circuit.OPEN:
                        await (self._aside(call, seconds) if aside else self._clock.sleep(seconds))
        finally:
            pauses.discard(pause)
            if not pauses and self._pauses.get(uuid) is pauses:
                del self._pauses[uuid]

    # -- within

    def _says_nothing(self, call: AdmittedCall, outcome: AttemptOutcome, took_s: float) -> bool:
        """Whether an attempt that did not go well tells nothing of its target."""
        if outcome is AttemptOutcome.DROPPED:
            return True
        if outcome is _UNREACHABLE:
            return call.endpoint.via is Via.CONNECTED
        if outcome is not AttemptOutcome.TIMED_OUT or Feature.REPORTS in call.endpoint.features:
            return False  # Who reports later has only to acknowledge, which has nothing to do with how long it works.
        p95_ms = self._p95_ms(call.agent.tenant, call.agent.id, call.task.skill)
        # Else one caller in a hurry would shut an agent for everyone.
        return p95_ms is not None and min(took_s, call.timeout_s) * 1000 <= p95_ms

    def _new(self, agent: Agent, now: float) -> Target:
        self._forget_old(now)
        if len(self._targets) >= MOST_TARGETS:
            self._targets.popitem(last=False)
        breaker = Breaker(self._answered.of(agent.uuid, now - WINDOW_S))
        target = self._targets[agent.uuid] = Target(agent, breaker, now)
        return target

    def _failed(self, call: AdmittedCall, outcome: AttemptOutcome, target: Target, now: float) -> None:
        if not self._opens:
            return
        self._heard_of(call.agent.uuid, target, now)
        target.why = outcome.value
        target.breaker.failed(call.task.id, now)
        self._tell(target, now)
        if target.breaker.state is Circuit.OPEN:
            for pause in self._pauses.pop(call.agent.uuid, ()):
                pause.reschedule(0.0)

    def _fine(self, uuid: str, target: Target, now: float) -> None:
        self._heard_of(uuid, target, now)
        target.breaker.answered(now)
        self._tell(target, now)
        if target.breaker.is_well(now):
            del self._targets[uuid]

    def _heard_of(self, uuid: str, target: Target, now: float) -> None:
        target.heard_at = now
        self._targets.move_to_end(uuid)

    def _forget_old(self, now: float) -> None:
        while self._targets and now - next(iter(self._targets.values())).heard_at >= FORGOTTEN_S:
            self._targets.popitem(last=False)

    def _tell(self, target: Target, now: float) -> None:
        """Log and count that the state is another than before."""
        state = target.breaker.look(now)
        if state is target.shown:
            return
        target.shown = state
        self.transitions[state] += 1
        fields = {"agent_id": target.agent_id, "tenant": target.tenant, "circuit": state.value, "reason": target.why}
        if state is Circuit.OPEN:
            breaker = target.breaker
            counts = {"in_a_row": breaker.in_a_row, "failures": breaker.failures, "calls": breaker.calls}
            fields |= {**counts, "open_s": breaker.open_s}
            LOG.warning("an agent is left alone: its calls fail", extra={"fields": fields})
        elif state is Circuit.HALF_OPEN:
            LOG.info("an agent that was left alone gets one call", extra={"fields": fields})
        else:
            LOG.info("an agent answers again", extra={"fields": fields})


def refusal(target: Target, wait_s: float) -> CircuitOpen:
    """The refusal of a call whose target is left alone, and when to ask again."""
    wait = max(1, ceil(wait_s))
    return CircuitOpen(
        f"{target.agent_id} failed repeatedly ({target.why}) and is left alone: try again in {wait} s.",
        retry_after_s=wait,
        retry_after=wait,
        agent_id=target.agent_id,
        last_failure=target.why,
    )


def _asleep(clock: Clock) -> Aside:
    """Waits, where nobody has a place that others could have."""
    return lambda _, seconds: clock.sleep(seconds)
