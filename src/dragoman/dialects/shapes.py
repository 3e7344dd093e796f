"""Any object of the A2A family, read by its shape: never by the method called, the version asked for, or the card.

Agents mix the spellings of versions, leave out ids and times, wrap or do not wrap. Whatever can be understood is;
a part that cannot be is kept as data, never dropped. Only reading: what the hub emits is strict and stands elsewhere.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from msgspec import structs

from dragoman.dialects.hints import HINTS, without_hints
from dragoman.dialects.protojson import STATE_NUMBERS, read_bytes
from dragoman.dialects.times import read_time
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, StatusChanged, TaskEvent, Usage
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.usage import read_usage

_WRAPPERS: Final = (
    ("task", "task"),
    ("statusUpdate", "status-update"),
    ("status_update", "status-update"),
    ("artifactUpdate", "artifact-update"),
    ("artifact_update", "artifact-update"),
    ("message", "message"),
    ("msg", "message"),
)
# Whether a body may hold whole numbers written as doubles (`1.0`), as protobuf agents do: a match, or None.
may_hold_doubles: Final = re.compile(rb"\.0[,}\]]").search
EXACT: Final = 2.0**53  # beyond it a double does not tell which integer it was
_KINDS: Final = frozenset({"task", "message", "status-update", "artifact-update"})
_STATES: Final = {state.value: state for state in TaskState} | {"cancelled": TaskState.CANCELED}
_STATE_NAMES: Final = {f"TASK_STATE_{state.name}": state for state in TaskState} | _STATES
_ROLES: Final = {
    "user": Role.USER,
    "ROLE_USER": Role.USER,
    "agent": Role.AGENT,
    "ROLE_AGENT": Role.AGENT,
    "assistant": Role.AGENT,
    "system": Role.SYSTEM,
    "tool": Role.TOOL,
}
_OTHER_ROLES: Final = {"system": Role.SYSTEM, "tool": Role.TOOL}  # where the wire has names for two only


def unwrapped(value: JsonObject) -> tuple[str | None, JsonObject]:
    """What kind of object this is, and the object itself without its wrapper."""
    for member, kind in _WRAPPERS:
        inner = value.get(member)
        if is_object(inner) and not (kind == "message" and "status" in value):
            return kind, inner
    kind = value.get("kind")
    if isinstance(kind, str) and kind in _KINDS:
        return kind, value
    if is_object(value.get("status")):
        return ("status-update" if "taskId" in value or "task_id" in value else "task"), value
    if is_object(value.get("artifact")):
        return "artifact-update", value
    if ("parts" in value or "content" in value) and "role" in value:
        return "message", value
    return None, value


def whole_numbers(value: Json) -> Json:
    """The same value with every whole double as the integer it was."""
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= EXACT else value
    if is_object(value):
        return {name: whole_numbers(item) for name, item in value.items()}
    return [whole_numbers(item) for item in value] if is_array(value) else value


def read_state(value: Json) -> TaskState:
    """A state in any spelling, or by its number; unknown or absent means the agent is at work."""
    if not isinstance(value, str):
        return STATE_NUMBERS.get(value, TaskState.WORKING) if type(value) is int else TaskState.WORKING
    known = _STATE_NAMES.get(value)
    if known is not None:
        return known
    return _STATES.get(value.removeprefix("TASK_STATE_").lower().replace("_", "-"), TaskState.WORKING)


def read_task(
    task: JsonObject, at: datetime, known: Sequence[Message] = (), *, unfinished: bool = False
) -> tuple[tuple[TaskEvent, ...], TaskState, Remote]:
    """A whole task as the events that made it: what was said, save what is `known`, what was made, where it stands.

    `unfinished`: what it made is read even while it goes on.
    """
    status: JsonObject = task["status"] if is_object(task.get("status")) else {}
    state = read_state(status.get("state"))
    events: list[TaskEvent] = []
    settled = state in FINAL or state in INTERRUPTED
    if settled or unfinished:
        artifacts = task.get("artifacts")
        made = artifacts if is_array(artifacts) else []
        events += [
            ArtifactChunk(at=at, artifact=read_artifact(artifact, f"artifact-{index}"))
            for index, artifact in enumerate(made)
            if is_object(artifact)
        ]
    if settled:
        events += _said(task.get("history"), at, {(message.id, message.role) for message in known})
    events.append(_with_account(read_status(status, state, at), task.get("metadata")))
    return tuple(events), state, remote_of(task, "id")


def read_status_update(update: JsonObject, at: datetime) -> StatusChanged:
    """A status update as an event; the state decides what it means, not what else it says."""
    status: JsonObject = update["status"] if is_object(update.get("status")) else {}
    metadata = update.get("metadata")
    moved = _with_account(read_status(status, read_state(status.get("state")), at), metadata)
    about = without_hints(metadata) if is_object(metadata) else None
    return structs.replace(moved, metadata=about) if about else moved


def read_artifact_update(update: JsonObject, at: datetime) -> ArtifactChunk:
    """An artifact update as an event: a whole artifact, or a further piece of one."""
    artifact, metadata = update.get("artifact"), update.get("metadata")
    return ArtifactChunk(
        at=at,
        artifact=read_artifact(artifact if is_object(artifact) else {}, "artifact-0"),
        append=update.get("append") is True,
        last=update.get("lastChunk") is True or update.get("last_chunk") is True,
        metadata=without_hints(metadata) if is_object(metadata) else None,
    )


def read_status(status: JsonObject, state: TaskState, at: datetime) -> StatusChanged:
    """A status as an event; its own time counts only for the words in it."""
    message = status.get("message")
    return StatusChanged(
        at=at,
        state=state,
        message=read_message(message, "status-message", at) if is_object(message) else _text_message(message, at),
    )


def read_message(message: JsonObject, missing_id: str, at: datetime) -> Message:
    """A message in any spelling."""
    metadata = message.get("metadata")
    role = _ROLES.get(str(message.get("role")), Role.AGENT)
    return Message(
        id=_text(message, "messageId", "message_id") or missing_id,
        role=_OTHER_ROLES.get(str(_told(metadata).get("role")), role) if metadata else role,
        parts=read_parts(message),
        at=read_time(message.get("timestamp"), at),
        references=_words(message.get("referenceTaskIds") or message.get("reference_task_ids")),
        extensions=_words(message.get("extensions")),
        metadata=without_hints(metadata) if is_object(metadata) else None,
    )


def read_artifact(artifact: JsonObject, missing_id: str) -> Artifact:
    """An artifact in any spelling."""
    get = artifact.get
    metadata, extensions = get("metadata"), get("extensions")
    return Artifact(
        id=_text(artifact, "artifactId", "artifact_id") or missing_id,
        parts=read_parts(artifact),
        name=_text(artifact, "name"),
        description=_text(artifact, "description"),
        kind=_text(_told(metadata), "kind") if metadata else None,
        extensions=_words(extensions) if extensions else (),
        metadata=without_hints(metadata) if is_object(metadata) else None,
    )


def read_parts(holder: JsonObject) -> tuple[Part, ...]:
    """The parts of a message or artifact."""
    parts = holder.get("parts")
    if not is_array(parts):
        parts = holder.get("content")
    return tuple(read_part(part) for part in parts) if is_array(parts) else ()


def read_part(part: Json) -> Part:
    """One part, by the member that is there; one that cannot be read is kept as data."""
    if not is_object(part):
        return Data(value=part, metadata={"unreadable": True})
    text = part.get("text")
    if len(part) == 1:
        # The strict form, and by far the most common.
        if isinstance(text, str):
            return Text(text=text)
        if "data" in part:
            return Data(value=part["data"])
    metadata = part.get("metadata")
    about = metadata if is_object(metadata) and metadata else None
    if isinstance(text, str):
        return Text(text=text, media_type=_media_type(part), filename=_filename(part), metadata=about)
    file = part.get("file")
    place: JsonObject = file if is_object(file) else part
    media_type, filename = _media_type(place) or _media_type(part), _filename(place) or _filename(part)
    raw = next((place[name] for name in ("raw", "bytes", "fileWithBytes") if isinstance(place.get(name), str)), None)
    if raw is not None:
        decoded = read_bytes(raw)
        if decoded is not None:
            return Blob(raw=decoded, media_type=media_type, filename=filename, metadata=about)
    url = next((place[name] for name in ("url", "uri", "fileWithUri") if isinstance(place.get(name), str)), None)
    if url:
        return Link(url=url, media_type=media_type, filename=filename, metadata=about)
    if "data" in part:
        return Data(value=part["data"], media_type=media_type, filename=filename, metadata=about)
    content = part.get("content")
    if isinstance(content, str):
        return Text(text=content, media_type=media_type, filename=filename, metadata=about)
    return Data(value=part, metadata={"unreadable": True})


def remote_of(value: JsonObject, id_name: str) -> Remote:
    """What the agent calls the task and its context."""
    return Remote(
        task_id=_text(value, id_name, "taskId", "task_id"), context_id=_text(value, "contextId", "context_id")
    )


def _said(history: Json, at: datetime, known: set[tuple[str, Role]]) -> Iterable[MessageAdded]:
    """The agent's words in the history; the caller's own come back as an echo and are known already."""
    if not is_array(history):
        return ()
    messages = [
        read_message(message, f"message-{index}", at) for index, message in enumerate(history) if is_object(message)
    ]
    if messages and messages[-1].role is Role.USER:
        return ()  # Since the caller last spoke nothing was said: older words are no answer to that.
    return [
        MessageAdded(at=at, message=message)
        for message in messages
        if message.role is not Role.USER and (message.id, message.role) not in known
    ]


def _with_account(moved: StatusChanged, metadata: Json) -> StatusChanged:
    """The same with how far the agent says it is, and what it used."""
    said = None if moved.message is None else moved.message.metadata
    if not metadata and not said:
        return moved
    usage = account_in(metadata) or account_in(said)
    return structs.replace(moved, progress=_progress(_told(metadata).get("progress")), usage=usage)


def _told(metadata: Json) -> JsonObject:
    """What an agent tells in the block that was made for what a wire has no field for."""
    told = metadata.get(HINTS) if is_object(metadata) else None
    return told if is_object(told) else {}


def _progress(value: Json) -> float | None:
    known = isinstance(value, int | float) and type(value) is not bool and 0 <= value <= 1
    return float(value) if known else None


def account_in(metadata: Json) -> Usage | None:
    """What an agent says that it used, in the metadata of its task or message: in the hub's block, or plainly there."""
    if not is_object(metadata):
        return None
    told: Json = metadata.get(HINTS)
    return read_usage(told["usage"] if is_object(told) and "usage" in told else metadata.get("usage"))


def _text_message(value: Json, at: datetime) -> Message | None:
    if not isinstance(value, str) or not value:
        return None
    return Message(id="status-message", role=Role.AGENT, parts=(Text(text=value),), at=at)


def _text(value: JsonObject, *names: str) -> str | None:
    for name in names:
        found = value.get(name)
        if isinstance(found, str) and found:
            return found
    return None


def _words(value: Json) -> tuple[str, ...]:
    return tuple(word for word in value if isinstance(word, str)) if is_array(value) else ()


def _media_type(part: JsonObject) -> str | None:
    return _text(part, "mediaType", "media_type", "mimeType", "mime_type")


def _filename(part: JsonObject) -> str | None:
    return _text(part, "filename", "name")
