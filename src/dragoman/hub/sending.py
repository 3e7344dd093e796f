"""A message for an agent: admitted, opened, and carried while its caller waits, listens, or does neither.

wait for the end   carried on the caller's own task, answered with the task
listen             carried beside the request, answered with the stream of its events
neither            answered when it is on disk; carried at once where a slot is free, else when one is
"""

import contextlib
from collections.abc import Callable
from typing import Final, Protocol

from dragoman.hub.admission import Admission
from dragoman.hub.cancel import Canceller
from dragoman.hub.carry import Carrier
from dragoman.hub.durations import Estimates
from dragoman.hub.earlier import Earlier
from dragoman.hub.flow.flow import Flow
from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.follow import until_settled
from dragoman.hub.reader import Reader
from dragoman.hub.tasks import TaskBook
from dragoman.hub.worker import Worker
from dragoman.model.answers import Accepted, Stream
from dragoman.model.call import AdmittedCall, Arrival, Caller, OpenedCall
from dragoman.model.callbacks import Tells
from dragoman.model.errors import BadParams, DragomanError, Overloaded
from dragoman.model.events import MessageAdded
from dragoman.model.operations import ACCEPTED, STREAMED, SendTask
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.store import Tasks

END_TOLD_S: Final = 1.0  # a workflow that runs out of time says so itself, a moment later

Sent = Task | Accepted | Stream


class Draining(Protocol):
    """Whether the process is stopping, and takes no new calls."""

    draining: bool


