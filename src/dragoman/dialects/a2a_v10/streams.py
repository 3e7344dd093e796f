"""What a stream of A2A 1.0 shows: the task, then each change of its status and each piece of an artifact.

    task · statusUpdate · artifactUpdate · … · statusUpdate

Each is a StreamResponse with exactly one member. What an agent says beside its work is a status with its words, for a
message of its own would end the stream. An answer that stands only in words is shown as an artifact before the end:
that is where callers look. The end does not say it again: some callers put together whatever they hear.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import assert_never, final

import msgspec

from dragoman.dialects.a2a_v10.wire import account_of, add_metadata, wire_artifact, wire_status, wire_task
from dragoman.dialects.dialect import Streaming
from dragoman.dialects.jsonrpc import Id
from dragoman.dialects.sse import frame
from dragoman.model.content import Artifact, Role
from dragoman.model.events import ArtifactChunk, Happened, Logged, MessageAdded, Sent, StatusChanged, TaskEvent, Watched
from dragoman.model.json import JsonObject
from dragoman.model.lifecycle import artifacts_of, says_again
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task

_encode = msgspec.json.Encoder().encode


def rpc_stream(request_id: Id, task_id: str, context_id: str, history: int | None) -> Streaming:
    """A stream over JSON-RPC: every frame is one more answer to the request."""
    return Streaming(frames=Frames(partial(_answer, request_id), task_id, context_id, history))


def http_stream(task_id: str, context_id: str, history: int | None) -> Streaming:
    """A stream over HTTP: every frame is the object itself."""
    return Streaming(frames=Frames(_encode, task_id, context_id, history))


@final
class Frames:
    """The frames of one stream; `write` makes the data of one."""

    __slots__ = ("_context_id", "_history", "_state", "_task_id", "_write")

    def __init__(
        self, write: Callable[[JsonObject], bytes], task_id: str, context_id: str, history: int | None
    ) -> None:
        self._write = write
        self._task_id = task_id
        self._history = history
        self._context_id = context_id
        self._state = TaskState.WORKING

    def __call__(self, item: StreamItem) -> bytes:
        """The frames of one item, its number on the last of them."""
        match item:
            case Snapshot(task=task):
                self._meet(task)
                return self._framed(({"task": wire_task(task, self._history)},), task.last_seq)
            case Ended(seq=seq, event=event, task=task):
                self._meet(task)
                return self._framed(_ending(task, event), seq)
            case Happened(seq=seq, event=event):
                if isinstance(event, StatusChanged):
                    self._state = event.state
                shown = _update(self._task_id, self._context_id, self._state, event)
                return b"" if shown is None else frame(self._write(shown), seq=seq)
            case _ as never:
                assert_never(never)

    def _meet(self, task: Task) -> None:
        self._task_id, self._context_id, self._state = task.id, task.context_id, task.state

    def _framed(self, shown: Sequence[JsonObject], seq: int) -> bytes:
        *before, last = shown
        return b"".join([*(frame(self._write(each)) for each in before), frame(self._write(last), seq=seq)])


def told(task: Task, event: TaskEvent) -> JsonObject | None:
    """One event by itself; the whole task where its end alone would not say the answer."""
    if isinstance(event, StatusChanged) and event.state in FINAL and artifacts_of(task) is not task.artifacts:
        return {"task": wire_task(task)}
    # By now it may have ended; what is told before the end must not say so.
    return _update(task.id, task.context_id, TaskState.WORKING if task.ended else task.state, event)


def _ending(task: Task, event: StatusChanged) -> list[JsonObject]:
    found = artifacts_of(task)
    made = () if found is task.artifacts else found
    shown = [_artifact(task.id, task.context_id, artifact, append=False, last=True) for artifact in made]
    account = account_of(task.progress, task.usage, task.failure)
    if says_again(task, event.message):
        event = msgspec.structs.replace(event, message=None)
    return [*shown, _status(task.id, task.context_id, event, account)]


def _update(task_id: str, context_id: str, state: TaskState, event: TaskEvent) -> JsonObject | None:
    match event:
        case StatusChanged():
            return _status(task_id, context_id, event, account_of(event.progress, event.usage, event.failure))
        case ArtifactChunk(artifact=artifact, append=append, last=last):
            return _artifact(task_id, context_id, artifact, append=append, last=last, metadata=event.metadata)
        case MessageAdded(message=message, direct=False) if message.role is not Role.USER:
            words = StatusChanged(at=event.at, state=state, message=message, metadata=event.metadata)
            return _status(task_id, context_id, words, {})
        case MessageAdded() | Sent() | Watched() | Logged():
            return None  # An answer in one message is shown at the end, as an artifact.
        case _ as never:
            assert_never(never)


def _status(task_id: str, context_id: str, moved: StatusChanged, account: JsonObject) -> JsonObject:
    shown = _about(task_id, context_id)
    shown["status"] = wire_status(task_id, context_id, moved.state, moved.at, moved.message, moved.failure)
    add_metadata(shown, moved.metadata, account)
    return {"statusUpdate": shown}


def _artifact(
    task_id: str,
    context_id: str,
    artifact: Artifact,
    *,
    append: bool,
    last: bool,
    metadata: JsonObject | None = None,
) -> JsonObject:
    shown = _about(task_id, context_id)
    shown["artifact"] = wire_artifact(artifact)
    if append:
        shown["append"] = True
    if last:
        shown["lastChunk"] = True
    add_metadata(shown, metadata, {})
    return {"artifactUpdate": shown}


def _about(task_id: str, context_id: str) -> JsonObject:
    return {"taskId": task_id, "contextId": context_id} if context_id else {"taskId": task_id}


def _answer(request_id: Id, shown: JsonObject) -> bytes:
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": shown})
