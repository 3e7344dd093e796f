"""A2A 0.3 over JSON-RPC as servers on the official 0.3 SDK speak it: every object has its kind, one task is done."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tests.support.quirks.words import AT, C, Said, T, error, events, is_array, is_object, params_of, result

PART_MEMBER: Final = {"text": "text", "file": "file", "data": "data"}


class Profile03(msgspec.Struct, frozen=True, kw_only=True):
    """What one framework's task and stream look like, given the caller's message."""

    task: Callable[[dict[str, Any]], dict[str, Any]]
    stream: Callable[[dict[str, Any]], list[dict[str, Any]]]
    about_errors: dict[str, Any] = {}
    bad_params: int = -32602


def text03(text: str) -> dict[str, Any]:
    """A text part."""
    return {"kind": "text", "text": text}


def task03(state: str, status: dict[str, Any] | None = None, *, at: str | None = AT, **more: Any) -> dict[str, Any]:
    """A task of 0.3; without a time where there is none."""
    shown = {"state": state, **({"timestamp": at} if at else {}), **(status or {})}
    return {"kind": "task", "id": T, "contextId": C, "status": shown, **more}


def status03(state: str, *, final: bool = False, at: str = AT, **status: Any) -> dict[str, Any]:
    """A status update."""
    shown = {"state": state, "timestamp": at, **status}
    return {"kind": "status-update", "taskId": T, "contextId": C, "status": shown, "final": final}


def artifact03(artifact: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An artifact update."""
    return {"kind": "artifact-update", "taskId": T, "contextId": C, "artifact": artifact, **more}


def answer03(request: Any, profile: Profile03) -> Said:
    """The answer to one request, after the checks of the official models."""
    method, params, about = request["method"], params_of(request), profile.about_errors
    if method in ("message/send", "message/stream"):
        if _wrong(params):
            return error(request, profile.bad_params, "Request payload validation error", **about)
        user = {**params["message"], "taskId": T, "contextId": C}
        if method == "message/stream":
            return events(request, profile.stream(user))
        return result(request, profile.task(user))
    if method in ("tasks/get", "tasks/cancel", "tasks/resubscribe"):
        if params.get("id") != T:
            return error(request, -32001, "Task not found", **about)
        if method == "tasks/cancel":
            return error(request, -32002, "Task cannot be canceled", **about)
        user = {"kind": "message", "messageId": "user-1", "role": "user", "parts": [text03("hi")]}
        task = profile.task(user)
        return result(request, task) if method == "tasks/get" else events(request, [task])
    if method.startswith("tasks/pushNotificationConfig/"):
        return error(request, -32003, "Push Notification is not supported", **about)
    return error(request, -32601, "Method not found", **about)


def _wrong(params: dict[str, Any]) -> bool:
    message = params.get("message")
    if not is_object(message) or not message.get("messageId") or message.get("role") not in ("user", "agent"):
        return True
    parts = message.get("parts")
    if not is_array(parts) or message.get("kind", "message") != "message":
        return True
    return any(PART_MEMBER.get(part.get("kind", "")) not in part for part in parts)
