"""How a task lives: which events are legal, and what the task is after them.

`legal` checks events against a state; `fold` builds the task after a batch of events, once, so that a chunk of
a stream does not rebuild it; `answered_at_once` does both for what most calls are. `output_of` finds the answer,
wherever the agent put it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from dragoman.model.agent import Agent
from dragoman.model.content import Artifact, Data, Message, Part, Role, Text
from dragoman.model.errors import AgentUnavailable
from dragoman.model.events import (
    ArtifactChunk,
    Logged,
    Sent,
    StatusChanged,
    TaskEvent,
    Watched,
)
from dragoman.model.json import JsonObject, is_object
from dragoman.model.states import COMPLETED, FINAL, INTERRUPTED, MOVES, TaskState
from dragoman.model.task import Task

RESULT_ARTIFACT: Final = "result"
_USER: Final = Role.USER
_AGENT: Final = Role.AGENT


def legal(state: TaskState, events: Iterable[TaskEvent]) -> list[TaskEvent]:
    """Those of the events that are legal one after the other; what follows an end is dropped."""
    kept: list[TaskEvent] = []
    moves = MOVES[state]  # none from an end
    for event in events:
        if type(event) is StatusChanged:  # An `isinstance` that fails is dear, here and below.
            if event.state not in moves:
                continue
            moves = MOVES[event.state]
        elif not moves:
            continue
        kept.append(event)
    return kept


def fold(task: Task, events: Sequence[TaskEvent]) -> Task:
    """The task after these (legal) events."""
    last = events[-1]
    changes: JsonObject = {"last_seq": task.last_seq + len(events), "updated_at": last.at}
    messages, artifacts = task.messages, task.artifacts
    status: StatusChanged | None = None
    said: list[Message] = []
    made: dict[str, Artifact] | None = None
    for event in events:
        if type(event) is ArtifactChunk:
            if made is None:
                made = {known.id: known for known in artifacts} if artifacts else {}
            piece = event.artifact
            known = made.get(piece.id) if event.append else None
            made[piece.id] = piece if known is None else _extended(known, piece)
        elif type(event) is StatusChanged:
            _fold_status(changes, event, task.state if status is None else status.state)
            status = event
        elif type(event) is Sent:
            _fold_sent(changes, event, task)
        elif type(event) is Watched:
            changes["callbacks"] = event.callbacks
        elif type(event) is Logged:
            changes["logged"] = changes.get("logged", task.logged) + 1
        else:
            said.append(event.message)
            changes["direct"] = event.direct
            changes["answered"] = event.message.role is _USER or changes.get("answered", task.answered)
    if last.n:
        changes["heard"] = last.n  # They come in the agent's order: the last has the highest number.
    if said:
        messages = changes["messages"] = (*messages, *said)
    if made is not None:
        artifacts = changes["artifacts"] = tuple(made.values())
    if status is not None and status.state in FINAL:
        _fold_end(changes, status, task, messages, artifacts)
    return msgspec.structs.replace(task, **changes)


def answered_at_once(task: Task, events: Sequence[TaskEvent]) -> Task | None:
    """The task after these events, where it was sent and answered with one artifact, and nothing happened before.

    The same as `legal` and `fold`, in one step instead of one for each event; None for any other story.
    """
    if len(events) != 3 or task.last_seq != 1:
        return None
    sent, made, end = events
    if type(sent) is not Sent or type(made) is not ArtifactChunk or type(end) is not StatusChanged:
        return None
    if end.state is not COMPLETED or end.message is not None or task.route is not None:
        return None
    artifact = made.artifact
    return msgspec.structs.replace(
        task,
        state=COMPLETED,
        attempt=sent.attempt,
        remote=sent.remote or task.remote,
        started_at=sent.at,
        artifacts=(artifact,),
        result=lone_object(_filled(artifact.parts)) if end.result is None else end.result,
        progress=end.progress,
        failure=end.failure,
        usage=end.usage,
        heard=end.n,
        ended_at=end.at,
        updated_at=end.at,
        last_seq=4,
    )


def moved_to(task: Task, agent: Agent) -> Task:
    """The task of another agent, as it will be once it was sent to that one."""
    route = None if task.route is None else task.route.moved(agent.id, AgentUnavailable.code)
    return msgspec.structs.replace(task, agent_id=agent.id, agent_version=agent.card.version, route=route)


def output_of(task: Task) -> tuple[Part, ...]:
    """The answer's parts: from a direct message, the artifacts, the last status message, or the last agent message."""
    return _answer(task.direct, task.messages, task.artifacts, task.status_message)


