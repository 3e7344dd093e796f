"""What a message or a task has to say, as the words by which dialects declare what they cannot say."""

from collections.abc import Iterable, Iterator
from typing import Final, assert_never

from dragoman.model.agent import AgentCard
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.json import Json
from dragoman.model.operations import Priority, SendTask
from dragoman.model.task import Task

Facets = dict[str, Json]  # each with what tells whether it is still the same: itself, or only that it is there

_CALL: Final = {
    "skill": "skill",
    "context": "context_id",
    "task:metadata": "metadata",
    "parent": "parent_id",
    "title": "title",
    "description": "description",
    "accepts": "accepts",
    "extensions": "extensions",
}
_TASK: Final = {"messages": "messages", "status:message": "status_message", "progress": "progress", "usage": "usage"}
_CARD: Final = (
    *("description", "version", "labels", "tags", "extensions", "provider", "links", "pricing", "metadata", "keys"),
    *("input_modes", "output_modes", "memory"),
)
_SKILL: Final = ("description", "input_schema", "output_schema", "input_modes", "output_modes", "tags", "examples")


def facets_of_send(asked: SendTask) -> Facets:
    """What there is in a request to carry."""
    found: Facets = dict.fromkeys(_of_message(asked.message), True)
    found["message:id"] = asked.message.id
    for facet, name in _CALL.items():
        if getattr(asked, name):
            found[facet] = True
    if asked.priority is not Priority.NORMAL:
        found["priority"] = True
    return found


def facets_of_task(task: Task) -> Facets:
    """What there is in an answer."""
    found: Facets = {f"state:{task.state.value}": True}
    for artifact in task.artifacts:
        found |= dict.fromkeys(_of_artifact(artifact), True)
    for message in (*task.messages, *([task.status_message] if task.status_message is not None else [])):
        found |= dict.fromkeys((facet for facet in _of_message(message) if facet != "role:agent"), True)
    if task.messages:
        found["message:id"] = [message.id for message in task.messages]
    if task.artifacts:
        found["artifact:id"] = [artifact.id for artifact in task.artifacts]
    if len(task.artifacts) > 1:
        found["artifacts:several"] = True
    for facet, name in _TASK.items():
        if getattr(task, name):
            found[facet] = True
    if task.failure is not None:
        found["failure:code"] = task.failure.code
    if task.remote is not None and task.remote.context_id is not None:
        found["context"] = True
    return found


def facets_of_card(card: AgentCard) -> Facets:
    """What a card says, each with its value; where it is called and by what credential is the hub's to say."""
    found: Facets = {f"card:{name}": getattr(card, name) for name in _CARD}
    for name in _SKILL:
        found[f"skill:{name}"] = {skill.id: getattr(skill, name) for skill in card.skills if getattr(skill, name)}
    return {facet: value for facet, value in found.items() if value}


def _of_message(message: Message) -> Iterator[str]:
    yield from _of_parts(message.parts)
    if message.role is not Role.USER:
        yield f"role:{message.role.value}"
    if message.metadata:
        yield "message:metadata"
    if message.references:
        yield "message:references"
    if message.extensions:
        yield "message:extensions"


def _of_artifact(artifact: Artifact) -> Iterator[str]:
    yield from _of_parts(artifact.parts)
    for facet in ("name", "description", "kind", "metadata", "extensions"):
        if getattr(artifact, facet):
            yield f"artifact:{facet}"


def _of_parts(parts: tuple[Part, ...]) -> Iterable[str]:
    if len(parts) != 1:
        yield "parts:several" if parts else "parts:none"
    for part in parts:
        yield f"part:{_kind(part)}"
        for facet in ("filename", "media_type", "metadata"):
            if getattr(part, facet):
                yield f"part:{facet}"


def _kind(part: Part) -> str:
    match part:
        case Text():
            return "text"
        case Data():
            return "data"
        case Blob():
            return "blob"
        case Link():
            return "link"
        case _ as never:
            assert_never(never)
