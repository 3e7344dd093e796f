"""What the hub says to an AgentVault client: tasks, acknowledgements, refusals, and what is posted to a webhook."""

from typing import Final

import msgspec

from dragoman.dialects.agentvault.content import wire_artifact, wire_message
from dragoman.dialects.agentvault.wire import STATES
from dragoman.dialects.dialect import ErrorTable, Notice
from dragoman.dialects.hints import HINTS, without_hints
from dragoman.dialects.jsonrpc import RPC_ERRORS
from dragoman.dialects.refusals import JSON_HEADERS, details_of, failure_of, text_of
from dragoman.dialects.times import wire_time
from dragoman.model.content import Message, Part, Role, Text
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    Overloaded,
    TaskNotCancelable,
)
from dragoman.model.events import StatusChanged
from dragoman.model.http import HttpRequest
from dragoman.model.json import JsonObject, is_array, is_object
from dragoman.model.lifecycle import history_of, output_of
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.model.usage import told_usage

ERRORS: Final[ErrorTable] = {
    **RPC_ERRORS,
    NotAuthenticated: (-32002, 401),
    NotAuthorized: (-32003, 403),
    TaskNotCancelable: (-32004, 200),
    Overloaded: (-32000, 503),
    AgentUnavailable: (-32000, 200),
    AgentTimeout: (-32000, 200),
    AgentError: (-32000, 200),
}
# Under this name the hub's block of a message's metadata says that the agent did not say it as a message.
AS: Final = "as"
ANSWER: Final = "answer"
STATUS: Final = "status"
_ENDED_BADLY: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})
_WITH_WORDS: Final = INTERRUPTED | _ENDED_BADLY  # the words that came with the state are the agent's last turn

_encode = msgspec.json.Encoder().encode


def shown_task(task: Task) -> JsonObject:
    """A task with all its messages and artifacts."""
    shown: JsonObject = {
        "id": task.id,
        "state": STATES[task.state],
        "createdAt": wire_time(task.created_at),
        "updatedAt": wire_time(task.updated_at),
        "messages": [wire_message(turn) for turn in history_of(task)] + added_turns(task),
        "artifacts": [wire_artifact(artifact) for artifact in task.artifacts],
    }
    metadata = without_hints(task.asked.metadata) or {}
    about = _about(task)
    if about:
        metadata = {**metadata, HINTS: about}
    if metadata:
        shown["metadata"] = metadata
    return shown


def canceled() -> JsonObject:
    """The answer to a cancel that was carried out."""
    return {"success": True, "message": "Cancellation accepted"}


def not_canceled(error: TaskNotCancelable) -> JsonObject:
    """The answer to a cancel that came too late: no error in this dialect."""
    state = _state_word(error)
    return {"success": False, "message": error.message if state is None else f"The task is already {state}"}


def error_data(error: DragomanError) -> JsonObject:
    """The facts of an error; a state among them in this dialect's words, and the first wrong field by its path."""
    data = details_of(error)
    state = _state_word(error)
    if state is not None:
        data["state"] = state
    errors = data.get("errors")
    if is_array(errors) and errors and is_object(errors[0]):
        data["path"] = errors[0].get("path")
    return data


def notify(notice: Notice) -> HttpRequest | None:
    """The event of a changed status, for the caller's webhook; there are no others.

    That a task has come further is none: this dialect's events have no place to say how far.
    """
    event = notice.happened.event
    if not isinstance(event, StatusChanged):
        return None
    if event.state is TaskState.WORKING and event.progress is not None and text_of(event.message) is None:
        return None
    headers = {**JSON_HEADERS, b"x-a2a-event": b"task_status"}
    body = _encode(status_event(notice.task.id, event))
    return HttpRequest(method="POST", url=notice.url, headers=headers, body=body)


def status_event(task_id: str, event: StatusChanged) -> JsonObject:
    """A TaskStatusUpdateEvent; its message is plain words."""
    shown: JsonObject = {"taskId": task_id, "state": STATES[event.state], "timestamp": wire_time(event.at)}
    words = text_of(event.message) or (event.failure.message if event.failure is not None else None)
    if words is not None:
        shown["message"] = words
    return shown


def added_turns(task: Task) -> list[JsonObject]:
    """What the agent said elsewhere, as turns after all others: published clients look for answers there."""
    shown: list[JsonObject] = []
    if task.state in _WITH_WORDS:
        words = _last_words(task)
        if words and not _is_said(words, task.messages):
            shown.append(added_turn(words, STATUS))
    if task.state is TaskState.COMPLETED:
        answer = output_of(task)
        made = any(part in artifact.parts for artifact in task.artifacts for part in answer)
        if answer and not _is_said(answer, task.messages) and not (made and _speaks_for_itself(task)):
            # What was neither said nor made came with the end.
            shown.append(added_turn(_with_joined_texts(answer), ANSWER) if made else added_turn(answer, STATUS))
    return shown


def added_turn(parts: tuple[Part, ...], what: str) -> JsonObject:
    """Words of the agent's that are no message of its own, as one; `what` says what they were."""
    return wire_message(Message(id="", role=Role.AGENT, parts=parts), {HINTS: {AS: what}})


def _last_words(task: Task) -> tuple[Part, ...]:
    if task.status_message is not None and task.status_message.role is not Role.USER:
        return task.status_message.parts
    return (Text(text=failure_of(task).message),) if task.state in _ENDED_BADLY else ()


def _is_said(parts: tuple[Part, ...], turns: tuple[Message, ...]) -> bool:
    """Whether one of the agent's messages has these parts, or the same words."""
    text = _joined(parts)
    for turn in turns:
        if turn.role is Role.AGENT and (turn.parts == parts or (text is not None and _joined(turn.parts) == text)):
            return True
    return False


def _speaks_for_itself(task: Task) -> bool:
    """Whether the agent knows types of artifacts, as those of this dialect do, and said something beside them.

    Then its messages are as it wants them to be read.
    """
    spoke = any(message.role is Role.AGENT for message in task.messages)
    return spoke and all(artifact.kind is not None for artifact in task.artifacts)


def _with_joined_texts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The same, texts that follow each other as one: an answer that came in pieces is read in one."""
    joined: list[Part] = []
    for part in parts:
        before = joined[-1] if joined else None
        if isinstance(part, Text) and isinstance(before, Text):
            joined[-1] = Text(text=before.text + part.text)
        else:
            joined.append(part)
    return tuple(joined)


def _joined(parts: tuple[Part, ...]) -> str | None:
    """The text of parts that are nothing but text."""
    texts = [part.text for part in parts if isinstance(part, Text)]
    return "".join(texts) if texts and len(texts) == len(parts) else None


def _about(task: Task) -> JsonObject:
    """What this dialect's task has no member for."""
    about: JsonObject = {}
    if STATES[task.state] != task.state.name:
        about["state"] = task.state.value
    if task.progress is not None:
        about["progress"] = task.progress
    if task.failure is not None:
        about["failure"] = {"code": task.failure.code, "details": task.failure.details or {}}
    if task.state is TaskState.WORKING and (words := text_of(task.status_message)) is not None:
        about["message"] = words
    if task.usage is not None:
        about["usage"] = told_usage(task.usage)
    return about


def _state_word(error: DragomanError) -> str | None:
    state = error.details.get("state")
    return STATES[TaskState(state)] if isinstance(state, str) and state in set(TaskState) else None
