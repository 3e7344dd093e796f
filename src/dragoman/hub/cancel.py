"""Cancel a task: its target is told, the end is recorded, and whoever carries it lets go.

Cancelling against completing: the first commit wins.
"""

from dragoman.hub.carry import Carrier
from dragoman.hub.follow import named
from dragoman.hub.registry import Registry
from dragoman.hub.tasks import TaskBook
from dragoman.model.agent import Agent
from dragoman.model.call import Caller
from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import AgentNotFound, TaskNotCancelable
from dragoman.model.events import StatusChanged
from dragoman.model.fit import Feature
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier
from dragoman.ports.store import Tasks


class Canceller:
    """Ends tasks at their callers' wish."""

    def __init__(
        self,
        *,
        store: Tasks,
        bus: Bus,
        registry: Registry,
        tasks: TaskBook,
        courier: Courier,
        carrier: Carrier,
        clock: Clock,
    ) -> None:
        self._store = store
        self._bus = bus
        self._registry = registry
        self._tasks = tasks
        self._courier = courier
        self._carrier = carrier
        self._clock = clock

    async def cancel(self, caller: Caller, task: Task, reason: str | None) -> Task:
        """The task, canceled. Raises TaskNotCancelable where it had ended."""
        if task.ended:
            raise _too_late(task)
        # The first call of a workflow is at no agent; who carries the workflow sees its end, and cancels its steps.
        agent = None if task.asked.then else await self._agent(caller, task)
        if agent is not None and not self._carrier.waits(task.id) and self._is_being_named(task, agent):
            task = await named(task, store=self._store, bus=self._bus)
        # Looked at before: with its end a task is no longer carried.
        was_sent = task.state is not TaskState.SUBMITTED or task.id in self._tasks.live or task.attempt > 0
        now = self._clock.now()
        said = None if not reason else Message(id=f"{task.id}-cancel", role=Role.USER, parts=(Text(text=reason),))
        ended = await self._tasks.record(task, (StatusChanged(at=now, state=TaskState.CANCELED, message=said),))
        if ended.state is not TaskState.CANCELED:
            raise _too_late(ended)
        was_sent = was_sent and not self._carrier.waits(task.id)
        self._carrier.let_go(ended)
        if was_sent and agent is not None:
            await self._courier.cancel(ended, agent, reason or "cancelled by the caller")
        return ended

    async def _agent(self, caller: Caller, task: Task) -> Agent | None:
        try:
            return await self._registry.resolve(caller, task.agent_id)
        except AgentNotFound:
            return None

    def _is_being_named(self, task: Task, agent: Agent) -> bool:
        """Whether the task is on its way to a target that will say at once by which name it can be cancelled there."""
        carried = task.state is TaskState.WORKING or task.id in self._tasks.live
        named_already = task.remote is not None and task.remote.task_id is not None
        endpoint = next(filter(self._registry.can_call, agent.card.endpoints), None)
        if not carried or named_already or endpoint is None:
            return False
        features = endpoint.features
        # Of a call that is waited for, a target that can answer in its reply says nothing before that.
        late = task.asked.wait is Wait.END and Feature.ANSWERS in features
        return Feature.GET in features and not late


def _too_late(task: Task) -> TaskNotCancelable:
    return TaskNotCancelable(f"{task.id} has ended: {task.state}.", call_id=task.id, state=task.state.value)
