"""A2A 1.0 over JSON-RPC as servers on the official SDK speak it: strict in what they take, one task that is done."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from tests.support.quirks.words import AT, C, Said, T, error, error_info, events, is_array, is_object, params_of, result

PARAMS: Final = {"tenant", "message", "configuration", "metadata"}
MESSAGE: Final = {"messageId", "contextId", "taskId", "role", "parts", "metadata", "extensions", "referenceTaskIds"}
PART: Final = {"text", "raw", "url", "data", "metadata", "filename", "mediaType"}
CONTENT: Final = ("text", "raw", "url", "data")
METHODS: Final = {
    "SendMessage",
    "SendStreamingMessage",
    "GetTask",
    "ListTasks",
    "CancelTask",
    "SubscribeToTask",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetExtendedAgentCard",
}


class Profile10(msgspec.Struct, frozen=True, kw_only=True):
    """What one framework's task and stream look like, given the caller's message."""

    task: Callable[[dict[str, Any]], dict[str, Any]]
    stream: Callable[[dict[str, Any]], list[dict[str, Any]]]


def task10(state: str, status: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A task of 1.0."""
    shown = {"state": f"TASK_STATE_{state}", "timestamp": AT, **(status or {})}
    return {"id": T, "contextId": C, "status": shown, **more}


def status10(state: str, **status: Any) -> dict[str, Any]:
    """A status update of 1.0, in its wrapper."""
    shown = {"state": f"TASK_STATE_{state}", "timestamp": AT, **status}
    return {"statusUpdate": {"taskId": T, "contextId": C, "status": shown}}


def submitted10(user: dict[str, Any]) -> dict[str, Any]:
    """The first event of a stream: the task, not yet stamped."""
    return {"task": {"id": T, "contextId": C, "status": {"state": "TASK_STATE_SUBMITTED"}, "history": [user]}}


def answer10(request: Any, headers: Mapping[str, str], profile: Profile10) -> Said:
    """The answer to one request, after the checks of the official handler."""
    method, params = request["method"], params_of(request)
    if method not in METHODS:
        return error(request, -32601, "Method not found")
    version = headers.get("a2a-version") or "0.3"
    if version != "1.0":
        words = f"A2A version '{version}' is not supported by this handler. Expected version '1.0'."
        return error(request, -32009, words, data=error_info("VERSION_NOT_SUPPORTED"))
    if method in ("SendMessage", "SendStreamingMessage"):
        wrong = _wrong(params)
        if wrong:
            return error(request, -32602, wrong, data=error_info("INVALID_PARAMS"))
        user = {**params["message"], "taskId": T, "contextId": C}
        if method == "SendStreamingMessage":
            return events(request, profile.stream(user))
        return result(request, {"task": profile.task(user)})
    return _about_a_task(request, params, profile)


def _about_a_task(request: Any, params: dict[str, Any], profile: Profile10) -> Said:
    method = request["method"]
    if method == "ListTasks":
        return result(request, {"tasks": [], "nextPageToken": "", "pageSize": 50, "totalSize": 0})
    if method == "GetExtendedAgentCard":
        return error(request, -32004, "This operation is not supported", data=error_info("UNSUPPORTED_OPERATION"))
    if "PushNotificationConfig" in method:
        name = "PUSH_NOTIFICATION_NOT_SUPPORTED"
        return error(request, -32003, "Push Notification is not supported", data=error_info(name))
    if params.get("id") != T:
        return error(request, -32001, "Task not found", data=error_info("TASK_NOT_FOUND"))
    if method == "CancelTask":
        return error(request, -32002, "Task cannot be canceled", data=error_info("TASK_NOT_CANCELABLE"))
    if method == "SubscribeToTask":
        return error(request, -32004, "This operation is not supported", data=error_info("UNSUPPORTED_OPERATION"))
    user = {"messageId": "user-1", "role": "ROLE_USER", "parts": [{"text": "hi"}], "taskId": T, "contextId": C}
    return result(request, profile.task(user))


def _wrong(params: dict[str, Any]) -> str:
    """What a protobuf parser would not take; empty where all is well."""
    message = params.get("message")
    if not is_object(message) or set(params) - PARAMS:
        return f"Invalid params: {sorted(set(params) - PARAMS) or 'message is required'}"
    if set(message) - MESSAGE or not message.get("messageId") or message.get("role") not in ("ROLE_USER", "ROLE_AGENT"):
        return f"Invalid message: {sorted(set(message) - MESSAGE) or 'messageId and role are required'}"
    parts = message.get("parts")
    if not is_array(parts):
        return "Invalid message: parts are required"
    for part in parts:
        if set(part) - PART or sum(name in part for name in CONTENT) != 1:
            return f"Invalid part: {sorted(part)}"
    return ""
