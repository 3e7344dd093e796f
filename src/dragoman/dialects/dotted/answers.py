"""A task as dotted shows it, in answers, streams and pushes.

The answer is always an artifact, every turn stands under both names, and there are times of its own.
"""

from typing import Final

import msgspec

from dragoman.dialects.dialect import Notice
from dragoman.dialects.hints import HINTS
from dragoman.dialects.kinds import Looks, beside_task, posted, task_then, wire_artifact, wire_message
from dragoman.dialects.refusals import failure_of, text_of
from dragoman.dialects.times import wire_time
from dragoman.model.content import Message, Text
from dragoman.model.http import HttpRequest
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import artifacts_of, history_of
from dragoman.model.states import TaskState
from dragoman.model.task import Task

_encode = msgspec.json.Encoder().encode


def task_object(task: Task) -> JsonObject:
    """The task, with every member that the document prints."""
    messages = [_message(task, turn) for turn in _turns(task)]
    shown: JsonObject = {
        "id": task.id,
        "kind": "task",
        "contextId": task.context_id,
        "status": _status(task),
        "artifacts": [wire_artifact(artifact) for artifact in artifacts_of(task)],
        "messages": messages,
        "history": messages,
        "createdAt": wire_time(task.created_at),
        "updatedAt": wire_time(task.updated_at),
    }
    beside = beside_task(task)
    if beside:
        shown["metadata"] = {HINTS: beside}
    return shown


def notify(notice: Notice) -> HttpRequest | None:
    """What tells an address of a task: the whole of it."""
    task = task_then(notice)
    return None if task is None else posted(notice, _encode(task_object(task)))


def _turns(task: Task) -> tuple[Message, ...]:
    """Every turn; words of the status that are more than text are among them, for the status has room for text only."""
    said = task.status_message
    if said is None or all(isinstance(part, Text) for part in said.parts):
        return history_of(task)
    return (*history_of(task), said)


def _message(task: Task, message: Message) -> JsonObject:
    shown = wire_message(message, context_id=task.context_id, task_id=task.id)
    if message.at is not None:
        shown["timestamp"] = wire_time(message.at)
    return shown


def _words(message: Message, context_id: str, task_id: str) -> Json:
    """Words of a status in a stream: their text, or the message itself where it is more than that."""
    if all(isinstance(part, Text) for part in message.parts):
        return text_of(message) or ""
    return wire_message(message, context_id=context_id, task_id=task_id)


def _status(task: Task) -> JsonObject:
    shown: JsonObject = {"state": task.state.value, "timestamp": wire_time(task.updated_at)}
    said = text_of(task.status_message)
    if said is None and task.state in (TaskState.FAILED, TaskState.REJECTED):
        said = failure_of(task).message
    if said is not None:
        shown["message"] = said
    return shown


def _streamed_status(task: Task) -> JsonObject:
    said = task.status_message
    shown = _status(task)
    return shown if said is None else {**shown, "message": _words(said, task.context_id, task.id)}


LOOKS: Final = Looks(task_object, _streamed_status, _words)
