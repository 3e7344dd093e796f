"""The hub: one operation in, one answer out. One line per operation; everything else is a step below."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from copy import copy
from typing import Final, assert_never

import msgspec

from dragoman.hub.admission import Admission
from dragoman.hub.authorize import authorize
from dragoman.hub.cancel import Canceller
from dragoman.hub.carry import Carrier
from dragoman.hub.durations import Estimates
from dragoman.hub.earlier import Earlier
from dragoman.hub.follow import until_settled
from dragoman.hub.happenings import Happenings
from dragoman.hub.reader import Reader
from dragoman.hub.registry import Registry
from dragoman.hub.reports import Reports
from dragoman.hub.tasks import TaskBook, scope_of
from dragoman.hub.watching import Watching
from dragoman.model.answers import Accepted, Answer, Changes, Mail, Pong, Stream, TaskPage
from dragoman.model.call import AdmittedCall, Arrival, Caller, OpenedCall
from dragoman.model.errors import (
    BadParams,
    DragomanError,
    NotAuthenticated,
    NotFound,
    NotSupported,
    Overloaded,
    TaskNotFound,
)
from dragoman.model.events import MessageAdded
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
    Unreadable,
    Wait,
    WatchChanges,
)
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task
from dragoman.ports.bus import Bus, mail_topic
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store

MAIL_PAGE: Final = 100
END_TOLD_S: Final = 1.0  # a workflow that runs out of time says so itself, a moment later


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
        earlier: Earlier,
        tasks: TaskBook,
        carrier: Carrier,
        canceller: Canceller,
        reports: Reports,
        watching: Watching,
        estimates: Estimates,
        happenings: Happenings,
        adopt: Callable[[Coroutine[None, None, None]], None],
        accepted: Callable[[], None],
        followed: Callable[[], None],
        draining: Callable[[], bool],
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._registry = registry
        self._admission = admission
        self._earlier = earlier
        self._tasks = tasks
        self._carrier = carrier
        self._canceller = canceller
        self._reports = reports
        self._watching = watching
        self._estimates = estimates
        self._happenings = happenings
        self._adopt = adopt  # carries on what nobody waits for
        self._accepted = accepted  # told when a call was queued
        self._followed = followed  # told when a call was queued that steps follow
        self._draining = draining

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
                return self._send(caller, operation, arrival)
            case GetTask(task_id=task_id, agent=agent, alias=alias):
                return self._task(caller, task_id, agent, alias=alias)
            case ListTasks():
                return self._list(caller, operation)
            case CancelTask():
                return self._cancel(caller, operation)
            case ReportTask():
                return self._reports.take(caller, operation)
            case ReadMail():
                return self._mail(caller, operation)
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
            case Ping():
                return self._pong(caller, operation)
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
                # No dialect of this version asks for it.
                raise NotSupported(f"{type(operation).__name__} is not offered.")
            case _ as never:
                assert_never(never)

    async def _send(self, caller: Caller, asked: SendTask, arrival: Arrival) -> Task | Accepted | Stream:
        if self._draining():
            raise Overloaded("The hub is shutting down.", retry_after_s=2, reason="draining")
        if asked.alias is not None:
            known = await self._tasks.repeated(caller, asked)
            if known is not None:
                return await self._joined(known, asked, arrival.since + (asked.timeout_s or 0.0))
            asked = await self._earlier.alias_continued(caller, asked)
        call = await self._admission.admit(caller, asked, arrival)
        if asked.continues is not None and call.task.state not in INTERRUPTED:
            return await self._added(call)
        if asked.wait is Wait.STREAM:
            return await self._streamed(caller, call)
        opened = await self._tasks.open(call)
        if not isinstance(opened, OpenedCall):
            return await self._joined(opened, asked, call.deadline)
        if asked.then:
            self._followed()
            return await self._joined(opened.task, asked, call.deadline + END_TOLD_S)
        if asked.wait is not Wait.NONE:
            return await self._carrier.carry(opened)
        if asked.continues is None:
            self._accepted()
        else:
            self._adopt(self._carried(opened))
        return await self._told(opened.task)

    async def _told(self, task: Task) -> Accepted:
        return Accepted(task=task, estimate_ms=await self._estimates.estimate_ms(task))

    async def _streamed(self, caller: Caller, call: AdmittedCall) -> Stream:
        """The call's own stream; whoever leaves it does not end the call, unless that was asked for."""
        fresh = call.operation.continues is None
        reader = self._reader(call.task, unwritten=True) if fresh else None
        try:
            opened = await self._tasks.open(call)
        except BaseException:
            if reader is not None:
                reader.close()
            raise
        if not isinstance(opened, OpenedCall):
            if reader is not None:
                reader.close()
            return _stream(opened, self._reader(opened, after=call.operation.after))
        if reader is None:
            reader = self._reader(opened.task)
            reader.carried = True
        if call.operation.cancel_on_disconnect:
            reader.when_left(lambda: self._adopt(self._cancelled(caller, call.task.id)))
        self._adopt(self._carried(opened))
        return _stream(opened.task, reader)

    async def _follow(self, caller: Caller, asked: FollowTask) -> Stream:
        task = await self._task(caller, asked.task_id, asked.agent, alias=asked.alias)
        if task.ended and not asked.ended_ok and asked.after is None:
            raise NotSupported(f"{task.id} has ended: {task.state}.", call_id=task.id, state=task.state.value)
        return _stream(task, self._reader(task, after=asked.after, past_questions=asked.past_questions))

    async def _watch(self, caller: Caller, asked: WatchChanges) -> Changes:
        return self._happenings.watch(caller, asked)

    def _reader(
        self, task: Task, *, after: int | None = None, unwritten: bool = False, past_questions: bool = False
    ) -> Reader:
        return Reader(
            task, store=self._store, bus=self._bus, after=after, unwritten=unwritten, past_questions=past_questions
        )

    async def _cancelled(self, caller: Caller, task_id: str) -> None:
        """Nobody reads the stream of a call that was to end with it."""
        with contextlib.suppress(DragomanError):
            task = await self._tasks.load(caller, task_id)
            await self._canceller.cancel(caller, task, "the caller has left")

    async def _joined(self, task: Task, asked: SendTask, deadline: float) -> Task | Accepted | Stream:
        """The answer for one who asked again: that of the first."""
        if asked.wait is Wait.NONE:
            return await self._told(task)
        if asked.wait is Wait.STREAM:
            return _stream(task, self._reader(task, after=asked.after))
        timeout_s = deadline - self._clock.monotonic()
        return await until_settled(
            task, store=self._store, bus=self._bus, clock=self._clock, deadline=deadline, timeout_s=timeout_s
        )

    async def _added(self, call: AdmittedCall) -> Task | Accepted | Stream:
        """A further message into a task that is being worked on: kept, and handed to the target."""
        task = call.task
        if task.remote is None or task.remote.task_id is None:
            raise BadParams(f"{task.id} is on its way to its agent; it takes messages as soon as it is there.")
        said = MessageAdded(at=self._clock.now(), message=call.operation.message)
        task = await self._tasks.record(task, (said,))
        self._adopt(self._carried(OpenedCall(call=call, task=task, attempt=task.attempt + 1)))
        return await self._joined(task, call.operation, call.deadline)

    async def _carried(self, opened: OpenedCall) -> None:
        if opened.call.operation.then:
            self._followed()
        else:
            await self._carrier.carry(opened)

    async def _task(self, caller: Caller, task_id: str, agent: str | None, *, alias: bool = False) -> Task:
        """One of the caller's tasks, given to that agent where one is named. Raises AgentNotFound, TaskNotFound."""
        at = None if agent is None else await self._registry.resolve(caller, agent)
        task = await self._tasks.by_alias(caller, None, task_id) if alias else await self._tasks.load(caller, task_id)
        if task is None or (at is not None and task.agent_id != at.id):
            raise TaskNotFound(f"There is no call or task {task_id!r}.", call_id=task_id)
        return task

    async def _list(self, caller: Caller, asked: ListTasks) -> TaskPage:
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
        if asked.agent is not None and not self._registry.is_hub(asked.agent):
            await self._registry.resolve(caller, asked.agent)
        return Pong(nonce=asked.nonce, echo=asked.echo)


def _stream(task: Task, reader: Reader) -> Stream:
    return Stream(items=reader, tenant=task.tenant, task_id=task.id, context_id=task.context_id)


async def _for_stranger(answer: Awaitable[Answer]) -> Answer:
    """To a stranger what is not there and what is not theirs look the same."""
    try:
        return await answer
    except NotFound:
        raise NotAuthenticated from None
