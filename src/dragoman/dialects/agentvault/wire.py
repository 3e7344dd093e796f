"""What AgentVault clients send, named and shaped as its models have it. Nulls are taken as absent."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from dragoman.dialects.agentvault.content import is_web_url, read_data
from dragoman.dialects.hints import without_hints
from dragoman.model.content import Link, Message, Part, Role, Text
from dragoman.model.errors import BadParams
from dragoman.model.json import JsonObject
from dragoman.model.states import TaskState

SLUG: Final = "agentvault"
TASK_PREFIX: Final = "av-"

STATES: Final[Mapping[TaskState, str]] = {
    TaskState.SUBMITTED: "SUBMITTED",
    TaskState.WORKING: "WORKING",
    TaskState.INPUT_REQUIRED: "INPUT_REQUIRED",
    TaskState.AUTH_REQUIRED: "INPUT_REQUIRED",
    TaskState.COMPLETED: "COMPLETED",
    TaskState.FAILED: "FAILED",
    TaskState.CANCELED: "CANCELED",
    TaskState.REJECTED: "FAILED",
}
_ROLES: Final = {"user": Role.USER, "assistant": Role.AGENT, "system": Role.SYSTEM, "tool": Role.TOOL}

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]


class TextPart(msgspec.Struct, frozen=True, tag_field="type", tag="text", gc=False):
    """Plain text."""

    content: str


class FilePart(msgspec.Struct, frozen=True, tag_field="type", tag="file", rename="camel", gc=False):
    """A file, by its address."""

    url: Url
    media_type: str | None = None
    filename: str | None = None


class DataPart(msgspec.Struct, frozen=True, tag_field="type", tag="data", rename="camel", gc=False):
    """A JSON object."""

    content: JsonObject
    media_type: str | None = None


class MessageShape(msgspec.Struct, frozen=True, gc=False):
    """One message; what belongs to MCP stands in its metadata as `mcp_context`."""

    role: Literal["user", "assistant", "system", "tool"]
    parts: Annotated[list[TextPart | FilePart | DataPart], msgspec.Meta(min_length=1)]
    metadata: JsonObject | None = None


class TaskSendParams(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The params of tasks/send: without an id a new task."""

    message: MessageShape
    id: Id | None = None
    webhook_url: Url | None = None
    tenant: str | None = None  # the agent that is meant, where the URL names none


class TaskIdParams(msgspec.Struct, frozen=True, gc=False):
    """The params of tasks/get, tasks/cancel and tasks/sendSubscribe."""

    id: Id


def read_message(shape: MessageShape, message_id: str) -> Message:
    """The message, without the block that was for the hub. Raises BadParams for a file's address that is none."""
    return Message(
        id=message_id,
        role=_ROLES[shape.role],
        parts=tuple([_part(part, f"message.parts[{index}].url") for index, part in enumerate(shape.parts)]),
        # What came empty goes back empty.
        metadata=without_hints(shape.metadata) if shape.metadata else shape.metadata,
    )


def _part(part: TextPart | FilePart | DataPart, path: str) -> Part:
    if isinstance(part, TextPart):
        return Text(text=part.content)
    if isinstance(part, DataPart):
        return read_data(part.content, part.media_type)
    if not is_web_url(part.url):
        rule = "expected an http or https address"
        raise BadParams(f"{path}: {rule}", errors=[{"path": path, "message": rule}])
    return Link(url=part.url, media_type=part.media_type, filename=part.filename)
