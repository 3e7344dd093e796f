"""The `metadata.dragoman` block: what a wire has no field for travels there. It is never trusted."""

from dragoman.model.json import JsonObject
from dragoman.model.operations import Priority
from dragoman.model.task import Task

HINTS = "dragoman"


def hints_of(task: Task, timeout_ms: int) -> JsonObject:
    """What the target may want to know and its dialect has no place for."""
    hints: JsonObject = {"call_id": task.id}
    if task.skill is not None:
        hints["skill"] = task.skill
    if timeout_ms:
        hints["timeout_ms"] = timeout_ms
    asked = task.asked
    if asked.priority is not Priority.NORMAL:
        hints["priority"] = asked.priority.name.lower()
    if asked.parent_id is not None:
        hints["parent"] = asked.parent_id
    if asked.title is not None:
        hints["title"] = asked.title
    if task.chain:
        hints["call_chain"] = task.chain
    return hints
