"""Tasks, steps and agents as the hub hands them to a store."""

from collections.abc import Sequence
from datetime import timedelta

from dragoman.model.agent import Agent, AgentCard, AgentFigures, AgentStatus, Endpoint, Skill
from dragoman.model.content import Artifact, Data, Message, Role, Text
from dragoman.model.events import ArtifactChunk, Remote, Sent, StatusChanged, TaskEvent, Usage
from dragoman.model.json import Json
from dragoman.model.lifecycle import fold
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace
from dragoman.ports.clock import Clock
from dragoman.ports.store import CALLS, Growth, NewJob, Once, Opening, Owner, Scope

EVERYONE = Scope(tenant="acme", principal=None)
ALICE = Scope(tenant="acme", principal="alice")
BOB = Scope(tenant="acme", principal="bob")


def new_task(
    clock: Clock,
    *,
    caller: str = "alice",
    context: str | None = None,
    said: Json = None,
    skill: str | None = None,
    dialect: str = "platform",
    trace: str = "0af7651916cd43dd8448eb211c80319c",
) -> Task:
    """A task as admission makes it: event 1 is implied by `last_seq`."""
    now = clock.now()
    message = Message(id=clock.new_id("msg_"), role=Role.USER, parts=(Data(value=said or {"city": "Lisbon"}),))
    return Task(
        id=clock.new_id("call_"),
        tenant="acme",
        caller_id=caller,
        agent_id="weather",
        agent_version="1.0.0",
        dialect=dialect,
        context_id=context or clock.new_id("ctx_"),
        asked=SendTask(message=message, agent="weather", context_id=context),
        trace=Trace(trace_id=trace, span_id="b7ad6b7169203331"),
        created_at=now,
        updated_at=now,
        skill=skill,
        messages=(message,),
        last_seq=1,
    )


def opening(
    task: Task, *, durable: bool = False, once: Once | None = None, owner: Owner | None = None, rank: float = 0.0
) -> Opening:
    return Opening(task=task, job=NewJob(queue=CALLS, owner=owner, rank=rank), durable=durable, once=once)


def once(clock: Clock, key: str, *, scope: str = "key", digest: bytes = b"same body", hours: float = 24) -> Once:
    expires = clock.now() + timedelta(hours=hours)
    return Once(principal="alice", scope=scope, key=key, digest=digest, expires_at=expires)


def step(task: Task, *events: TaskEvent, jobs: Sequence[NewJob] = ()) -> Growth:
    return Growth(task=fold(task, events), after=task.last_seq, events=events, jobs=tuple(jobs))


def sent(clock: Clock) -> Sent:
    return Sent(at=clock.now(), agent_id="weather", remote=Remote(task_id="r-1"))


def moved(clock: Clock, state: TaskState) -> StatusChanged:
    return StatusChanged(at=clock.now(), state=state)


def completed(clock: Clock, result: Json = None) -> StatusChanged:
    answer = {"sky": "clear"} if result is None else result
    return StatusChanged(at=clock.now(), state=TaskState.COMPLETED, result=answer, usage=Usage(tokens=7))


def chunk(clock: Clock, text: str) -> ArtifactChunk:
    return ArtifactChunk(at=clock.now(), artifact=Artifact(id="a", parts=(Text(text=text),)), append=True, last=False)


def new_agent(
    clock: Clock,
    agent_id: str,
    *,
    owner: str = "alice",
    tenant: str = "acme",
    uuid: str | None = None,
    skills: Sequence[str] = (),
    tags: Sequence[str] = (),
    description: str = "",
    version: str = "1.0.0",
    aliases: Sequence[str] = (),
    labels: Sequence[str] = (),
    streaming: bool = False,
    dialect: str = "platform",
    rating: float = 4.5,
    p95_ms: int = 0,
    availability: float = 1.0,
    status: AgentStatus = AgentStatus.ACTIVE,
    open_: bool = False,
    private: bool = False,
) -> Agent:
    card = AgentCard(
        id=agent_id,
        name=f"Agent {agent_id}",
        description=description,
        version=version,
        skills=tuple(Skill(id=skill, name=skill) for skill in skills),
        endpoints=(Endpoint(dialect=dialect, url="https://agents.example/a"),),
        labels=tuple(labels),
        streaming=streaming,
    )
    return Agent(
        card=card,
        uuid=uuid or clock.new_id("uuid-"),
        tenant=tenant,
        owner_id=owner,
        registered_at=clock.now(),
        updated_at=clock.now(),
        status=status,
        open=open_,
        private=private,
        aliases=tuple(aliases),
        tags=tuple(tags),
        figures=AgentFigures(rating=rating, p95_ms=p95_ms, availability=availability),
    )
