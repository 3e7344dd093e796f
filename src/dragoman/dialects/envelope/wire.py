"""The envelope and its five payloads, as the document shapes them: unknown members of a payload are refused.

Also the words this dialect has for states and priorities, and where below an address its messages are posted.
"""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Final, Literal

import msgspec

from dragoman.dialects.text import ID_GRAMMAR
from dragoman.dialects.uuids import is_uuid4
from dragoman.model.json import Json, JsonObject
from dragoman.model.operations import Priority
from dragoman.model.states import TaskState

SLUG: Final = "envelope"
VERSION: Final = "1.0.0"
PATH: Final = "/a2a/messages"
NOBODY: Final = "00000000-0000-4000-8000-000000000000"  # stands where an answer must name somebody it was not told of

ASSIGNMENT: Final = "task_assignment"
UPDATE: Final = "status_update"
COMPLETION: Final = "task_completion"
PING: Final = "ping"
ERROR: Final = "error"
TYPES: Final = (ASSIGNMENT, UPDATE, COMPLETION, PING, ERROR)

REPLY_TO: Final = "reply_to"  # in an assignment's metadata: where the outcome is to be posted
USAGE: Final = "usage"  # in the metadata of a report: what the agent used up
TRACEPARENT: Final = "traceparent"  # in the `dragoman` block of a message that is sent without headers
AWAITING: Final = "awaiting"  # in an update's metadata: what a task in progress waits for

STATES: Final[Mapping[str, TaskState]] = {
    "created": TaskState.SUBMITTED,
    "assigned": TaskState.SUBMITTED,
    "in_progress": TaskState.WORKING,
    "completed": TaskState.COMPLETED,
    "failed": TaskState.FAILED,
    "cancelled": TaskState.CANCELED,
}
AWAITED: Final[Mapping[str, TaskState]] = {"input": TaskState.INPUT_REQUIRED, "auth": TaskState.AUTH_REQUIRED}
PRIORITIES: Final[Mapping[str, Priority]] = {
    "low": Priority.LOW,
    "medium": Priority.NORMAL,
    "high": Priority.HIGH,
    "urgent": Priority.URGENT,
}
PRIORITY_WORDS: Final = {priority: word for word, priority in PRIORITIES.items()}

Word = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
PriorityWord = Literal["low", "medium", "high", "urgent"]
StatusWord = Literal["created", "assigned", "in_progress", "completed", "failed", "cancelled"]

# Date and time with a zone, extended or basic; Python's own reader takes far more.
_ISO: Final = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d([.,]\d+)?)?|\d{8}T\d{4}(\d\d([.,]\d+)?)?)(Z|[+-]\d\d(:?\d\d)?)?"
)


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What surrounds every message; its members are looked at one by one, so that a refusal can name the wrong one."""

    version: Json = None
    message_id: Json = None
    timestamp: Json = None
    sender: Json = msgspec.field(name="from", default=None)
    to: Json = None
    type: Json = None
    payload: msgspec.Raw = msgspec.Raw(b"")
    signature: Json = None


class Assignment(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A task given to an agent."""

    task_id: Word
    task_type: Word
    title: str
    description: str
    payload: JsonObject
    priority: PriorityWord | None = None
    deadline: str | None = None
    metadata: JsonObject | None = None


class Update(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a task is."""

    task_id: Word
    status: StatusWord
    progress: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    message: str | None = None
    metadata: JsonObject | None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What became of a task."""

    task_id: Word
    status: Literal["completed", "failed"]
    result: JsonObject
    execution_time_ms: Annotated[float, msgspec.Meta(ge=0)] | None = None
    metadata: JsonObject | None = None


class PingPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question whether somebody is there."""

    nonce: str
    echo: Json = msgspec.UNSET


class ErrorPayload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Why a message could not be used."""

    original_message_id: str | None
    error_code: str
    error_message: str
    details: JsonObject | None = None


def envelope_of(
    message_id: str, timestamp: str, sender: str, to: str, kind: str, payload: Mapping[str, Json]
) -> JsonObject:
    """One message of the hub's own, in the document's order."""
    return {
        "version": VERSION,
        "message_id": message_id,
        "timestamp": timestamp,
        "from": sender,
        "to": to,
        "type": kind,
        "payload": payload,
    }


def read_party(value: Json) -> str | None:
    """Who `from` or `to` names: a UUID, bare or behind `agent-`, or an id; None where it can be neither."""
    if not isinstance(value, str):
        return None
    bare = value.removeprefix("agent-")
    if is_uuid4(bare):
        return bare.lower()
    return value if ID_GRAMMAR.fullmatch(value) else None


def read_moment(value: Json) -> datetime | None:
    """A date and time in ISO 8601, as it stands (without a zone where it has none); None for anything else."""
    if not isinstance(value, str) or _ISO.fullmatch(value) is None or not value.isascii():
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def messages_url(url: str) -> str:
    """Where below an address its messages are posted; what it has of that path already is not doubled."""
    path, question, query = url.partition("?")
    path = path.rstrip("/")
    if not path.endswith(PATH):
        path = path.removesuffix("/a2a") + PATH
    return path + question + query
