"""Follows a task in the words that A2A 0.3 and dotted share: a task, then status and artifact updates."""

from typing import Any

from tests.support.following import Piece


def piece(number: str, value: dict[str, Any]) -> Piece:
    """One object of a stream."""
    match value["kind"]:
        case "task":
            made = "".join(_words(part) for each in value.get("artifacts") or () for part in each["parts"])
            return Piece(number, text=made, state=value["status"]["state"], task_id=value["id"])
        case "status-update":
            state = value["status"]["state"]
            ends = state in ("completed", "failed", "canceled", "rejected", "input-required", "auth-required")
            assert value["final"] is ends, value
            return Piece(number, state=state, message=_said(value["status"].get("message")), task_id=value["taskId"])
        case "artifact-update":
            return Piece(number, text="".join(_words(part) for part in value["artifact"]["parts"]))
        case _:
            raise AssertionError(f"there is no event {value['kind']!r}")


def _words(part: dict[str, Any]) -> str:
    data = part.get("data")
    return part.get("text") or (data["text"] if data and set(data) == {"text"} else "")


def _said(message: Any) -> str | None:
    if message is None or isinstance(message, str):
        return message
    return "".join(part.get("text", "") for part in message["parts"])