def artifacts_of(task: Task) -> tuple[Artifact, ...]:
    """What the agent made; an answer that it left elsewhere (in a message or a status) is one artifact, `result`."""
    if task.state is not COMPLETED:
        return task.artifacts
    for made in task.artifacts:
        for part in made.parts:
            if not _is_empty(part):
                return task.artifacts
    found = output_of(task)
    return (Artifact(id=RESULT_ARTIFACT, name=RESULT_ARTIFACT, parts=found),) if found else task.artifacts


def history_of(task: Task) -> tuple[Message, ...]:
    """Every turn so far: the message that opened the task, then what was said in it."""
    return (task.asked.message, *task.messages)


def says_again(task: Task, message: Message | None) -> bool:
    """Whether the last words of an agent that is done are its answer, which is shown as artifacts anyway."""
    if message is None or task.state is not COMPLETED or message.role is not _AGENT:
        return False
    said = [part for part in message.parts if not _is_empty(part)]
    made = [part for artifact in artifacts_of(task) for part in artifact.parts if not _is_empty(part)]
    words = _words_of(said)
    return bool(said) and (said == made or (words is not None and words == _words_of(made)))


def lone_object(parts: tuple[Part, ...]) -> JsonObject | None:
    """The answer itself where it is exactly one JSON object."""
    if len(parts) == 1:
        part = parts[0]
        if isinstance(part, Data) and is_object(part.value):
            return part.value
    return None


def _answer(
    direct: bool,
    messages: tuple[Message, ...],
    artifacts: tuple[Artifact, ...],
    words: Message | None,
) -> tuple[Part, ...]:
    """The first of the places where agents leave their answer that has any content, and only that one."""
    if direct and messages:
        return messages[-1].parts
    found = _filled(artifacts[0].parts if len(artifacts) == 1 else _all_parts(artifacts))
    if found:
        return found
    if words is not None and words.role is not _USER:
        found = _filled(words.parts)
        if found:
            return found
    return _last_words(messages)


def _fold_status(changes: JsonObject, event: StatusChanged, before: TaskState) -> None:
    changes["state"] = event.state
    if event.message is not None:
        changes["status_message"] = event.message
    elif before in INTERRUPTED and event.state not in INTERRUPTED:
        changes["status_message"] = None  # A question that was answered is no longer what the task says.
    if event.progress is not None:
        changes["progress"] = event.progress
    if event.usage is not None:
        changes["usage"] = event.usage
    if event.result is not None:
        changes["result"] = event.result


def _fold_end(
    changes: JsonObject, end: StatusChanged, task: Task, messages: tuple[Message, ...], artifacts: tuple[Artifact, ...]
) -> None:
    changes["ended_at"] = end.at
    if end.failure is not None:
        changes["failure"] = end.failure
    if end.message is None and artifacts:
        # An end that says nothing: what was said on the way is over, unless it is the only answer there is.
        changes["status_message"] = None
    if end.state is COMPLETED and "result" not in changes:
        words = changes.get("status_message", task.status_message)
        changes["result"] = lone_object(_answer(changes.get("direct", task.direct), messages, artifacts, words))


def _fold_sent(changes: JsonObject, event: Sent, task: Task) -> None:
    if event.attempt != changes.get("attempt", task.attempt):
        changes["heard"] = 0  # Each attempt counts from the beginning.
    changes["attempt"] = event.attempt
    changes["answered"] = False
    if event.agent_id != task.agent_id and task.route is not None:
        # It was chosen by its skill, and the one before could not be reached.
        changes["agent_id"] = event.agent_id
        changes["agent_version"] = task.route.version_of(event.agent_id) or task.agent_version
        changes["route"] = task.route.moved(event.agent_id, AgentUnavailable.code)
    if event.remote is not None:
        changes["remote"] = event.remote
    if task.started_at is None:
        changes.setdefault("started_at", event.at)


def _extended(known: Artifact, piece: Artifact) -> Artifact:
    return msgspec.structs.replace(known, parts=known.parts + piece.parts)


def _words_of(parts: list[Part]) -> str | None:
    """What these parts say, if they are nothing but words."""
    words = [part.text for part in parts if isinstance(part, Text)]
    return "".join(words) if len(words) == len(parts) else None


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text) and not part.text


def _filled(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Those of the parts that say something; the very same tuple where all do."""
    for part in parts:
        if isinstance(part, Text) and not part.text:
            return tuple([part for part in parts if not _is_empty(part)])
    return parts


def _all_parts(artifacts: tuple[Artifact, ...]) -> tuple[Part, ...]:
    return tuple([part for artifact in artifacts for part in artifact.parts])


def _last_words(messages: tuple[Message, ...]) -> tuple[Part, ...]:
    for message in reversed(messages):
        if message.role is _USER:
            return ()
        if message.role is _AGENT:
            found = _filled(message.parts)
            if found:
                return found
    return ()
