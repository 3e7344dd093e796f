"""A task as dotted shows it: the answer always an artifact, every turn under both names, times of its own."""

from dragoman.dialects.hints import HINTS
from dragoman.dialects.kinds import beside_task, wire_artifact, wire_message
from dragoman.dialects.refusals import failure_of, text_of
from dragoman.dialects.times import wire_time
from dragoman.model.content import Message, Text
from dragoman.model.json import JsonObject
from dragoman.model.lifecycle import artifacts_of, history_of
from dragoman.model.states import TaskState
from dragoman.model.task import Task


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


def _status(task: Task) -> JsonObject:
    shown: JsonObject = {"state": task.state.value, "timestamp": wire_time(task.updated_at)}
    said = text_of(task.status_message)
    if said is None and task.state in (TaskState.FAILED, TaskState.REJECTED):
        said = failure_of(task).message
    if said is not None:
        shown["message"] = said
    return shown
