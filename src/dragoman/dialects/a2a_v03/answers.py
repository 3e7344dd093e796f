"""A task as A2A 0.3 shows it, in answers, streams and pushes.

The answer is always among its artifacts, every turn in its history.
"""

from functools import partial
from typing import Final

import msgspec

from dragoman.dialects.dialect import Notice
from dragoman.dialects.hints import HINTS
from dragoman.dialects.kinds import (
    ARTIFACT,
    STATUS,
    Looks,
    beside_task,
    posted,
    task_then,
    wire_artifact,
    wire_message,
)
from dragoman.dialects.refusals import failure_of
from dragoman.dialects.times import wire_time
from dragoman.model.content import Message, Role, Text
from dragoman.model.http import HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.lifecycle import artifacts_of, history_of
from dragoman.model.states import TaskState
from dragoman.model.task import Task

_WRAPPERS: Final = {
    "task": "task",
    "message": "message",
    STATUS: "statusUpdate",
    ARTIFACT: "artifactUpdate",
}
_encode = msgspec.json.Encoder().encode


def task_object(task: Task, history_length: int | None = None) -> JsonObject:
    """The task; of its history the last turns that were asked for, where 0 is no limit."""
    turns = history_of(task)
    if history_length:
        turns = turns[-history_length:]
    shown: JsonObject = {
        "kind": "task",
        "id": task.id,
        "contextId": task.context_id,
        "status": _status(task),
        "artifacts": [wire_artifact(artifact) for artifact in artifacts_of(task)],
        "history": [wire_message(turn, context_id=task.context_id, task_id=task.id) for turn in turns],
    }
    beside = beside_task(task)
    if beside:
        shown["metadata"] = {HINTS: beside}
    return shown


def sent_object(task: Task, history_length: int | None = None) -> JsonObject:
    """What a message is answered with: the task, or a message where the agent answered with no more than that."""
    if task.direct and task.messages and task.state is TaskState.COMPLETED:
        return wire_message(task.messages[-1], context_id=task.context_id, task_id=None)
    return task_object(task, history_length)


def superset(shown: JsonObject) -> JsonObject:
    """An object for clients between 0.3 and 1.0: itself, and itself once more under the name that 1.0 wraps it in."""
    return {**shown, _WRAPPERS[shown["kind"]]: shown}


def notify(notice: Notice) -> HttpRequest | None:
    """What tells an address of a task: the whole of it."""
    task = task_then(notice)
    return None if task is None else posted(notice, _encode(task_object(task)))


def looks(history_length: int | None) -> Looks:
    """How a stream shows the task, with the turns that were asked for."""
    return Looks(
        partial(task_object, history_length=history_length) if history_length else task_object, _status, _words
    )


def _status(task: Task) -> JsonObject:
    shown: JsonObject = {"state": task.state.value, "timestamp": wire_time(task.updated_at)}
    said = _said(task)
    if said is not None:
        shown["message"] = wire_message(said, context_id=task.context_id, task_id=task.id)
    return shown


def _words(message: Message, context_id: str, task_id: str) -> JsonObject:
    return wire_message(message, context_id=context_id, task_id=task_id)


def _said(task: Task) -> Message | None:
    """The words that go with the state: the agent's, else why it failed."""
    if task.status_message is not None or task.state not in (TaskState.FAILED, TaskState.REJECTED):
        return task.status_message
    return Message(id=f"{task.id}-failure", role=Role.AGENT, parts=(Text(text=failure_of(task).message),))
