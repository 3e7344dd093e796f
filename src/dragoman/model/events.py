"""What happens to a task: a few kinds of events, each numbered within its task.

`n` is the number that the agent itself gave an event, where it counts them: what it tells twice is known by it.
"""

from datetime import datetime
from typing import ClassVar, final

import msgspec

from dragoman.model.callbacks import Callback
from dragoman.model.content import Artifact, Message
from dragoman.model.errors import Failure
from dragoman.model.json import Json, JsonObject
from dragoman.model.states import TaskState


class Remote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the target calls a task and its context."""

    task_id: str | None = None
    context_id: str | None = None


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a call used up, by the agent's own account; the cost may be an estimate by the prices of its card.

    `refused` names the claims that made no sense; it is logged, not kept.
    """

    tokens: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    estimated: bool = False
    model: str | None = None
    requests: int | None = None
    execution_ms: int | None = None
    other: JsonObject | None = None
    refused: tuple[str, ...] = ()


@final
class Sent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="sent"):
    """The call went to an agent: one attempt. Said again under the same attempt it only names the remote task.

    What the agent's card says is not repeated. `failed` is the code of an attempt that another one follows, with the
    HTTP status, if there was one, and how long it took; the last attempt's failure is the task's.
    """

    n: ClassVar[int] = 0
    at: datetime
    agent_id: str
    remote: Remote | None = None
    attempt: int = 1
    streamed: bool = False  # the agent told of it event by event, in answer to this very request
    waited_ms: int = 0  # before it, for a place at the agent; where over 1 ms
    failed: str | None = None
    status: int | None = None
    took_ms: int = 0
    metadata: JsonObject | None = None


@final
class StatusChanged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="status"):
    """The task moved, or told how far it is. `result` is the checked answer of a completed one, as one object."""

    at: datetime
    state: TaskState
    message: Message | None = None
    progress: float | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    result: Json = None
    metadata: JsonObject | None = None
    n: int = 0


@final
class MessageAdded(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="message"):
    """Somebody said something. `direct`: the agent answered with a bare message, not a task."""

    at: datetime
    message: Message
    direct: bool = False
    metadata: JsonObject | None = None
    n: int = 0


@final
class ArtifactChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="artifact"):
    """An artifact, or a further piece of one (`append`)."""

    at: datetime
    artifact: Artifact
    append: bool = False
    last: bool = True
    metadata: JsonObject | None = None
    n: int = 0


@final
class Watched(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="watched"):
    """Who is told of the task has changed; nothing that a stream would show."""

    n: ClassVar[int] = 0
    at: datetime
    callbacks: tuple[Callback, ...]
    metadata: JsonObject | None = None


@final
class Logged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="log"):
    """A line that the agent noted about its work; nothing that a stream would show."""

    at: datetime
    level: str
    message: str
    fields: JsonObject | None = None
    metadata: JsonObject | None = None
    n: int = 0


TaskEvent = Sent | StatusChanged | MessageAdded | ArtifactChunk | Watched | Logged


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its number within the task."""

    seq: int
    event: TaskEvent
