"""How four dialects ask for the stream of a call that runs already, and what the frames of such a stream tell.

A frame without a number belongs to the next that has one: whoever is cut off in between gets them all again.
"""

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.support.stream_agents import STREAMER

ENDS: Final = {"completed": "completed", "failed": "failed"}


class Told(NamedTuple):
    """What one frame tells: a piece of the answer, all of it so far, how the call ended; most frames one of them."""

    piece: str = ""
    whole: str | None = None
    end: str | None = None


class Tongue(NamedTuple):
    """One dialect: its request for a call's stream without the head they share, and how its frames are read."""

    slug: str
    asks: Callable[[str], tuple[str, str]]  # of a call's id: the head's beginning, and the body
    reads: Callable[[str, Any], Told | None]  # of a frame's name and data; None for what tells nothing


def _platform_asks(call_id: str) -> tuple[str, str]:
    return f"GET /v1/a2a/call/{call_id}/stream HTTP/1.1\r\n", ""


def _platform_reads(name: str, data: Any) -> Told | None:
    match name:
        case "start":
            return Told()
        case "chunk":
            return Told(piece=data["content"])
        case "complete":
            return Told(whole=data["result"]["text"], end=ENDS[data["status"]])
        case "error":
            return Told(end="failed")
        case "done":
            return None
        case _:
            raise AssertionError(f"the platform has no event {name!r}")


def _rpc(path: str, method: str, call_id: str, head: str = "") -> tuple[str, str]:
    frame = {"jsonrpc": "2.0", "id": "reads", "method": method, "params": {"id": call_id}}
    return f"POST /agents/{STREAMER}/{path} HTTP/1.1\r\nContent-Type: application/json\r\n{head}", json.dumps(frame)


def _v03_asks(call_id: str) -> tuple[str, str]:
    return _rpc("", "tasks/resubscribe", call_id)


def _v03_reads(_: str, data: Any) -> Told:
    told = data["result"]
    match told["kind"]:
        case "task":
            return Told(whole=_made(told))
        case "artifact-update":
            return Told(piece=_words(told["artifact"]))
        case "status-update":
            return Told(end=ENDS.get(told["status"]["state"]))
        case kind:
            raise AssertionError(f"A2A 0.3 has no event {kind!r}")


def _v10_asks(call_id: str) -> tuple[str, str]:
    return _rpc("", "SubscribeToTask", call_id, "A2A-Version: 1.0\r\n")


def _v10_reads(_: str, data: Any) -> Told:
    ((member, told),) = data["result"].items()
    match member:
        case "task":
            return Told(whole=_made(told))
        case "artifactUpdate":
            return Told(piece=_words(told["artifact"]))
        case "statusUpdate":
            return Told(end=ENDS.get(told["status"]["state"].removeprefix("TASK_STATE_").lower()))
        case _:
            raise AssertionError(f"A2A 1.0 has no event {member!r}")


def _agentvault_asks(call_id: str) -> tuple[str, str]:
    return _rpc("agentvault/", "tasks/sendSubscribe", call_id)


def _agentvault_reads(name: str, data: Any) -> Told:
    match name:
        case "task_status":
            return Told(end=ENDS.get(data["state"].lower()))
        case "task_message":
            return Told()
        case "task_artifact":
            return Told(piece=_content(data["artifact"]["content"]))
        case _:
            raise AssertionError(f"AgentVault has no event {name!r}")


def _made(task: dict[str, Any]) -> str:
    return "".join(_words(artifact) for artifact in task.get("artifacts", ()))


def _words(artifact: dict[str, Any]) -> str:
    return "".join(part["text"] for part in artifact["parts"])


def _content(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["content"] for part in content)


TONGUES: Final = (
    Tongue("platform", _platform_asks, _platform_reads),
    Tongue("a2a-0.3", _v03_asks, _v03_reads),
    Tongue("a2a-1.0", _v10_asks, _v10_reads),
    Tongue("agentvault", _agentvault_asks, _agentvault_reads),
)
