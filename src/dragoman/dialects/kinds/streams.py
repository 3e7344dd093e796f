"""A stream as A2A 0.3 and dotted tell it: the task, then each change of its status and each piece of an artifact.

    task · status-update · artifact-update · … · status-update with `final`

What an agent says beside its work is a status-update with its words: a bare message in a stream would end it. An answer
that stands only in words is shown as an artifact before the end, for that is where callers look, and the end does not
say it again. How a task and the words of a status look, and what stands around each object, is each dialect's own.
"""

from collections.abc import Callable
from typing import Final, assert_never, final

import msgspec

from dragoman.dialects.dialect import ErrorTable
from dragoman.dialects.hints import HINTS
from dragoman.dialects.jsonrpc import Id, error_reply
from dragoman.dialects.kinds.objects import beside_task, wire_artifact
from dragoman.dialects.kinds.requests import error_data
from dragoman.dialects.sse import frame
from dragoman.dialects.times import wire_time
from dragoman.model.content import Artifact, Message, Role
from dragoman.model.errors import DragomanError
from dragoman.model.events import ArtifactChunk, Happened, Logged, MessageAdded, Sent, StatusChanged, TaskEvent, Watched
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import artifacts_of, says_again
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task

STATUS: Final = "status-update"
ARTIFACT: Final = "artifact-update"

_encode = msgspec.json.Encoder().encode


class Looks(msgspec.Struct, frozen=True, gc=False):
    """How a dialect shows a task, the status of one, and words of a status in a context and a task."""

    task: Callable[[Task], JsonObject]
    status: Callable[[Task], JsonObject]
    words: Callable[[Message, str, str], Json]


@final
class KindFrames:
    """The frames of one stream; `write` makes the data of a frame of one object."""

    __slots__ = ("_context_id", "_looks", "_state", "_task_id", "_write")

    def __init__(self, looks: Looks, write: Callable[[JsonObject], bytes], task_id: str, context_id: str) -> None:
        self._looks = looks
        self._write = write
        self._task_id = task_id
        self._context_id = context_id
        self._state = TaskState.WORKING

    def __call__(self, item: StreamItem) -> bytes:
        """The frames of one item, its number on the last of them."""
        match item:
            case Snapshot(task=task):
                self._meet(task)
                shown = [self._looks.task(task), *([self._last(task)] if task.ended else [])]
                return self._framed(shown, task.last_seq)
            case Ended(seq=seq, task=task):
                self._meet(task)
                found = artifacts_of(task)
                made = () if found is task.artifacts else found
                last = self._last(task)
                if says_again(task, task.status_message):
                    last["status"].pop("message", None)
                return self._framed([*(self._artifact(each) for each in made), last], seq)
            case Happened(seq=seq, event=event):
                told = self._event(event)
                return b"" if told is None else self._framed([told], seq)
            case _ as never:
                assert_never(never)

    def _meet(self, task: Task) -> None:
        self._task_id, self._context_id, self._state = task.id, task.context_id, task.state

    def _framed(self, shown: list[JsonObject], seq: int) -> bytes:
        last = shown.pop()
        return b"".join([*(frame(self._write(each)) for each in shown), frame(self._write(last), seq=seq)])

    def _event(self, event: TaskEvent) -> JsonObject | None:
        match event:
            case StatusChanged():
                self._state = event.state
                beside: JsonObject = {} if event.progress is None else {"progress": event.progress}
                return self._status(self._now(event, event.message), _about(event.metadata, beside), ends=False)
            case MessageAdded(message=message, direct=False) if message.role is not Role.USER:
                return self._status(self._now(event, message), event.metadata, ends=False)
            case ArtifactChunk():
                return self._artifact(event.artifact, event)
            case MessageAdded() | Sent() | Watched() | Logged():
                return None  # An answer in one message is shown at the end, as an artifact.
            case _ as never:
                assert_never(never)

    def _now(self, event: StatusChanged | MessageAdded, said: Message | None) -> JsonObject:
        shown: JsonObject = {"state": self._state.value, "timestamp": wire_time(event.at)}
        if said is not None:
            shown["message"] = self._looks.words(said, self._context_id, self._task_id)
        return shown

    def _last(self, task: Task) -> JsonObject:
        return self._status(self._looks.status(task), _about(None, beside_task(task)), ends=True)

    def _status(self, status: JsonObject, metadata: JsonObject | None, *, ends: bool) -> JsonObject:
        shown: JsonObject = {
            "kind": STATUS,
            "taskId": self._task_id,
            "contextId": self._context_id,
            "status": status,
            "final": ends,
        }
        if metadata:
            shown["metadata"] = metadata
        return shown

    def _artifact(self, artifact: Artifact, chunk: ArtifactChunk | None = None) -> JsonObject:
        shown: JsonObject = {
            "kind": ARTIFACT,
            "taskId": self._task_id,
            "contextId": self._context_id,
            "artifact": wire_artifact(artifact),
            "append": chunk is not None and chunk.append,
            "lastChunk": chunk is None or chunk.last,
        }
        if chunk is not None and chunk.metadata:
            shown["metadata"] = chunk.metadata
        return shown


def result_data(request_id: Id, shown: JsonObject) -> bytes:
    """The data of a frame over JSON-RPC: one more answer to the request."""
    return _encode({"jsonrpc": "2.0", "id": request_id, "result": shown})


def broken_data(request_id: Id, table: ErrorTable, error: DragomanError) -> bytes:
    """The frame that says over JSON-RPC that a stream cannot go on."""
    return frame(error_reply(request_id, error, table, error_data).body)


def _about(metadata: JsonObject | None, beside: JsonObject) -> JsonObject | None:
    return {**(metadata or {}), HINTS: beside} if beside else metadata
