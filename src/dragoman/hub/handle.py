"""The hub: one operation in, one answer out. One line per operation; everything else is a step below."""

import asyncio
from collections.abc import Awaitable
from copy import copy
from typing import Final, assert_never

import msgspec

from dragoman.hub.authorize import authorize
from dragoman.hub.cancel import Canceller
from dragoman.hub.flow.breakers import Breakers
from dragoman.hub.flow.pressure import Pressure
from dragoman.hub.happenings import Happenings
from dragoman.hub.intake import Intake
from dragoman.hub.rate import rate
from dragoman.hub.reader import Reader
from dragoman.hub.registry import Registry
from dragoman.hub.reports import Reports
from dragoman.hub.senders import Senders
from dragoman.hub.sending import Sending, stream_of
from dragoman.hub.tasks import TaskBook, scope_of
from dragoman.hub.watching import Watching
from dragoman.model.answers import AgentPage, Answer, Changes, Mail, Pong, Stream, TaskPage
from dragoman.model.call import Arrival, Caller
from dragoman.model.errors import (
    NotAuthenticated,
    NotFound,
    NotSupported,
    TaskNotFound,
)
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
    ReadMail,
    RegisterAgent,
    ReportTask,
    SendTask,
    SetCallback,
    Signed,
    Unreadable,
    WatchChanges,
)
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.observe.names import PING
from dragoman.observe.noticed import Noticed
from dragoman.ports.bus import Bus, mail_topic
from dragoman.ports.store import Store

MAIL_PAGE: Final = 100


