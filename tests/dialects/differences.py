"""What is not the same after a loop, each difference by the name under which a dialect may declare it as lost."""

from collections.abc import Iterable

from dragoman.dialects.refusals import failure_of, text_of
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Text
from dragoman.model.events import Usage
from dragoman.model.json import Json, is_array, is_object
from dragoman.model.lifecycle import artifacts_of, output_of
from dragoman.model.operations import SendTask
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task

KINDS = {Text: "text", Data: "data", Blob: "blob", Link: "link"}
FAILED = frozenset({TaskState.FAILED, TaskState.REJECTED})


def same(one: Json, other: Json) -> bool:
    """Whether two JSON values are the same: to Python, True is 1."""
    if is_object(one) and is_object(other):
        return one.keys() == other.keys() and all(same(value, other[name]) for name, value in one.items())
    if is_array(one) and is_array(other):
        return len(one) == len(other) and all(map(same, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and bool(one == other)


def differences_of_calls(sent: SendTask, got: SendTask) -> set[str]:
    """How a call differs from what was sent."""
    found = differences_of_messages(sent.message, got.message)
    # A title that repeats the skill, or a description that repeats either, says nothing.
    repeats_title, repeats_description = sent.title == sent.skill, sent.description in (sent.title, sent.skill)
    found |= {
        facet
        for facet, kept in {
            "skill": sent.skill == got.skill,
            "priority": sent.priority is got.priority,
            "context": sent.context_id == got.context_id,
            "parent": sent.parent_id == got.parent_id,
            "title": sent.title == got.title or (repeats_title and got.title is None),
            "description": sent.description == got.description or (repeats_description and got.description is None),
            "accepts": sent.accepts == got.accepts,
            "extensions": sent.extensions == got.extensions,
            "task:metadata": same(sent.metadata or {}, got.metadata or {}),
        }.items()
        if not kept
    }
    return found - _moved(sent, got)


def _moved(sent: SendTask, got: SendTask) -> set[str]:
    """Where one kind of metadata stands among the other: only the kind that has lost its place is lost."""
    both = {**(sent.metadata or {}), **(sent.message.metadata or {})}
    if got.metadata is None and same(both, got.message.metadata or {}):
        return {"message:metadata"}
    if got.message.metadata is None and same(both, got.metadata or {}):
        return {"task:metadata"}
    return set()


def differences_of_tasks(sent: Task, got: Task) -> set[str]:
    """How a task differs from the one that was shown; one in another state is another task altogether."""
    found = {
        facet
        for facet, kept in {
            "progress": sent.progress == got.progress,
            "usage": sent.usage == got.usage or (got.usage is None and sent.usage == Usage()),
        }.items()
        if not kept
    }
    if sent.state is not got.state:
        return found | {f"state:{sent.state}"}
    if sent.state is TaskState.COMPLETED:
        found |= _differences_of_parts(_spoken(output_of(sent)), _spoken(output_of(got)))
    if sent.state in FAILED and sent.failure is not None and failure_of(sent).code != failure_of(got).code:
        found.add("failure:code")
    return found | _differences_of_artifacts(sent, got) | _differences_of_words(sent, got)


def differences_of_messages(sent: Message, got: Message) -> set[str]:
    """How a message differs from what was sent."""
    found = _differences_of_parts(sent.parts, got.parts)
    return found | {
        facet
        for facet, kept in {
            "message:id": sent.id == got.id,
            f"role:{sent.role}": sent.role is got.role,
            "message:references": sent.references == got.references,
            "message:extensions": sent.extensions == got.extensions,
            "message:metadata": same(sent.metadata or {}, got.metadata or {}),
        }.items()
        if not kept
    }


def lost_words(sent: Task, got: Task) -> bool:
    """Whether a task no longer says why it failed, or what it asks: that may never be lost."""
    if sent.state in FAILED:
        said = failure_of(sent).message
    else:
        said = text_of(sent.status_message) if sent.state in INTERRUPTED else None
    heard = failure_of(got).message if got.state in FAILED else text_of(got.status_message)
    return said is not None and said != heard


def _differences_of_parts(sent: tuple[Part, ...], got: tuple[Part, ...]) -> set[str]:
    if [type(part) for part in sent] == [type(part) for part in got]:
        return {facet for one, other in zip(sent, got, strict=True) for facet in _differences_of_part(one, other)}
    if not sent:
        return {"parts:none"}
    if len(sent) > 1 and len(sent) != len(got):
        return {"parts:several"}
    # The same number, or one that became several: each that is of another kind now is lost as that kind.
    return {f"part:{KINDS[type(one)]}" for one, other in zip(sent, got, strict=False) if type(one) is not type(other)}


def _differences_of_part(sent: Part, got: Part) -> Iterable[str]:
    match sent, got:
        case (Text(), Text()):
            kept = sent.text == got.text
        case (Data(), Data()):
            kept = same(sent.value, got.value)
        case (Blob(), Blob()):
            kept = sent.raw == got.raw
        case (Link(), Link()):
            kept = sent.url == got.url
        case _:
            kept = False
    if not kept:
        yield f"part:{KINDS[type(sent)]}"
    if sent.media_type != got.media_type:
        yield "part:media_type"
    if sent.filename != got.filename:
        yield "part:filename"
    if not same(sent.metadata or {}, got.metadata or {}):
        yield "part:metadata"


def _differences_of_artifacts(sent: Task, got: Task) -> set[str]:
    made, heard = artifacts_of(sent), artifacts_of(got)
    if len(made) != len(heard):
        if sent.state is not TaskState.COMPLETED:
            return {"artifacts:unfinished"}
        return {"artifacts:several"} if made else {"parts:none"}
    return {facet for one, other in zip(made, heard, strict=True) for facet in _differences_of_artifact(one, other)}


def _differences_of_artifact(sent: Artifact, got: Artifact) -> set[str]:
    found = _differences_of_parts(sent.parts, got.parts)
    return found | {
        f"artifact:{facet}"
        for facet, kept in {
            "id": sent.id == got.id,
            "name": sent.name == got.name,
            "description": sent.description == got.description,
            "kind": sent.kind == got.kind,
            "extensions": sent.extensions == got.extensions,
            "metadata": same(sent.metadata or {}, got.metadata or {}),
        }.items()
        if not kept
    }


def _differences_of_words(sent: Task, got: Task) -> set[str]:
    """What the agent said on the way, and with the state."""
    found: set[str] = set()
    words = sent.status_message
    if words is not None:
        heard = got.status_message
        if heard is None or differences_of_messages(words, heard):
            found.add("status:message")
    turns = got.messages
    if words is not None and len(turns) > len(sent.messages) and turns[-1].parts == words.parts:
        turns = turns[:-1]  # Words for which the status has no room are the last turn, and counted as lost above.
    if len(sent.messages) != len(turns):
        return found | {"messages"}
    return found | {
        facet for one, other in zip(sent.messages, turns, strict=True) for facet in differences_of_messages(one, other)
    }


def _spoken(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    return tuple(part for part in parts if not (isinstance(part, Text) and not part.text))
