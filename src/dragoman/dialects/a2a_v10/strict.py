"""The answer of a strict 1.0 agent, decoded in one step: a finished task, its artifacts, nothing unusual.

Only a short cut: whatever does not have exactly this shape is read by its shape elsewhere (`shapes.py`), with the same
outcome.
"""

from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET

from dragoman.dialects.dialect import Heard
from dragoman.dialects.shapes import may_hold_doubles
from dragoman.model.content import Artifact, Data, Part, Text
from dragoman.model.events import ArtifactChunk, Remote, StatusChanged, TaskEvent
from dragoman.model.json import Json
from dragoman.model.states import TaskState

Word = Annotated[str, msgspec.Meta(min_length=1)]  # an empty one counts as absent, which the long way knows


class StrictPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A text or a data part, and nothing beside it."""

    text: str | None = None
    data: Json = UNSET


class StrictArtifact(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """An artifact without extensions or metadata."""

    artifactId: Word  # noqa: N815 - the wire's own name
    parts: list[StrictPart]
    name: Word | None = None
    description: Word | None = None
    metadata: None = None


class StrictStatus(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A status without words."""

    state: Literal["TASK_STATE_COMPLETED"]
    timestamp: str | None = None


class StrictMessage(msgspec.Struct, frozen=True, gc=False):
    """A turn of the history: the caller's own, which is known already."""

    role: Literal["ROLE_USER"]


class StrictTask(msgspec.Struct, frozen=True, gc=False):
    """A finished task."""

    id: Word
    status: StrictStatus
    artifacts: list[StrictArtifact]
    contextId: Word | None = None  # noqa: N815 - the wire's own name
    history: list[StrictMessage] = []
    metadata: None = None


class StrictResult(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """The result member."""

    task: StrictTask


class StrictReply(msgspec.Struct, frozen=True, gc=False):
    """The whole answer; a null error beside the result is no error."""

    result: StrictResult
    error: None = None


_COMPLETED: Final = TaskState.COMPLETED
_decode = msgspec.json.Decoder(StrictReply).decode


def hear_strict(body: bytes, at: datetime) -> Heard | None:
    """What a strict answer says; None where it has any other shape."""
    if may_hold_doubles(body):
        return None  # Its numbers need a second look.
    try:
        task = _decode(body).result.task
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    events: list[TaskEvent] = []
    for artifact in task.artifacts:
        parts: list[Part] = []
        for part in artifact.parts:
            text, data = part.text, part.data
            if (text is None) is (data is UNSET):
                return None  # both, or neither
            parts.append(Data(value=data) if text is None else Text(text=text))
        made = Artifact(
            id=artifact.artifactId,
            parts=tuple(parts),
            name=artifact.name,
            description=artifact.description,
        )
        events.append(ArtifactChunk(at=at, artifact=made))
    events.append(StatusChanged(at=at, state=_COMPLETED))
    return Heard(events=tuple(events), settled=True, remote=Remote(task_id=task.id, context_id=task.contextId))