class Hub:
    """What a caller can ask for, whatever dialect it was asked in."""

    def __init__(
        self,
        *,
        store: Store,
        bus: Bus,
        registry: Registry,
        intake: Intake,
        tasks: TaskBook,
        sending: Sending,
        canceller: Canceller,
        reports: Reports,
        watching: Watching,
        happenings: Happenings,
        senders: Senders,
        noticed: Noticed,
        pressure: Pressure,
        breakers: Breakers,
    ) -> None:
        self._noticed = noticed
        self._pressure = pressure
        self._breakers = breakers
        self._store = store
        self._bus = bus
        self._registry = registry
        self._intake = intake
        self._tasks = tasks
        self._sending = sending
        self._canceller = canceller
        self._reports = reports
        self._watching = watching
        self._happenings = happenings
        self._senders = senders

    def handle(self, caller: Caller, operation: Operation, arrival: Arrival) -> Awaitable[Answer]:
        """The answer to one operation. Raises DragomanError and its subclasses, at once or when awaited."""
        authorize(caller, operation)
        answer = self._answer(caller, operation, arrival)
        return _for_stranger(answer) if caller.anonymous else answer

    def _answer(  # noqa: C901 - one line per operation
        self, caller: Caller, operation: Operation, arrival: Arrival
    ) -> Awaitable[Answer]:
        match operation:
            case SendTask():
                return self._sending.send(caller, operation, arrival)
            case GetTask():
                return self._get(caller, operation)
            case ListTasks():
                return self._list(caller, operation)
            case CancelTask():
                return self._cancel(caller, operation)
            case ReportTask():
                return self._reports.take(caller, operation)
            case ReadMail():
                return self._mail(caller, operation)
            case Discover():
                self._pressure.refuse_listing()
                return self._discover(caller, operation)
            case GetCard(agent=agent):
                return self._registry.card(caller, agent)
            case ListVersions(agent=agent):
                return self._registry.versions(caller, agent)
            case RegisterAgent():
                return self._intake.register(caller, operation, arrival.request_id)
            case ChangeAgent():
                return self._intake.change(caller, operation, arrival.request_id)
            case Ping():
                return self._pong(caller, operation)
            case Signed():
                return self._signed(caller, operation, arrival)
            case Unreadable(error=error):
                # A copy: raised itself it would hold this frame, which holds the operation, which holds it.
                raise copy(error)
            case FollowTask():
                return self._follow(caller, operation)
            case WatchChanges():
                return self._watch(caller, operation)
            case SetCallback() | GetCallback() | ListCallbacks() | DeleteCallback():
                return self._watching.answer(caller, operation)
            case RateTask():
                return rate(
                    caller, operation, arrival.at, tasks=self._tasks, registry=self._registry, store=self._store
                )
            case _ as never:
                assert_never(never)

    async def _signed(self, caller: Caller, asked: Signed, arrival: Arrival) -> Answer:
        """What a signed message asks, if its signature is right."""
        return await self.handle(caller, asked.operation, await self._senders.proven(caller, asked, arrival))

    async def _discover(self, caller: Caller, asked: Discover) -> AgentPage:
        """A page of agents, with those that are left alone now."""
        page = await self._registry.discover(caller, asked)
        circuits = self._breakers.circuits(page.agents)
        return msgspec.structs.replace(page, circuits=circuits) if circuits else page

    async def _follow(self, caller: Caller, asked: FollowTask) -> Stream:
        task = await self._task(caller, asked.task_id, asked.agent, alias=asked.alias)
        if task.ended and not asked.ended_ok and asked.after is None:
            raise NotSupported(f"{task.id} has ended: {task.state}.", call_id=task.id, state=task.state.value)
        reader = Reader(task, store=self._store, bus=self._bus, after=asked.after, past_questions=asked.past_questions)
        return stream_of(task, reader)

    async def _watch(self, caller: Caller, asked: WatchChanges) -> Changes:
        return self._happenings.watch(caller, asked)

    async def _get(self, caller: Caller, asked: GetTask) -> Task:
        """One of the caller's tasks; what is being carried is worked on, though no event has told so yet."""
        task = await self._task(caller, asked.task_id, asked.agent, alias=asked.alias)
        if task.state is TaskState.SUBMITTED and task.id in self._tasks.live:
            return msgspec.structs.replace(task, state=TaskState.WORKING)
        return task

    async def _task(self, caller: Caller, task_id: str, agent: str | None, *, alias: bool = False) -> Task:
        """One of the caller's tasks, given to that agent where one is named. Raises AgentNotFound, TaskNotFound."""
        at = None if agent is None else await self._registry.resolve(caller, agent)
        task = await self._tasks.by_alias(caller, None, task_id) if alias else await self._tasks.load(caller, task_id)
        if task is None or (at is not None and task.agent_id != at.id):
            raise TaskNotFound(f"There is no call or task {task_id!r}.", call_id=task_id)
        return task

    async def _list(self, caller: Caller, asked: ListTasks) -> TaskPage:
        self._pressure.refuse_listing()
        if asked.agent is not None:
            agent = await self._registry.resolve(caller, asked.agent)
            asked = msgspec.structs.replace(asked, agent=agent.id)
        page = await self._store.list_tasks(scope_of(caller), asked)
        return TaskPage(tasks=page.tasks, total=page.total, cursor=page.cursor)

    async def _cancel(self, caller: Caller, asked: CancelTask) -> Task:
        task = await self._task(caller, asked.task_id, asked.agent, alias=asked.alias)
        return await self._canceller.cancel(caller, task, asked.reason)

    async def _mail(self, caller: Caller, asked: ReadMail) -> Mail:
        """What waits in the caller's mailbox; with patience, what comes within that time."""
        box = await self._registry.box(asked.box, caller) if asked.box is not None else caller.name
        found = await self._store.read_mail(caller.tenant, box, asked.after, MAIL_PAGE)
        if not found and asked.wait_s > 0:
            try:
                async with (
                    asyncio.timeout(asked.wait_s),
                    self._bus.subscribe(mail_topic(caller.tenant, box)) as said,
                ):
                    # Every message, the first LOST included, means: look at the store now.
                    async for _ in said:
                        found = await self._store.read_mail(caller.tenant, box, 0, MAIL_PAGE)
                        if found:
                            break
            except TimeoutError:
                pass
        return Mail(messages=tuple(body for _, body in found), cursor=found[-1][0] if found else asked.after)

    async def _pong(self, caller: Caller, asked: Ping) -> Pong:
        if asked.sender is not None:
            await self._registry.speaking(caller, asked.sender, registered=True)
        if asked.agent is not None and not self._registry.is_hub(asked.agent):
            await self._registry.resolve(caller, asked.agent)
        self._noticed.note(PING, caller.name, caller=caller.name, sender=asked.sender, agent=asked.agent)
        return Pong(nonce=asked.nonce, echo=asked.echo)


async def _for_stranger(answer: Awaitable[Answer]) -> Answer:
    """To a stranger what is not there and what is not theirs look the same."""
    try:
        return await answer
    except NotFound:
        raise NotAuthenticated from None
