"""The hub: one operation in, one answer out. One line per operation; everything else is a step below."""

from collections.abc import Awaitable, Callable
from copy import copy
from typing import assert_never

from dragoman.hub.admission import Admission
from dragoman.hub.authorize import authorize
from dragoman.hub.carry import Carrier
from dragoman.hub.follow import until_settled
from dragoman.hub.registry import Registry
from dragoman.hub.tasks import TaskBook
from dragoman.model.answers import Answer, Pong
from dragoman.model.call import Arrival, Caller, OpenedCall
from dragoman.model.errors import NotAuthenticated, NotFound, NotSupported, Overloaded
from dragoman.model.json import Json
from dragoman.model.operations import (
    CancelTask,
    ChangeAgent,
    DeleteCallback,
    Discover,
    FollowTask,
    GetCallback,
    GetCard,
    GetTask,
    ListCallbacks,
    ListTasks,
    ListVersions,
    Operation,
    Ping,
    RateTask,
    RegisterAgent,
    ReportTask,
    SendTask,
    SetCallback,
    Unreadable,
)
from dragoman.model.task import Task
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store


class Hub:
    """What a caller can ask for, whatever dialect it was asked in."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        clock: Clock,
        registry: Registry,
        admission: Admission,
        tasks: TaskBook,
        carrier: Carrier,
        draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._registry = registry
        self._admission = admission
        self._tasks = tasks
        self._carrier = carrier
        self._draining = draining

    def handle(self, caller: Caller, operation: Operation, arrival: Arrival) -> Awaitable[Answer]:
        """The answer to one operation. Raises DragomanError and its subclasses, at once or when awaited."""
        authorize(caller, operation)
        answer = self._answer(caller, operation, arrival)
        return _for_stranger(answer) if caller.anonymous else answer

    def _answer(self, caller: Caller, operation: Operation, arrival: Arrival) -> Awaitable[Answer]:
        match operation:
            case SendTask():
                return self._send(caller, operation, arrival)
            case GetTask(task_id=task_id):
                return self._tasks.load(caller, task_id)
            case Discover():
                return self._registry.discover(caller, operation)
            case GetCard(agent=agent):
                return self._registry.card(caller, agent)
            case ListVersions(agent=agent):
                return self._registry.versions(caller, agent)
            case RegisterAgent():
                return self._registry.register(caller, operation)
            case ChangeAgent():
                return self._registry.change(caller, operation)
            case Ping(nonce=nonce, echo=echo):
                return _pong(nonce, echo)
            case Unreadable(error=error):
                # A copy: raised itself it would hold this frame, which holds the operation, which holds it.
                raise copy(error)
            case (
                ListTasks()
                | CancelTask()
                | FollowTask()
                | ReportTask()
                | RateTask()
                | SetCallback()
                | GetCallback()
                | ListCallbacks()
                | DeleteCallback()
            ):
                # No dialect of this version asks for these.
                raise NotSupported(f"{type(operation).__name__} is not offered.")
            case _ as never:
                assert_never(never)

    async def _send(self, caller: Caller, asked: SendTask, arrival: Arrival) -> Task:
        if self._draining():
            raise Overloaded("The hub is shutting down.", retry_after_s=2, reason="draining")
        call = await self._admission.admit(caller, asked, arrival)
        opened = await self._tasks.open(call)
        if isinstance(opened, OpenedCall):
            return await self._carrier.carry(opened)
        return await until_settled(
            opened,
            store=self._store,
            bus=self._bus,
            clock=self._clock,
            deadline=call.deadline,
            timeout_s=call.timeout_s,
        )


async def _for_stranger(answer: Awaitable[Answer]) -> Answer:
    """To a stranger what is not there and what is not theirs look the same."""
    try:
        return await answer
    except NotFound:
        raise NotAuthenticated from None


async def _pong(nonce: str | None, echo: Json) -> Answer:
    return Pong(nonce=nonce, echo=echo)
