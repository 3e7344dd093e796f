"""The directory's streams: each event is one JSON-RPC answer to the request that asked for them.

a2a/stream   how far a task is, with what is new of its output; the last is what a2a/task would have answered
a2a/events   what changes among agents and tasks; of one task, until it has ended
"""

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from dragoman.dialects.dialect import Frames
from dragoman.dialects.directory.answers import STATUSES, name_of, output_object, task_reply
from dragoman.dialects.directory.card import record
from dragoman.dialects.jsonrpc import Id, result_reply
from dragoman.dialects.refusals import failure_of, text_of
from dragoman.dialects.sse import frame
from dragoman.model.changes import AgentChanged, Change
from dragoman.model.content import Message, Role
from dragoman.model.errors import AgentTimeout
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.http import Headers
from dragoman.model.json import JsonObject
from dragoman.model.objects import answer_object
from dragoman.model.states import TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task

WORKING: Final = "working"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DIGITS: Final = 16  # of a time in microseconds


def task_frames(request_id: Id, task_id: str) -> Frames:
    """How a task is told to who sent it."""
    return partial(_task_frame, _shown_id(request_id), task_id)


def event_frames(request_id: Id, task_id: str) -> Frames:
    """How one task is told to who watches it."""
    return partial(_event_frame, _shown_id(request_id), task_id)


def change_frame(request_id: Id, hub_url: str, change: Change) -> bytes:
    """The event of one change, numbered by its time."""
    if isinstance(change, AgentChanged):
        agent = change.agent
        if agent is None:
            shown: JsonObject = {"event": "agent.removed", "agent": {"agentId": change.agent_id}}
        else:
            shown = {"event": "agent.registered", "agent": record(agent, f"{hub_url}/agents/{agent.id}/")}
    else:
        shown = _updated(_task(change.task))
    return _result(_shown_id(request_id), shown, (change.at - _EPOCH) // timedelta(microseconds=1))


def last_change(headers: Headers) -> datetime | None:
    """The time of the last change that somebody has seen who comes back; None where it names none of ours."""
    said = headers.get(b"last-event-id", b"").strip()
    return _EPOCH + timedelta(microseconds=int(said)) if said.isdigit() and len(said) == _DIGITS else None


def _task_frame(request_id: Id, task_id: str, item: StreamItem) -> bytes:
    match item:
        case Snapshot(task=task) if task.ended:
            return frame(task_reply(request_id, task).body, seq=task.last_seq)
        case Snapshot(task=task):
            return _result(request_id, {"taskId": task_id, "status": WORKING, **_so_far(task)}, task.last_seq)
        case Ended(seq=seq, task=task):
            return frame(task_reply(request_id, task).body, seq=seq)
        case _:
            news = _news(item.event)
            return _result(request_id, {"taskId": task_id, "status": WORKING, **news}, item.seq) if news else b""


def _event_frame(request_id: Id, task_id: str, item: StreamItem) -> bytes:
    match item:
        case Snapshot(task=task):
            return _result(request_id, _updated(_task(task)), task.last_seq)
        case Ended(seq=seq, task=task):
            return _result(request_id, _updated(_task(task)), seq)
        case _:
            news = _news(item.event)
            shown = _updated({"taskId": task_id, "status": WORKING, **news})
            return _result(request_id, shown, item.seq) if news else b""


def _news(event: TaskEvent) -> JsonObject:
    """What is new in an event: words, how far it is, a piece of the output."""
    match event:
        case StatusChanged(message=message, progress=progress):
            return _told(progress, message)
        case MessageAdded(message=message):
            return {} if message.role is Role.USER else _told(None, message)
        case ArtifactChunk(artifact=artifact):
            return {"output": answer_object(artifact.parts, None)} if artifact.parts else {}
        case _:
            return {}


def _so_far(task: Task) -> JsonObject:
    """What there is of a task that is not over."""
    parts = tuple(part for artifact in task.artifacts for part in artifact.parts)
    told = _told(task.progress, task.status_message)
    return {**told, "output": answer_object(parts, None)} if parts else told


def _told(progress: float | None, message: Message | None) -> JsonObject:
    told: JsonObject = {}
    if progress is not None:
        told["progress"] = progress
    if (words := text_of(message)) is not None:
        told["message"] = words
    return told


def _task(task: Task) -> JsonObject:
    """A task as it stands."""
    shown: JsonObject = {"taskId": name_of(task), "status": STATUSES.get(task.state, WORKING)}
    shown["agentId"] = task.agent_id
    if task.skill is not None:
        shown["action"] = task.skill
    if task.state in (TaskState.FAILED, TaskState.REJECTED):
        error = failure_of(task)
        status = "timeout" if isinstance(error, AgentTimeout) else "failed"
        return {**shown, "status": status, "message": error.message}
    if task.state is TaskState.COMPLETED:
        return {**shown, "output": output_object(task)}
    return {**shown, **_told(task.progress, task.status_message)}


def _updated(task: JsonObject) -> JsonObject:
    return {"event": "task.updated", "task": task}


def _result(request_id: Id, result: JsonObject, seq: int) -> bytes:
    return frame(result_reply(request_id, result).body, seq=seq)


def _shown_id(request_id: Id) -> Id:
    """The id of each answer; a stream that was asked for without one has none either."""
    return None if request_id is msgspec.UNSET else request_id
