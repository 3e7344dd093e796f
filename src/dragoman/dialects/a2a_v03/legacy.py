"""Agents that claim 0.3 and speak A2A 0.1: the method is a part of the URL, and parts say their `type`.

An endpoint is one of these when its version says so; nothing here looks at a card.
"""

from datetime import datetime
from typing import Final

from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.hints import HINTS, hints_of
from dragoman.dialects.jsonrpc import request_body
from dragoman.dialects.kinds import JSON_OR_STREAM, hear_object, heard_result, sent_once, wire_part
from dragoman.model.content import Message, Part, Role
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.json import JsonObject

LEGACY: Final = "legacy-0.1"
_METHODS: Final = {Verb.SEND: "tasks/send", Verb.GET: "tasks/get", Verb.CANCEL: "tasks/cancel"}


def ask_legacy(outgoing: Outgoing) -> HttpRequest | None:
    """The request for one verb, at the URL of its method; the task has the hub's own id there.

    There are no streams.
    """
    method = _METHODS.get(outgoing.verb)
    if method is None:
        return None
    task, message, remote = outgoing.task, outgoing.message, outgoing.task.remote
    task_id = remote.task_id if remote is not None and remote.task_id is not None else task.id
    context_id = remote.context_id if remote is not None and remote.context_id is not None else task.context_id
    headers = {**JSON_OR_STREAM, **outgoing.headers}
    params: JsonObject = {"id": task_id}
    if outgoing.verb is Verb.SEND and message is not None:
        headers[b"idempotency-key"] = sent_once(outgoing)
        params |= {
            "sessionId": context_id,
            "message": _message(message),
            "metadata": {**(outgoing.asked.metadata or {}), HINTS: hints_of(task, outgoing.timeout_ms)},
        }
    url = f"{(outgoing.endpoint.url or '').rstrip('/')}/{method}"
    return HttpRequest(method="POST", url=url, headers=headers, body=request_body(method, task.id, params))


def hear_legacy(outgoing: Outgoing, reply: HttpReply, at: datetime) -> Heard:
    """What an answer says; what 0.3 calls a context is a session here."""
    result = heard_result(outgoing, reply, at)
    if isinstance(result, Heard):
        return result
    return hear_object(outgoing, {**result, "contextId": result.get("sessionId")}, at)


def _message(message: Message) -> JsonObject:
    shown: JsonObject = {
        "role": "agent" if message.role is Role.AGENT else "user",
        "parts": [_part(part) for part in message.parts],
    }
    if message.metadata:
        shown["metadata"] = message.metadata
    return shown


def _part(part: Part) -> JsonObject:
    shown = wire_part(part)
    return {"type": shown.pop("kind"), **shown}
