"""Flow control of calls: whether one is let in now, and when it goes on to its agent.

    admit ─► its limits and a place ─► (opened) ─► enter ─► a permit of its target ─► (carried) ─► given back
      └─ RateLimited, CircuitOpen        └─ given_up: it came to nothing          └─ ended: whatever it still had

All of it is memory and never awaits, save for a permit that is not free. Nothing is kept of calls that need nothing.
"""

from typing import Final

from dragoman.hub.flow.breakers import Breakers
from dragoman.hub.flow.gate import Gate
from dragoman.hub.flow.limits import Limits
from dragoman.model.call import AdmittedCall
from dragoman.model.operations import ACCEPTED
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task


class Flow:
    """Lets calls in, and on to their agents."""

    def __init__(self, *, breakers: Breakers, limits: Limits, gate: Gate) -> None:
        self._breakers = breakers
        self._limits = limits
        self.gate = gate  # who runs and who waits, by agent
        self.enter: Final = gate.enter

    def admit(self, call: AdmittedCall, *, step: bool = False) -> None:
        """Let a new call in, or raise RateLimited, CircuitOpen.

        The first call of a workflow goes to no agent, its `step`s do: that one is its caller's request, and counts for
        the caller; these count for their agents. What raises without taking anything stands before what takes.
        """
        asked, caller = call.operation, None if step else call.caller
        if asked.then:
            self._limits.take(caller, None, call.task.id)
            return
        self._breakers.refuse(call.agent)
        self.gate.refuse(call)
        self._limits.take(caller, call.agent, call.task.id)
        joins = asked.idempotency_key is not None or (asked.request_id is not None and asked.request_joins)
        if (joins or call.durable or asked.wait is ACCEPTED) and asked.continues is None:
            self.gate.reserve(call)  # It is on disk before it comes.

    def given_up(self, call: AdmittedCall, *, step: bool = False) -> None:
        """An admitted call came to nothing: it was known before, or could not be opened. All it took is given back."""
        caller, agent = None if step else call.caller, None if call.operation.then else call.agent
        self._limits.give_back(caller, agent, since=call.deadline - call.timeout_s)
        if call.operation.continues is None or call.task.state in INTERRUPTED:
            self.ended(call.task)  # Else somebody carries the task that was to hear more.

    def ended(self, task: Task) -> None:
        """A call has ended, or waits for its caller: whatever it still had is free."""
        self._limits.release(task.id)
        self.gate.leave(task.id)
