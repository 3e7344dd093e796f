"""What a hub might answer to an operation: made from the operation itself, so that odd things come back in it."""

import json
from pathlib import Path
from random import Random
from typing import Final

import msgspec

from dragoman.dialects import DIALECTS
from dragoman.dialects.cards import read_any_card
from dragoman.model import errors
from dragoman.model.agent import Agent
from dragoman.model.answers import (
    Accepted,
    AgentPage,
    Answer,
    CallbackList,
    Card,
    Done,
    Mail,
    Noted,
    Pong,
    Registered,
    TaskPage,
)
from dragoman.model.callbacks import Callback
from dragoman.model.content import Artifact, Message, Role, Text
from dragoman.model.errors import DragomanError
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent, Usage
from dragoman.model.lifecycle import fold, legal
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
    Operation,
    Ping,
    ReadMail,
    RegisterAgent,
    ReportTask,
    SendTask,
    SetCallback,
    Signed,
    Unreadable,
    Wait,
    WatchChanges,
)
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.task import Task
from tests.dialects.goldens import LATER, agent_of, place_of, task_of

STATES: Final = tuple(TaskState)
SETTLED: Final = tuple(state for state in TaskState if state in FINAL or state in INTERRUPTED)
SAID: Final = Message(id="said", role=Role.AGENT, parts=(Text(text="Which one? ✓"),))
MAIL: Final = (b'{"type":"ping"}',)
# What the hub refuses with after a request was understood; its own faults and the agents' are 5xx and no rubbish.
REFUSALS: Final[tuple[type[DragomanError], ...]] = tuple(
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, DragomanError) and value.http_status < 500
)
_TASK: Final = task_of({})
_CARDS: Final = Path(__file__).parents[1] / "examples"


def agents() -> tuple[Agent, ...]:
    """One agent of each dialect whose examples have a card."""
    cards = [json.loads(path.read_text()) for path in sorted(_CARDS.glob("*/agent-card*.json"))]
    return tuple(agent_of(read_any_card(card)) for card in cards)


AGENTS: Final = agents()


def answer_to(random: Random, operation: Operation) -> Answer | DragomanError:
    """An answer that the hub could give, or a refusal."""
    if isinstance(operation, Unreadable):
        return operation.error
    if random.random() < 0.2:
        return refusal(random)
    match operation:
        case Signed(operation=signed):
            return answer_to(random, signed)
        case SendTask() | GetTask() | CancelTask() | ListTasks():
            return _about_tasks(random, operation)
        case ReportTask():
            events = legal(_TASK.state, operation.events)
            return Noted(task=fold(_TASK, events) if events else _TASK, applied=bool(events))
        case ReadMail():
            return Mail(messages=MAIL, cursor=operation.after + 1)
        case RegisterAgent() | ChangeAgent() | Discover() | GetCard():
            return _about_agents(random, operation)
        case Ping():
            return Pong(nonce=operation.nonce, echo=operation.echo)
        case FollowTask() | WatchChanges():
            return errors.NotSupported()
        case SetCallback() | GetCallback() | ListCallbacks() | DeleteCallback():
            return _about_callbacks(operation)
        case _:
            raise AssertionError(f"no dialect asks for {type(operation).__name__} yet")


def refusal(random: Random) -> DragomanError:
    """Something that the hub says after it has understood."""
    error = random.choice(REFUSALS)(f"No ✓ {random.randrange(9)}")
    error.details |= random.choice(
        ({}, {"errors": [{"path": "a.b", "message": "no"}]}, {"state": "completed"}, {"n": 2**70})
    )
    return error


def _about_callbacks(operation: SetCallback | GetCallback | ListCallbacks | DeleteCallback) -> Answer:
    match operation:
        case SetCallback(callback=callback):
            return callback
        case GetCallback(dialect=dialect) | ListCallbacks(dialect=dialect):
            known = Callback(id="cb", dialect=dialect, url="http://x/", token="t", auth={"scheme": "Bearer"})
            return known if isinstance(operation, GetCallback) else CallbackList(callbacks=(known,))
        case DeleteCallback():
            return Done()


def _about_tasks(random: Random, operation: SendTask | GetTask | CancelTask | ListTasks) -> Answer:
    match operation:
        case SendTask():
            if operation.wait is Wait.NONE:
                return Accepted(task=_task(random, operation, STATES))
            return _task(random, operation, SETTLED)
        case GetTask():
            return _task(random, _TASK.asked, STATES)
        case CancelTask():
            return fold(_TASK, [StatusChanged(at=LATER, state=TaskState.CANCELED)])
        case ListTasks():
            return TaskPage(tasks=(_task(random, _TASK.asked, STATES), _TASK), total=2, cursor="next")


def _about_agents(
    random: Random, operation: RegisterAgent | ChangeAgent | Discover | GetCard
) -> Answer | DragomanError:
    agent = random.choice(AGENTS)
    match operation:
        case RegisterAgent(card=card, any_card=any_card, dialect=dialect):
            try:
                card = card or (read_any_card(any_card, dialect) if any_card is not None else agent.card)
            except DragomanError as error:
                return error
            agent = agent_of(card)
            for each in DIALECTS.values():
                show_in(each.slug, agent)
            return Registered(agent=agent, created=random.random() < 0.5, token="t", signing_secret="s")
        case Discover(limit=limit):
            return AgentPage(agents=AGENTS[:limit], total=len(AGENTS), cursor="next", exceeded=random.random() < 0.1)
        case ChangeAgent(card=card):
            return Card(agent=agent if card is None else agent_of(card), owner=True)
        case GetCard(agent=named):
            return Card(agent=agent, is_hub=named is None, protected=random.random() < 0.5)


def show_in(slug: str, agent: Agent) -> bytes:
    """An agent's card in a dialect, as bytes: whatever was registered can be shown everywhere."""
    write = DIALECTS[slug].write_card
    assert write is not None
    return msgspec.json.encode(write(agent, place_of(agent.card)))


def _task(random: Random, asked: SendTask, states: tuple[TaskState, ...]) -> Task:
    """A task that repeats what was asked, in one of the places where agents put their answers."""
    task = msgspec.structs.replace(_TASK, asked=asked, skill=asked.skill, context_id=asked.context_id or "ctx-1")
    parts = asked.message.parts
    events: list[TaskEvent] = []
    if random.random() < 0.7:
        made = Artifact(id=asked.message.id, parts=parts, name="n", kind="report", metadata=asked.metadata)
        events.append(ArtifactChunk(at=LATER, artifact=made))
    if random.random() < 0.3:
        events.append(MessageAdded(at=LATER, message=Message(id="a", role=Role.AGENT, parts=parts)))
    state = random.choice(states)
    events.append(
        StatusChanged(
            at=LATER,
            state=state,
            message=SAID if random.random() < 0.4 else None,
            progress=0.5 if random.random() < 0.3 else None,
            usage=Usage(tokens=7, other={"images": 1}) if random.random() < 0.3 else None,
            # A refusal of the caller's input is no fault: every dialect has a status below 500 for it.
            failure=errors.InputRefused("not that").failure() if state is TaskState.FAILED else None,
        )
    )
    return fold(task, events)
