"""An agent of any dialect that says what a test wants it to say: a real little server, without a hub or a model.

    async with FakeAgent(dialect="a2a-0.3", replies=["Hello", {"n": 1}]) as fake:
        ...                         # fake.url, fake.card; fake.asked is what it was sent

It speaks its dialect with the same words as the hub does, at its root and below `/{dialect}`.
"""

from collections import deque
from collections.abc import AsyncIterator, Sequence
from typing import Final, Self

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import RPC, Dialect, Exchange, Notice, Place, StreamExchange, Streaming
from dragoman.dialects.uuids import uuid_of
from dragoman.model.agent import Agent, AgentCard, Endpoint, Skill
from dragoman.model.answers import Accepted, AgentPage, Answer, Card, Done, Pong, TaskPage
from dragoman.model.callbacks import Callback
from dragoman.model.content import Artifact
from dragoman.model.errors import DragomanError, NotSupported, TaskNotCancelable, TaskNotFound
from dragoman.model.events import ArtifactChunk, Happened, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import NO_PARAMS, HttpReply, HttpRequest
from dragoman.model.json import Json
from dragoman.model.lifecycle import fold
from dragoman.model.operations import (
    CancelTask,
    Discover,
    GetCard,
    GetTask,
    ListTasks,
    Operation,
    Ping,
    ReportTask,
    SendTask,
    Signed,
    Unreadable,
    Wait,
)
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot, Task, Trace
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.content import Data, File, Message, Text, message_of, to_model
from dragoman.sdk.testing.little_server import LittleServer, Streamed
from dragoman.server.routes import RouteTable

KEPT: Final = 1000  # tasks, and requests that can be looked at
PLATFORM: Final = "platform"
SKILL: Final = "answer"

Saying = str | Text | Data | File | Message | Json


