"""What agents tell of their work, as events: the same whether they post it to the hub or answer with it at once."""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.envelope.errors import agent_error
from dragoman.dialects.envelope.wire import AWAITED, AWAITING, STATES, USAGE
from dragoman.model.content import Artifact, Message, Part, Role, Text
from dragoman.model.errors import AgentError, DragomanError
from dragoman.model.events import ArtifactChunk, StatusChanged, TaskEvent, Usage
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.objects import parts_of_object
from dragoman.model.states import TaskState
from dragoman.model.usage import read_usage

_ERROR_MEMBERS: Final = frozenset({"code", "message", "details"})
_LONGEST_MS: Final = 2**53


def update_event(
    status: str, message: str | None, progress: float | None, metadata: JsonObject | None, message_id: str, at: datetime
) -> StatusChanged:
    """A status as it was reported; in progress and waiting for something is a state of its own."""
    state = STATES[status]
    if state is TaskState.WORKING and metadata and (awaited := AWAITED.get(str(metadata.get(AWAITING)))) is not None:
        state = awaited
        metadata = {name: value for name, value in metadata.items() if name != AWAITING}
    usage, metadata = account_of(metadata)
    failure = AgentError(message or "The agent failed.").failure() if state is TaskState.FAILED else None
    said = Message(id=message_id, role=Role.AGENT, parts=(Text(text=message),), at=at) if message else None
    return StatusChanged(
        at=at, state=state, message=said, progress=progress, failure=failure, usage=usage, metadata=metadata or None
    )


def account_of(metadata: JsonObject | None) -> tuple[Usage | None, JsonObject | None]:
    """What an agent says that it used, and its metadata without that."""
    if metadata is None or not is_object(metadata.get(USAGE)):
        return None, metadata
    return read_usage(metadata[USAGE]), {name: value for name, value in metadata.items() if name != USAGE}


def completion_events(
    status: str, result: JsonObject, execution_time_ms: float | None, metadata: JsonObject | None, at: datetime
) -> tuple[TaskEvent, ...]:
    """The end of a task: its result, or why there is none."""
    usage, metadata = account_of(metadata)
    if execution_time_ms is not None and execution_time_ms <= _LONGEST_MS:
        usage = msgspec.structs.replace(usage or Usage(), execution_ms=round(execution_time_ms))
    if status == "failed":
        failure = _failure_of(result).failure()
        return (StatusChanged(at=at, state=TaskState.FAILED, failure=failure, usage=usage, metadata=metadata or None),)
    made = Artifact(id=RESULT_ARTIFACT, parts=parts_of_object(result))
    done = StatusChanged(at=at, state=TaskState.COMPLETED, usage=usage, metadata=metadata or None)
    return (ArtifactChunk(at=at, artifact=made), done)


def sealed_events(status: str, part: Part, message_id: str, at: datetime) -> tuple[TaskEvent, ...]:
    """A report that only the task's giver can read: its state is known, and the rest goes along as one part."""
    state = STATES[status]
    if state is TaskState.COMPLETED:
        made = Artifact(id=RESULT_ARTIFACT, parts=(part,))
        return (ArtifactChunk(at=at, artifact=made), StatusChanged(at=at, state=state))
    failure = AgentError("The agent failed; its reason is encrypted.").failure() if state is TaskState.FAILED else None
    said = Message(id=message_id, role=Role.AGENT, parts=(part,), at=at)
    return (StatusChanged(at=at, state=state, message=said, failure=failure),)


def error_event(error: DragomanError, at: datetime) -> StatusChanged:
    """A message that the agent could not use is a task that it cannot do."""
    return StatusChanged(at=at, state=TaskState.FAILED, failure=error.failure())


def _failure_of(result: JsonObject) -> DragomanError:
    """The error that a failed task's result tells of; a result of any other form goes along whole."""
    error: Json = result.get("error")
    if len(result) == 1 and is_object(error) and error.keys() <= _ERROR_MEMBERS and isinstance(error.get("code"), str):
        return agent_error(error["code"], error.get("message"), error.get("details"))
    if not result:
        return AgentError("The agent failed.")
    said: Json = error
    if is_object(error):
        said = error.get("message")
    elif not isinstance(error, str):
        said = result.get("message")
    return AgentError(said if isinstance(said, str) and said else "The agent failed.", agent_result=result)
