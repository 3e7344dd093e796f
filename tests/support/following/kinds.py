"""Follows a task in the words that A2A 0.3 and dotted share: a message, a task, then status and artifact updates."""

from typing import Any

from tests.support.following import Piece
from tests.support.following.rpc import numbers, words_of
from tests.support.sse_client import SseItem


def message(text: str, timeout_ms: int) -> dict[str, Any]:
    """A message of some words."""
    return {
        "kind": "message",
        "messageId": f"message-{next(numbers)}",
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
        "metadata": {"dragoman": {"timeout_ms": timeout_ms}},
    }


def event_piece(item: SseItem) -> Piece:
    """One event of a stream over JSON-RPC."""
    return piece(item.id, item.data["result"])


def piece(number: str, value: dict[str, Any]) -> Piece:
    """One object of a stream."""
    match value["kind"]:
        case "task":
            made = "".join(words_of(part) for each in value.get("artifacts") or () for part in each["parts"])
            return Piece(number, text=made, state=value["status"]["state"], task_id=value["id"])
        case "status-update":
            state = value["status"]["state"]
            ends = state in ("completed", "failed", "canceled", "rejected", "input-required", "auth-required")
            assert value["final"] is ends, value
            return Piece(number, state=state, message=_said(value["status"].get("message")), task_id=value["taskId"])
        case "artifact-update":
            return Piece(number, text="".join(words_of(part) for part in value["artifact"]["parts"]))
        case _:
            raise AssertionError(f"there is no event {value['kind']!r}")


def _said(message: Any) -> str | None:
    if message is None or isinstance(message, str):
        return message
    return "".join(part.get("text", "") for part in message["parts"])