class FakeAgent:
    """One agent with one skill, `answer`: each message gets the next of the replies, the last one again and again."""

    def __init__(
        self,
        dialect: str = PLATFORM,
        replies: Sequence[Saying] = ("done",),
        *,
        delay_s: float = 0.0,
        fail: type[DragomanError] | DragomanError | None = None,
        name: str = "Fake",
        id: str = "agt_fake",
        clock: Clock | None = None,
    ) -> None:
        """Raises ValueError for a dialect that there is not, or for no replies at all."""
        if dialect not in DIALECTS:
            raise ValueError(f'There is no dialect "{dialect}"; there are: {", ".join(sorted(DIALECTS))}.')
        if not replies:
            raise ValueError("A FakeAgent needs at least one reply.")
        self.asked: deque[SendTask] = deque(maxlen=KEPT)
        self._dialect = DIALECTS[dialect]
        self._replies = list(replies)
        self._delay_s = delay_s
        self._fail = fail() if isinstance(fail, type) else fail
        self._clock = clock or SystemClock()
        self._agent = _agent(self._dialect, name, id, self._clock)
        self._tasks: dict[str, Task] = {}
        self._routes = RouteTable([(route.method, route.path or "/", route.name) for route in self._dialect.routes])
        has_methods = self._dialect.methods or self._dialect.methods_begin
        self._calls = RPC if has_methods else self._dialect.routes[0].name
        self._server = LittleServer(self._answer, self._clock)

    @property
    def id(self) -> str:
        """Its id."""
        return self._agent.id

    @property
    def dialect(self) -> str:
        """What it speaks."""
        return self._dialect.slug

    @property
    def url(self) -> str:
        """Where it is: what a hub registers, or a client calls."""
        return f"{self._server.url}/"

    @property
    def card(self) -> Json:
        """Its card, in the words of its dialect."""
        place = Place(hub_url=self._server.url, base_url=self.url, protected=False)
        write = self._dialect.write_card
        return None if write is None else msgspec.json.decode(msgspec.json.encode(write(self._agent, place)))

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.__aexit__()

    async def _answer(self, request: HttpRequest) -> HttpReply | Streamed:
        path = request.url.partition("?")[0]
        inside = path.removeprefix(f"/{self._dialect.slug}") or "/"
        found = self._routes.find(request.method, inside, inside.encode())
        read = self._dialect.read
        if read is None or (found is None and request.method != "POST"):
            return HttpReply(status=404)
        # Whatever path its card names as the endpoint: what is posted there is a call.
        route, given = (self._calls, NO_PARAMS) if found is None else (found.target, found.params)
        params = {"agent": self._agent.id, **given}
        exchange = read(msgspec.structs.replace(request, route=route, params=params))
        try:
            return await self._reply(exchange, request)
        except DragomanError as error:
            return exchange.refuse(error)

    async def _reply(self, exchange: Exchange, request: HttpRequest) -> HttpReply | Streamed:
        operation = exchange.operation
        if isinstance(operation, Signed):
            operation = operation.operation  # A fake knows nobody's keys.
        if not isinstance(operation, SendTask):
            return exchange.reply(self._told(operation))
        self.asked.append(operation)
        if self._fail is not None:
            await self._clock.sleep(self._delay_s)
            raise type(self._fail)(self._fail.message, **self._fail.details)
        said = self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]
        opened = self._opened(operation, request)
        self._keep(opened)
        events = self._events(opened, said)
        if operation.wait is Wait.STREAM and isinstance(exchange, StreamExchange):
            streaming = exchange.stream(opened.id, opened.context_id)
            return Streamed(headers=streaming.headers, pieces=self._pieces(opened, events, streaming))
        await self._clock.sleep(self._delay_s)
        task = self._keep(fold(opened, events))
        if Feature.REPORTS in self._dialect.features:
            return self._reported(task, events)
        return exchange.reply(Accepted(task=opened) if operation.wait is Wait.NONE else task)

    def _told(self, operation: Operation) -> Answer:
        """The answer to what is no message. Raises DragomanError."""
        match operation:
            case GetCard():
                return Card(agent=self._agent, protected=False, at_root=True)
            case GetTask(task_id=task_id):
                return self._task(task_id)
            case CancelTask(task_id=task_id):
                task = self._task(task_id)
                if task.ended:
                    raise TaskNotCancelable(call_id=task_id)
                return self._keep(fold(task, [StatusChanged(at=self._clock.now(), state=TaskState.CANCELED)]))
            case ListTasks():
                return TaskPage(tasks=tuple(self._tasks.values()), total=len(self._tasks))
            case Discover():
                return AgentPage(agents=(self._agent,), total=1)
            case Ping(nonce=nonce, echo=echo):
                return Pong(nonce=nonce, echo=echo)
            case ReportTask():
                return Done()
            case Unreadable(error=error):
                raise type(error)(error.message, **error.details)
            case _:
                raise NotSupported(f"A FakeAgent does not offer {type(operation).__name__}.")

    def _task(self, task_id: str) -> Task:
        task = self._tasks.get(task_id)
        if task is None:
            raise TaskNotFound(call_id=task_id)
        return task

    def _keep(self, task: Task) -> Task:
        if len(self._tasks) >= KEPT and task.id not in self._tasks:
            del self._tasks[next(iter(self._tasks))]
        self._tasks[task.id] = task
        return task

    def _opened(self, asked: SendTask, request: HttpRequest) -> Task:
        return Task(
            id=asked.continues or self._dialect.task_prefix + request.id,
            tenant="",
            caller_id="caller",
            agent_id=self._agent.id,
            agent_version=self._agent.card.version,
            dialect=self._dialect.slug,
            context_id=asked.context_id or f"ctx_{request.id}",
            asked=asked,
            trace=Trace(trace_id="0" * 31 + "1", span_id="0" * 15 + "1"),
            created_at=request.at,
            updated_at=request.at,
            skill=asked.skill or SKILL,
        )

    def _events(self, task: Task, said: Saying) -> list[TaskEvent]:
        made = Artifact(id=f"{task.id}-answer", name="answer", parts=to_model(message_of(said).parts))
        at = self._clock.now()
        return [
            StatusChanged(at=at, state=TaskState.WORKING),
            ArtifactChunk(at=at, artifact=made),
            StatusChanged(at=at, state=TaskState.COMPLETED),
        ]

    async def _pieces(self, task: Task, events: Sequence[TaskEvent], streaming: Streaming) -> AsyncIterator[bytes]:
        yield streaming.frames(Snapshot(task=task))
        *first, last = events
        for event in first:
            task = self._keep(fold(task, [event]))
            yield streaming.frames(Happened(seq=task.last_seq, event=event))
        await self._clock.sleep(self._delay_s)
        task = self._keep(fold(task, [last]))
        if isinstance(last, StatusChanged):
            yield streaming.frames(Ended(seq=task.last_seq, event=last, task=task))

    def _reported(self, task: Task, events: Sequence[TaskEvent]) -> HttpReply:
        """The outcome as the answer itself, in a dialect whose agents report what they did."""
        notice = Notice(
            callback=Callback(id="answer", dialect=self._dialect.slug),
            task=task,
            happened=Happened(seq=task.last_seq, event=events[-1]),
            url="",
            recipient=task.asked.sender or task.caller_id,
            hub_url=self._server.url,
            hub_id=self._agent.uuid,
            at=task.updated_at,
        )
        told = self._dialect.notify(notice) if self._dialect.notify is not None else None
        if told is None:
            raise NotSupported(f"{self._dialect.slug} has no word for the end of a task.")
        return HttpReply(status=200, headers=told.headers, body=told.body)


def _agent(dialect: Dialect, name: str, id: str, clock: Clock) -> Agent:
    card = AgentCard(
        id=id,
        name=name,
        description="Says what a test wants it to say",
        version="1.0.0",
        skills=(Skill(id=SKILL, name=SKILL, description="Answers"),),
        endpoints=(Endpoint(dialect=dialect.slug, features=dialect.features),),
        streaming=Feature.STREAM in dialect.features,
    )
    at = clock.now()
    return Agent(card=card, uuid=uuid_of(id, "fake"), tenant="", owner_id="tests", registered_at=at, updated_at=at)
