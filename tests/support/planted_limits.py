"""Bugs in what is let through to an agent."""

import asyncio
from datetime import datetime

from dragoman.hub.carry import Carrier
from dragoman.hub.flow import gate
from dragoman.hub.flow.gate import Gate
from dragoman.hub.flow.limits import Meter
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.operations import Priority
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.clock import SystemClock
from tests.support.planting import put_in_place

LATER_S = 0.05


def meter_taken_later(_: int) -> None:
    """A meter is looked at, and taken from only after others had their turn."""
    take = Meter.take

    def later(self: Meter, now_ns: int) -> None:
        asyncio.get_running_loop().call_later(LATER_S, take, self, now_ns)

    put_in_place(Meter, "take", later)


def failed_calls_keep_their_permit(_: int) -> None:
    """The permit of a call that failed is never given back."""
    carry, build = Carrier.carry, Gate.__init__
    gates: list[Gate] = []

    def built(self: Gate, **parts: object) -> None:
        gates.append(self)
        build(self, **parts)  # pyright: ignore[reportArgumentType] - handed on as they came

    async def forgetful(self: Carrier, opened: OpenedCall, *, was_sent: bool = False, begins: bool = False) -> Task:
        task = await carry(self, opened, was_sent=was_sent, begins=begins)
        if task.state is TaskState.FAILED:
            gates[0].enter(opened, sent=True)
        return task

    put_in_place(Gate, "__init__", built)
    put_in_place(Carrier, "carry", forgetful)


def priority_ignored(_: int) -> None:
    """Calls wait for their agent in the order in which they came, however urgent they are."""

    def arrival(_priority: Priority, arrived: datetime) -> float:
        return arrived.timestamp()

    put_in_place(gate, "rank", arrival)


def permit_kept_between_tries(_: int) -> None:
    """A call that waits for its next try keeps its agent's permit."""

    async def kept(_self: Gate, _call: AdmittedCall, seconds: float) -> None:
        await SystemClock().sleep(seconds)

    put_in_place(Gate, "aside", kept)