class Sending:
    """Takes messages for agents."""

    def __init__(
        self,
        *,
        store: Tasks,
        bus: Bus,
        clock: Clock,
        admission: Admission,
        earlier: Earlier,
        tasks: TaskBook,
        carrier: Carrier,
        canceller: Canceller,
        estimates: Estimates,
        queue: Worker,
        followed: Callable[[], None],
        drain: Draining,
        pressure: Pressure,
        flow: Flow,
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._admission = admission
        self._earlier = earlier
        self._tasks = tasks
        self._carrier = carrier
        self._canceller = canceller
        self._estimates = estimates
        self._queue = queue  # carries what nobody waits for
        self._followed = followed  # told when a call was queued that steps follow
        self._drain = drain
        self._pressure = pressure
        self._flow = flow

    async def send(self, caller: Caller, asked: SendTask, arrival: Arrival) -> Sent:
        """Carry a message out. Raises what admission raises, IdempotencyConflict, Overloaded."""
        if self._drain.draining:
            raise Overloaded("The hub is shutting down.", retry_after_s=2, reason="draining")
        if self._pressure.level:
            self._pressure.refuse_call(asked)
        if asked.alias is not None:
            known = await self._tasks.repeated(caller, asked)
            if known is not None:
                return await self._joined(known, asked, arrival.since + (asked.timeout_s or 0.0))
            asked = await self._earlier.alias_continued(caller, asked)
        call = await self._admission.admit(caller, asked, arrival)
        if asked.continues is not None and call.task.state not in INTERRUPTED:
            return await self._added(call)
        if asked.wait is STREAMED:
            return await self._streamed(caller, call)
        if asked.wait is ACCEPTED:
            return await self._accepted(call)
        try:
            opened = await self._tasks.open(call)
        except BaseException:
            self._flow.given_up(call)
            raise
        if not isinstance(opened, OpenedCall):
            self._flow.given_up(call)
            return await self._joined(opened, asked, call.deadline)
        if asked.then:
            self._followed()
            return await self._joined(opened.task, asked, call.deadline + END_TOLD_S)
        return await self._carrier.carry(opened)

    async def _accepted(self, call: AdmittedCall) -> Sent:
        """The word that the call is on disk. Carried at once where nothing waits before it, else by the queue."""
        asked = call.operation
        # One that may be sent once only has it noted first that it is sent; steps have a queue of their own.
        queued = asked.continues is None and not asked.then
        slot = self._queue.slot() if queued and not asked.at_most_once else None
        try:
            opened = await self._tasks.open(call, claimed=slot is not None)
        except BaseException:
            self._flow.given_up(call)
            if slot is not None:
                slot.give_back()
            raise
        if not isinstance(opened, OpenedCall):
            self._flow.given_up(call)
            if slot is not None:
                slot.give_back()
            return await self._joined(opened, asked, call.deadline)
        if slot is not None:
            slot.use(self._begun(opened))
        elif queued:
            self._queue.wake()
        else:
            self._queue.adopt(self._carried(opened))
        return await self._told(opened.task)

    async def _told(self, task: Task) -> Accepted:
        estimate_ms = self._estimates.estimate_ms(task)
        return Accepted(task=task, estimate_ms=estimate_ms if isinstance(estimate_ms, int) else await estimate_ms)

    async def _streamed(self, caller: Caller, call: AdmittedCall) -> Stream:
        """The call's own stream; whoever leaves it does not end the call, unless that was asked for."""
        fresh = call.operation.continues is None
        reader = self._reader(call.task, unwritten=True) if fresh else None
        try:
            opened = await self._tasks.open(call)
        except BaseException:
            self._flow.given_up(call)
            if reader is not None:
                reader.close()
            raise
        if not isinstance(opened, OpenedCall):
            self._flow.given_up(call)
            if reader is not None:
                reader.close()
            return stream_of(opened, self._reader(opened, after=call.operation.after))
        if reader is None:
            reader = self._reader(opened.task)
            reader.carried = True
        if call.operation.cancel_on_disconnect:
            reader.when_left(lambda: self._queue.adopt(self._cancelled(caller, call.task.id)))
        self._queue.adopt(self._carried(opened))
        return stream_of(opened.task, reader)

    async def _joined(self, task: Task, asked: SendTask, deadline: float) -> Sent:
        """The answer for one who asked again: that of the first."""
        if asked.wait is ACCEPTED:
            return await self._told(task)
        if asked.wait is STREAMED:
            return stream_of(task, self._reader(task, after=asked.after))
        timeout_s = deadline - self._clock.monotonic()
        return await until_settled(
            task, store=self._store, bus=self._bus, clock=self._clock, deadline=deadline, timeout_s=timeout_s
        )

    async def _added(self, call: AdmittedCall) -> Sent:
        """A further message into a task that is being worked on: kept, and handed to the target."""
        task = call.task
        if task.remote is None or task.remote.task_id is None:
            self._flow.given_up(call)
            raise BadParams(f"{task.id} is on its way to its agent; it takes messages as soon as it is there.")
        said = MessageAdded(at=self._clock.now(), message=call.operation.message)
        task = await self._tasks.record(task, (said,))
        self._queue.adopt(self._carried(OpenedCall(call=call, task=task, attempt=task.attempt + 1)))
        return await self._joined(task, call.operation, call.deadline)

    async def _begun(self, opened: OpenedCall) -> None:
        """Carry a call; who wants to hear how it stands hears when it is worked on."""
        told = any(each.tells is not Tells.END for each in opened.task.callbacks)
        await self._carrier.carry(opened, begins=told)

    async def _carried(self, opened: OpenedCall) -> None:
        if opened.call.operation.then:
            self._followed()
        else:
            await self._carrier.carry(opened)

    async def _cancelled(self, caller: Caller, task_id: str) -> None:
        """Nobody reads the stream of a call that was to end with it."""
        with contextlib.suppress(DragomanError):
            task = await self._tasks.load(caller, task_id)
            await self._canceller.cancel(caller, task, "the caller has left")

    def _reader(self, task: Task, *, after: int | None = None, unwritten: bool = False) -> Reader:
        return Reader(task, store=self._store, bus=self._bus, after=after, unwritten=unwritten)


def stream_of(task: Task, reader: Reader) -> Stream:
    """What happens to a task, as an answer."""
    return Stream(items=reader, tenant=task.tenant, task_id=task.id, context_id=task.context_id)
