"""What A2A 1.0 puts on the wire when the hub asks: messages and parts in ProtoJSON, nothing else in them."""

from base64 import b64encode
from typing import assert_never

from dragoman.dialects.hints import HINTS, hints_of
from dragoman.model.content import Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.json import JsonObject
from dragoman.model.task import Task


def wire_message(task: Task, message: Message, timeout_ms: int) -> JsonObject:
    """The caller's message, as one of the agent's own task or context where it has one."""
    shown: JsonObject = {
        "messageId": message.id,
        "role": "ROLE_AGENT" if message.role is Role.AGENT else "ROLE_USER",
        "parts": [wire_part(part) for part in message.parts],
    }
    shown["contextId"] = task.context_id
    if task.remote is not None and task.asked.continues is not None:
        if task.remote.task_id is not None:
            shown["taskId"] = task.remote.task_id
        if task.remote.context_id is not None:
            shown["contextId"] = task.remote.context_id
    if message.references:
        shown["referenceTaskIds"] = message.references
    if message.extensions:
        shown["extensions"] = message.extensions
    shown["metadata"] = {**(task.asked.metadata or {}), **(message.metadata or {}), HINTS: hints_of(task, timeout_ms)}
    return shown


def wire_part(part: Part) -> JsonObject:
    """One part: exactly one of text, raw, url, data."""
    shown: JsonObject
    match part:
        case Text():
            shown = {"text": part.text}
        case Data():
            shown = {"data": part.value}
        case Blob():
            shown = {"raw": b64encode(part.raw).decode()}
        case Link():
            shown = {"url": part.url}
        case _ as never:
            assert_never(never)
    if part.media_type is not None:
        shown["mediaType"] = part.media_type
    if part.filename is not None:
        shown["filename"] = part.filename
    if part.metadata:
        shown["metadata"] = part.metadata
    return shown
