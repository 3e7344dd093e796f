"""What the hub tells the one who gave a task, later: updates and the completion, each an envelope of its own.

They go to its endpoint or into its mailbox with the very same words, and with the same id when they are told again.
"""

from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.dialects.dialect import Notice, wire_error
from dragoman.dialects.envelope.errors import ERRORS
from dragoman.dialects.envelope.sealed import Letter, letter_of
from dragoman.dialects.envelope.wire import AWAITED, AWAITING, COMPLETION, UPDATE, USAGE, envelope_of, messages_url
from dragoman.dialects.refusals import JSON_HEADERS, details_of, failure_of, text_of
from dragoman.dialects.times import between_ms, wire_time
from dragoman.dialects.uuids import uuid_of
from dragoman.model.events import StatusChanged, Usage
from dragoman.model.http import HttpRequest
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import output_of
from dragoman.model.objects import answer_object
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.usage import told_usage

WORDS: Final[Mapping[TaskState, str]] = {
    TaskState.SUBMITTED: "assigned",
    TaskState.WORKING: "in_progress",
    TaskState.INPUT_REQUIRED: "in_progress",
    TaskState.AUTH_REQUIRED: "in_progress",
    TaskState.COMPLETED: "completed",
    TaskState.FAILED: "failed",
    TaskState.CANCELED: "cancelled",
    TaskState.REJECTED: "failed",
}
_AWAITS: Final = {state: word for word, state in AWAITED.items()}
_ENDS: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.REJECTED})

_encode = msgspec.json.Encoder().encode


def notify(notice: Notice) -> HttpRequest | None:
    """The message that tells of a change of state; of all else the task's giver hears nothing."""
    event, task = notice.happened.event, notice.task
    if not isinstance(event, StatusChanged):
        return None
    ends = event.state in _ENDS
    kind = COMPLETION if ends else UPDATE
    letter = _letter(task, event)
    if letter is not None:
        body = envelope_of(letter.message_id, wire_time(event.at), letter.sender, letter.to, kind, letter.payload)
        return _posted(notice, body)
    payload: JsonObject = {"task_id": task.asked.alias or task.id, "status": WORDS[event.state]}
    payload |= _end(task, event) if ends else _step(event)
    message_id = uuid_of(task.id, str(notice.happened.seq), "report")
    sender = notice.callback.sender or notice.hub_id  # a giver knows its task's agent by the name it wrote to
    # The event's own time, not the telling's: told again, it is the same message.
    return _posted(notice, envelope_of(message_id, wire_time(event.at), sender, notice.recipient, kind, payload))


def _posted(notice: Notice, body: JsonObject) -> HttpRequest:
    url = messages_url(notice.url) if notice.url else ""
    return HttpRequest(method="POST", url=url, headers=JSON_HEADERS, body=_encode(body))


def _letter(task: Task, event: StatusChanged) -> Letter | None:
    """The encrypted message that told of a change, to be handed on as it came."""
    if event.state is TaskState.COMPLETED:
        return letter_of(output_of(task))
    return None if event.message is None else letter_of(event.message.parts)


def _step(event: StatusChanged) -> JsonObject:
    """An update; of one that waits its words are the question, and its metadata say for what."""
    told: JsonObject = {}
    if event.progress is not None:
        told["progress"] = min(max(event.progress, 0.0), 1.0)
    said = text_of(event.message)
    if said is not None:
        told["message"] = said
    metadata = _with_usage(event, event.usage)
    if event.state in _AWAITS:
        metadata[AWAITING] = _AWAITS[event.state]
    if metadata:
        told["metadata"] = metadata
    return told


def _end(task: Task, event: StatusChanged) -> JsonObject:
    told: JsonObject = {"result": _result(task) if event.state is TaskState.COMPLETED else _reason(task)}
    used = event.usage or task.usage
    if used is not None and used.execution_ms is not None:
        told["execution_time_ms"] = used.execution_ms
    elif task.started_at is not None:
        told["execution_time_ms"] = between_ms(task.started_at, event.at)
    if used is not None:
        used = msgspec.structs.replace(used, execution_ms=None)  # It has a field of its own.
    metadata = _with_usage(event, used)
    if metadata:
        told["metadata"] = metadata
    return told


def _with_usage(event: StatusChanged, usage: Usage | None) -> JsonObject:
    """What was told beside a change, with what the agent used up."""
    metadata = dict(event.metadata or {})
    used = {} if usage is None else told_usage(usage)
    used |= used.pop("other", {})
    if used:
        metadata[USAGE] = used
    return metadata


def _result(task: Task) -> Json:
    if is_object(task.result):
        return task.result
    return answer_object(output_of(task), None)


def _reason(task: Task) -> JsonObject:
    """Why it failed; an agent of this dialect said so in a form of its own, which is passed on as it came."""
    details = task.failure.details if task.failure is not None else None
    if details and is_object(result := details.get("agent_result")):
        return result
    error = failure_of(task)
    return {
        "error": {"code": wire_error(ERRORS, error)[0], "message": error.message, "details": details_of(error)},
    }
