"""Callers, agents and opened calls, for the tests of flow control; and a clock that stands still."""

import msgspec

from dragoman.hub.flow.breakers import Breakers
from dragoman.hub.flow.flow import Flow
from dragoman.hub.flow.gate import Gate
from dragoman.hub.flow.limits import Limits
from dragoman.model.agent import Agent, AgentCard, Endpoint, RateLimits, Via
from dragoman.model.call import AdmittedCall, Caller, OpenedCall
from dragoman.model.operations import Priority, Wait
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task

ACCEPTED = 40  # most accepted calls that wait for one agent
ENDPOINT = Endpoint(dialect="platform", url="http://agent.example/")


def agent(limits: RateLimits | None = None, *, uuid: str = "u1", set_: RateLimits | None = None) -> Agent:
    """An agent with these limits on its card, and those that its owner set."""
    clock = ManualClock()
    card = AgentCard(id="weather", name="Weather", limits=limits or RateLimits(), endpoints=(ENDPOINT,))
    return Agent(
        card=card,
        uuid=uuid,
        tenant="acme",
        owner_id="alice",
        registered_at=clock.now(),
        updated_at=clock.now(),
        limits_set=set_,
    )


def caller(name: str = "alice", limits: RateLimits | None = None, *, admin: bool = False) -> Caller:
    """A caller with a key of these limits."""
    return Caller(tenant="acme", id=name, key_id=f"key-{name}", limits=limits, admin=admin)


class World:
    """Flow control alone: no store, no network."""

    def __init__(self, *, per_agent: int = 2, tenants: RateLimits | None = None, usual_ms: int | None = None) -> None:
        self.clock = ManualClock()
        self.usual_ms = usual_ms
        self.gate = Gate(clock=self.clock, per_agent=per_agent, accepted=ACCEPTED, usual_ms=self._usual)
        self.limits = Limits(clock=self.clock, tenants=tenants)
        self.breakers = Breakers(clock=self.clock, p95_ms=self._usual, aside=self.gate.aside)
        self.flow = Flow(breakers=self.breakers, limits=self.limits, gate=self.gate)

    def _usual(self, _tenant: str, _agent_id: str, _skill: str | None) -> int | None:
        return self.usual_ms

    def opened(
        self,
        target: Agent,
        *,
        by: Caller | None = None,
        priority: Priority = Priority.NORMAL,
        wait: Wait = Wait.END,
        key: str | None = None,
        timeout_s: float = 30.0,
        via: Via = Via.HTTP,
        admit: bool = True,
    ) -> OpenedCall:
        """A call that was admitted, and opened at once."""
        by = by or caller()
        task = new_task(self.clock, caller=by.id)
        asked = msgspec.structs.replace(task.asked, priority=priority, wait=wait, idempotency_key=key)
        endpoint = msgspec.structs.replace(ENDPOINT, via=via)
        call = AdmittedCall(
            caller=by,
            operation=asked,
            agent=target,
            endpoint=endpoint,
            skill=None,
            message=asked.message,
            task=task,
            timeout_s=timeout_s,
            deadline=self.clock.monotonic() + timeout_s,
        )
        if admit:
            self.admit(call)
        return OpenedCall(call=call, task=task)

    def admit(self, call: AdmittedCall) -> None:
        """Let it in, or raise."""
        self.flow.admit(call)
