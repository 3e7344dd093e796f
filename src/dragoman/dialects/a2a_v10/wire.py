"""The messages of A2A 1.0: its requests as types, strict; its messages, parts, artifacts and tasks as they are emitted.

Names are the specification's own. Emitting leaves out whatever is unset or has its default, save required members.
What has no field here (a role beside the two, an artifact's kind, progress, usage) stands in `metadata.dragoman`.
"""

from datetime import datetime
from typing import Annotated, Final, assert_never

import msgspec

from dragoman.dialects.hints import HINTS
from dragoman.dialects.protojson import ROLE_NAMES, STATE_NAMES, Reader, wire_bytes
from dragoman.dialects.times import wire_time
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import Failure
from dragoman.model.events import Usage
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import artifacts_of, history_of
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.usage import told_usage

Required = Annotated[str, msgspec.Meta(min_length=1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
PageSize = Annotated[int, msgspec.Meta(ge=1, le=100)]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
Address = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
# They travel in headers: what has no place there is refused where it can still be mended.
Scheme = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[A-Za-z0-9!#$%&'*+.^_|~-]*$")]
Secret = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"^[\x20-\x7e]*$")]

DEFAULT_PAGE: Final = 50
_SPOKEN: Final = frozenset({Role.USER, Role.AGENT})
_NOTHING: Final[JsonObject] = {"text": ""}  # The list of parts is required: what says nothing says an empty text.


class _Request(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    pass


class WirePart(_Request, frozen=True, kw_only=True, rename="camel"):
    """A part: exactly one of text, raw, url, data."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Json = msgspec.UNSET
    metadata: JsonObject | None = None
    filename: str | None = None
    media_type: str | None = None


class WireMessage(_Request, frozen=True, kw_only=True, rename="camel"):
    """A message as a caller sends it."""

    message_id: Required
    role: str | int
    parts: Annotated[list[WirePart], msgspec.Meta(min_length=1)]
    context_id: str | None = None
    task_id: str | None = None
    metadata: JsonObject | None = None
    extensions: tuple[str, ...] | None = None
    reference_task_ids: tuple[str, ...] | None = None


class Authentication(_Request, frozen=True, kw_only=True, rename="camel"):
    """How the hub is to prove itself to a webhook; an empty one means that it need not."""

    scheme: Scheme | None = None
    credentials: Secret | None = None


class PushConfig(_Request, frozen=True, kw_only=True, rename="camel"):
    """Where a task is told of: the request that creates it, or a part of a send."""

    url: Address
    id: Annotated[str, msgspec.Meta(max_length=256)] | None = None
    task_id: str | None = None
    tenant: str | None = None
    token: Secret | None = None
    authentication: Authentication | None = None


class SendConfiguration(_Request, frozen=True, kw_only=True, rename="camel"):
    """How a message is to be answered."""

    accepted_output_modes: list[str] | None = None
    task_push_notification_config: PushConfig | None = None
    history_length: Count | None = None
    return_immediately: bool | None = None


class SendMessageRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of SendMessage and SendStreamingMessage."""

    message: WireMessage
    tenant: str | None = None
    configuration: SendConfiguration | None = None
    metadata: JsonObject | None = None


class GetTaskRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of GetTask."""

    id: Required
    tenant: str | None = None
    history_length: Count | None = None


class ListTasksRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of ListTasks."""

    tenant: str | None = None
    context_id: str | None = None
    status: str | int | None = None
    page_size: PageSize | None = None
    page_token: str | None = None
    history_length: Count | None = None
    status_timestamp_after: Moment | None = None
    include_artifacts: bool | None = None


class CancelTaskRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of CancelTask."""

    id: Required
    tenant: str | None = None
    metadata: JsonObject | None = None


class SubscribeRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of SubscribeToTask."""

    id: Required
    tenant: str | None = None


class PushConfigRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of GetTaskPushNotificationConfig and DeleteTaskPushNotificationConfig."""

    task_id: Required
    id: Required
    tenant: str | None = None


class ListPushConfigsRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of ListTaskPushNotificationConfigs."""

    task_id: Required
    tenant: str | None = None
    page_size: Count | None = None
    page_token: str | None = None


class CardRequest(_Request, frozen=True, kw_only=True, rename="camel"):
    """The request of GetExtendedAgentCard."""

    tenant: str | None = None


SEND: Final = Reader(SendMessageRequest)
GET: Final = Reader(GetTaskRequest)
LIST: Final = Reader(ListTasksRequest)
CANCEL: Final = Reader(CancelTaskRequest)
SUBSCRIBE: Final = Reader(SubscribeRequest)
CREATE_PUSH: Final = Reader(PushConfig)
NAME_PUSH: Final = Reader(PushConfigRequest)
LIST_PUSH: Final = Reader(ListPushConfigsRequest)
CARD: Final = Reader(CardRequest)


def wire_message(
    message: Message, context_id: str, task_id: str | None = None, hints: JsonObject | None = None
) -> JsonObject:
    """A message, as one of this context and task; `hints` go along in its metadata."""
    role, metadata = message.role, message.metadata
    shown: JsonObject = {"messageId": message.id, "contextId": context_id}
    if task_id is not None:
        shown["taskId"] = task_id
    shown["role"] = ROLE_NAMES[role]
    shown["parts"] = list(map(wire_part, message.parts)) or [_NOTHING]
    if role not in _SPOKEN:
        hints = {**(hints or {}), "role": role.value}
    if hints or metadata:
        add_metadata(shown, metadata, hints)
    if message.extensions:
        shown["extensions"] = message.extensions
    if message.references:
        shown["referenceTaskIds"] = message.references
    return shown


def wire_part(part: Part) -> JsonObject:
    """One part: exactly one of text, raw, url, data."""
    shown: JsonObject
    if type(part) is Data:  # A `match` tries `isinstance`, which is dear where it fails.
        shown = {"data": part.value}
    elif type(part) is Text:
        shown = {"text": part.text}
    elif type(part) is Blob:
        shown = {"raw": wire_bytes(part.raw)}
    elif type(part) is Link:
        shown = {"url": part.url}
    else:
        assert_never(part)
    if part.media_type:
        shown["mediaType"] = part.media_type
    if part.filename:
        shown["filename"] = part.filename
    if part.metadata:
        shown["metadata"] = part.metadata
    return shown


def wire_artifact(artifact: Artifact) -> JsonObject:
    """One artifact."""
    shown: JsonObject = {"artifactId": artifact.id}
    if artifact.name:
        shown["name"] = artifact.name
    if artifact.description:
        shown["description"] = artifact.description
    shown["parts"] = list(map(wire_part, artifact.parts)) or [_NOTHING]
    if artifact.kind or artifact.metadata:
        add_metadata(shown, artifact.metadata, {"kind": artifact.kind} if artifact.kind else None)
    if artifact.extensions:
        shown["extensions"] = artifact.extensions
    return shown


def wire_task(task: Task, history: int | None = None, *, artifacts: bool = True, even_none: bool = False) -> JsonObject:
    """A task with its last `history` turns, all where it is None; `even_none`: an empty list of artifacts is shown."""
    task_id, context_id, failure = task.id, task.context_id, task.failure
    status = wire_status(task_id, context_id, task.state, task.updated_at, task.status_message, failure)
    shown: JsonObject = {"id": task_id, "contextId": context_id, "status": status}
    if artifacts:
        made = artifacts_of(task)
        if made or even_none:
            shown["artifacts"] = list(map(wire_artifact, made))
    turns = history_of(task)
    if history is not None and history < len(turns):
        turns = turns[len(turns) - history :]
    if turns:
        shown["history"] = [wire_message(message, context_id, task_id) for message in turns]
    told = account_of(task.progress, task.usage, failure)
    if told:
        shown["metadata"] = {HINTS: told}
    return shown


def wire_status(
    task_id: str, context_id: str, state: TaskState, at: datetime, said: Message | None, failure: Failure | None
) -> JsonObject:
    """A status, with its words; a failure that has none says what went wrong."""
    shown: JsonObject = {"state": STATE_NAMES[state]}
    if said is None and failure is not None:
        said = Message(id=f"{task_id}-failure", role=Role.AGENT, parts=(Text(text=failure.message),))
    if said is not None:
        shown["message"] = wire_message(said, context_id, task_id)
    shown["timestamp"] = wire_time(at)
    return shown


def account_of(progress: float | None, usage: Usage | None, failure: Failure | None) -> JsonObject:
    """What is known of a task and has no field of its own."""
    told: JsonObject = {}
    if progress is not None:
        told["progress"] = progress
    if usage is not None:
        told["usage"] = told_usage(usage)
    if failure is not None:
        told["failure"] = {"code": failure.code, "retryable": failure.retryable}
    return told


def add_metadata(shown: JsonObject, metadata: JsonObject | None, told: JsonObject | None) -> None:
    """Put metadata into an object, and beside it what has no field there; nothing where there is neither."""
    if told:
        shown["metadata"] = {**metadata, HINTS: told} if metadata else {HINTS: told}
    elif metadata:
        shown["metadata"] = metadata
