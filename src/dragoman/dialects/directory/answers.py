"""What the hub says to a directory's caller: results and records, errors by number, or bare as the caller was."""

from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.dialects.dialect import ErrorTable, wire_error
from dragoman.dialects.jsonrpc import RPC_ERRORS, Id, error_reply, result_reply
from dragoman.dialects.refusals import JSON_HEADERS, error_headers, failure_of, text_of
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    DragomanError,
    NotFound,
    NotSupported,
    Overloaded,
    SkillNotFound,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
)
from dragoman.model.http import HttpReply
from dragoman.model.json import JsonObject, is_object
from dragoman.model.lifecycle import output_of
from dragoman.model.objects import answer_object
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task

TASK_FAILED: Final = -32001
TASK_TIMEOUT: Final = -32002
FAULT: Final = -32603

ERRORS: Final[ErrorTable] = {
    **RPC_ERRORS,
    AgentNotFound: (TASK_FAILED, 200),
    SkillNotFound: (TASK_FAILED, 200),
    TaskFinished: (TASK_FAILED, 200),
    TaskNotCancelable: (TASK_FAILED, 200),
    NotSupported: (-32601, 200),
    Overloaded: (TASK_FAILED, 503),
    AgentUnavailable: (TASK_FAILED, 200),
    AgentTimeout: (TASK_TIMEOUT, 200),
    AgentError: (TASK_FAILED, 200),
    DragomanError: (FAULT, 200),
}
# One number for nearly everything: `data.reason` tells it apart. All others have the hub's own name for the error.
REASONS: Final[Mapping[type[DragomanError], str]] = {
    AgentNotFound: "no_agent",
    SkillNotFound: "no_agent",
    TaskNotFound: "task_not_found",
    TaskFinished: "finished",
    TaskNotCancelable: "finished",
    AgentUnavailable: "unavailable",
    AgentTimeout: "timeout",
}
STATUSES: Final[Mapping[TaskState, str]] = {TaskState.COMPLETED: "completed", TaskState.CANCELED: "cancelled"}

_encode = msgspec.json.Encoder().encode


def task_result(task: Task) -> JsonObject:
    """The answer of a task that was completed or cancelled.

    It repeats itself under `result`: there the published TypeScript client looks, and finds nothing otherwise.
    """
    shown: JsonObject = {"taskId": name_of(task), "status": STATUSES[task.state], "output": output_object(task)}
    return {**shown, "result": shown}


def task_reply(request_id: Id, task: Task) -> HttpReply:
    """The answer to who asked for a task: its result, or why there is none."""
    if task.state in STATUSES:
        return result_reply(request_id, task_result(task))
    return refusal(request_id, failure(task), name_of(task))


def output_object(task: Task) -> JsonObject:
    """What a task brought, as one object."""
    if task.state is TaskState.CANCELED:
        return {}
    return task.result if is_object(task.result) else answer_object(output_of(task), None)


def failure(task: Task) -> DragomanError:
    """Why there is no result; this dialect has no words for a task that is not over."""
    if task.state in INTERRUPTED:
        asked = text_of(task.status_message)
        reason = "input_required" if task.state is TaskState.INPUT_REQUIRED else "auth_required"
        return AgentError(asked or "The agent needs more input.", reason=reason, question=asked)
    if task.state is TaskState.REJECTED:
        return AgentError(failure_of(task).message, reason="rejected")
    return failure_of(task) if task.ended else AgentTimeout()


def name_of(task: Task) -> str:
    """What the caller calls the task."""
    return task.asked.alias or task.id


def refusal(request_id: Id, error: DragomanError, task_id: str | None) -> HttpReply:
    """An error to a JSON-RPC request."""
    data = _data(error, task_id)
    # The specification's own words for this one; what the hub has to say of it stands in the data.
    said = AgentTimeout("Task timeout") if isinstance(error, AgentTimeout) else error
    return error_reply(request_id, said, ERRORS, lambda _: data)


def bare_reply(body: JsonObject) -> HttpReply:
    """An answer without a frame."""
    return HttpReply(status=200, headers=JSON_HEADERS, body=_encode(body))


def bare_refusal(error: DragomanError) -> HttpReply:
    """An error to a request without a frame: there the HTTP status is all that programs look at."""
    code, status = wire_error(ERRORS, error)
    if status == 200:
        status = 404 if isinstance(error, NotFound) else 500 if code == FAULT else 400
    return HttpReply(status=status, headers=error_headers(error), body=_encode({"error": error.message}))


def _data(error: DragomanError, task_id: str | None) -> JsonObject:
    data: JsonObject = {"reason": error.code.lower(), **error.details}
    word = next((REASONS[each] for each in type(error).__mro__ if each in REASONS), None)
    if word is not None:
        if "reason" in error.details:
            data["cause"] = error.details["reason"]
        data["reason"] = word
    if task_id is not None:
        data["taskId"] = task_id
    if wire_error(ERRORS, error)[0] in (TASK_FAILED, TASK_TIMEOUT):
        data["message"] = error.message
    return data
