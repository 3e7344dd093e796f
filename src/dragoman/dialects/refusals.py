"""What every dialect says beside its own words when something went wrong: headers, and why a task failed."""

from typing import Final

from dragoman.dialects.times import LONGEST_WAIT_S
from dragoman.model.content import Message, Text
from dragoman.model.errors import AgentError, DragomanError, error_of
from dragoman.model.http import JSON_TYPE, Headers
from dragoman.model.json import JsonObject
from dragoman.model.states import TaskState
from dragoman.model.task import Task

JSON_HEADERS: Final[Headers] = {b"content-type": JSON_TYPE}


def error_headers(error: DragomanError) -> Headers:
    """The headers that go with an error: when to come back, or how to prove who one is."""
    wait_s = wait_of(error)
    if wait_s is None and error.http_status != 401:
        return JSON_HEADERS
    headers = dict(JSON_HEADERS)
    if wait_s is not None:
        headers[b"retry-after"] = str(wait_s).encode()
    if error.http_status == 401:
        headers[b"www-authenticate"] = b"Bearer"
    return headers


def wait_of(error: DragomanError) -> int | None:
    """Seconds until the next try makes sense: what the agent itself asked for, where it did."""
    if error.retry_after_s is None:
        return None
    said = error.details.get("retry_after")
    return said if type(said) is int and 0 < said <= LONGEST_WAIT_S else error.retry_after_s


def details_of(error: DragomanError) -> JsonObject:
    """The facts of an error with the hub's own name for it as `reason`, unless the facts have a better one."""
    return {"reason": error.code.lower(), **error.details}


def failure_of(task: Task) -> DragomanError:
    """Why a task failed, as the error it was."""
    if task.failure is not None:
        return error_of(task.failure)
    said = text_of(task.status_message)
    if task.state is TaskState.REJECTED:
        return AgentError(said or "The agent rejected the task.", reason="rejected")
    return AgentError(said or "The agent failed.")


def text_of(message: Message | None) -> str | None:
    """The words of a message, if it has any."""
    if message is None:
        return None
    return "".join(part.text for part in message.parts if isinstance(part, Text)) or None
