"""The platform's streams, both ways: start, progress and chunks, then complete or error, then done."""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.dialect import Heard, Outgoing, Streaming
from dragoman.dialects.platform.answers import STATES, error_body, question_of, result_of, usage_body
from dragoman.dialects.platform.outbound import failed_heard, parts_of_result
from dragoman.dialects.refusals import failure_of, text_of
from dragoman.dialects.sse import SseEvent, frame
from dragoman.model.content import Artifact, Message, Part, Role, Text
from dragoman.model.errors import BadAgentReply
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.model.usage import read_usage

RETRY: Final = b"retry: 3000\n"
DONE: Final = b"{}"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


# -- to a caller


def frames_for(call_id: str) -> Streaming:
    """How the stream of a call is shown."""

    def frames(item: StreamItem) -> bytes:
        match item:
            case Snapshot(task=task):
                return _snapshot(task)
            case Ended(seq=seq, task=task):
                return _end(task, seq)
            case _:
                return _happened(call_id, item.seq, item.event)

    return Streaming(frames=frames, nothing_left=frame(DONE, name="done"))


def _snapshot(task: Task) -> bytes:
    """A call as it is: just begun, or, to who asks for it a second time, with all that it has said so far.

    Whoever is cut off inside comes back for all of it: only the words have the number that they reach to.
    """
    words = "".join(_text(artifact.parts) for artifact in task.artifacts)
    reached = task.last_seq - 1 if task.ended else task.last_seq
    shown = _start(task.id, 1 if words else reached)
    if task.progress is not None:
        shown += _progress(task.progress, text_of(task.status_message), 1 if words else reached)
    if words:
        shown += _chunk(words, reached)
    return shown + _end(task, task.last_seq) if task.ended else shown


def _start(call_id: str, seq: int) -> bytes:
    return RETRY + frame(_encode({"call_id": call_id, "status": "started"}), name="start", seq=seq)


def _happened(call_id: str, seq: int, event: TaskEvent) -> bytes:
    if seq == 1:
        return _start(call_id, seq)
    if isinstance(event, ArtifactChunk):
        text = _text(event.artifact.parts)
        return _chunk(text, seq) if text else b""
    if isinstance(event, StatusChanged):
        said = text_of(event.message)
        return b"" if event.progress is None and said is None else _progress(event.progress, said, seq)
    if isinstance(event, MessageAdded) and event.message.role is not Role.USER:
        said = text_of(event.message)
        return b"" if said is None else _progress(None, said, seq)
    return b""


def _progress(progress: float | None, message: str | None, seq: int) -> bytes:
    shown: JsonObject = {}
    if progress is not None:
        shown["progress"] = progress
    if message is not None:
        shown["message"] = message
    return frame(_encode(shown), name="progress", seq=seq)


def _chunk(text: str, seq: int) -> bytes:
    return frame(_encode({"content": text}), name="chunk", seq=seq)


def _end(task: Task, seq: int) -> bytes:
    if task.state is TaskState.COMPLETED:
        shown: JsonObject = {"status": "completed", "result": result_of(task)}
        if task.usage is not None:
            shown["usage"] = usage_body(task.usage)
        last = frame(_encode(shown), name="complete", seq=seq)
    elif task.state is TaskState.CANCELED:
        last = frame(_encode({"status": STATES[task.state]}), name="complete", seq=seq)
    else:
        error = question_of(task) if task.state in INTERRUPTED else failure_of(task)
        shown_error = msgspec.structs.replace(error_body(error), retryable=None)  # which only a whole answer has
        last = frame(_encode(shown_error), name="error", seq=seq)
    return last + frame(DONE, name="done", seq=seq)


def _text(parts: tuple[Part, ...]) -> str:
    """The words of a piece; what is no text comes with the result."""
    return "".join(part.text for part in parts if isinstance(part, Text))


# -- from an agent


class PlatformListener:
    """Hears the stream of one platform agent."""

    __slots__ = ("_began", "_said")

    def __init__(self, outgoing: Outgoing) -> None:
        self._began = any(artifact.id == RESULT_ARTIFACT for artifact in outgoing.task.artifacts)
        self._said: list[str] = []

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What one event says. Raises BadAgentReply for what is no JSON object."""
        try:
            data: Json = _decode(event.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            data = None
        if not is_object(data):
            raise BadAgentReply("The agent sent an event that is no JSON object.", reason="invalid_response")
        return self.told(event.name or _name_of(data), data, at)

    def told(self, name: str, data: JsonObject, at: datetime) -> Heard:
        """What one event of that name says."""
        match name:
            case "progress":
                return _heard(_progressed(data, at))
            case "chunk":
                return self._chunk(data, at)
            case "complete":
                return self._completed(data, at)
            case "error":
                return failed_heard(data, at)
            case _:
                return _heard()

    def _chunk(self, data: JsonObject, at: datetime) -> Heard:
        text: Json = data.get("content")
        if not isinstance(text, str) or not text:
            return _heard()
        began, self._began = self._began, True
        self._said.append(text)
        piece = Artifact(id=RESULT_ARTIFACT, parts=(Text(text=text),))
        return _heard(ArtifactChunk(at=at, artifact=piece, append=began, last=False))

    def _completed(self, data: JsonObject, at: datetime) -> Heard:
        """The end. Without a result of its own the pieces are the result."""
        usage = read_usage(data.get("usage"))
        status: Json = data.get("status")
        if status in ("cancelled", "canceled"):
            canceled = StatusChanged(at=at, state=TaskState.CANCELED, usage=usage)
            return Heard(events=(canceled,), settled=True)
        if status == "failed":
            return failed_heard(data.get("error"), at)
        events: list[TaskEvent] = [StatusChanged(at=at, state=TaskState.COMPLETED, usage=usage)]
        if not self._was_said(data.get("result")):
            whole = Artifact(id=RESULT_ARTIFACT, parts=parts_of_result(data.get("result")))
            events.insert(0, ArtifactChunk(at=at, artifact=whole))
        return Heard(events=tuple(events), settled=True)

    def _was_said(self, result: Json) -> bool:
        """Whether the result is no more than the pieces together, which need not be told twice."""
        if result is None:
            return self._began
        said = "".join(self._said)
        return bool(said) and result in (said, {"text": said})


def _name_of(data: JsonObject) -> str:
    """What an event without a name is."""
    for member, name in (("content", "chunk"), ("progress", "progress"), ("code", "error"), ("result", "complete")):
        if member in data:
            return name
    return "complete" if data.get("status") in ("completed", "failed", "cancelled", "canceled") else ""


def _progressed(data: JsonObject, at: datetime) -> StatusChanged:
    said: Json = data.get("message")
    message = None
    if isinstance(said, str) and said:
        message = Message(id="progress", role=Role.AGENT, parts=(Text(text=said),), at=at)
    return StatusChanged(at=at, state=TaskState.WORKING, progress=_share(data.get("progress")), message=message)


def _share(value: Json) -> float | None:
    """How much is done, where that is what the value says."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)


def _heard(*events: TaskEvent) -> Heard:
    return Heard(events=events, settled=False)
