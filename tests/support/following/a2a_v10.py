"""Follows a task of A2A 1.0: SendStreamingMessage, and SubscribeToTask with the last id."""

import contextlib
import itertools
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

from tests.support.callers.a2a_v10 import A2AV10Caller
from tests.support.following import Followed, Piece, followed
from tests.support.speaking import Seen
from tests.support.sse_client import SseItem, sse

_numbers = itertools.count(1)


class V10Follower:
    """Speaks JSON-RPC at the agent's base."""

    slug = "a2a-1.0"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = hub_url
        self._caller = A2AV10Caller(hub_url, token)
        self._headers = {"A2A-Version": "1.0"} | ({"Authorization": f"Bearer {token}"} if token else {})

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """SendStreamingMessage."""
        message = {
            "messageId": f"message-{next(_numbers)}",
            "role": "ROLE_USER",
            "parts": [{"text": text}],
            "metadata": {"dragoman": {"timeout_ms": timeout_ms}},
        }
        with self._asked(agent, "SendStreamingMessage", {"message": message}) as stream:
            yield stream

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """SubscribeToTask."""
        with self._asked(agent, "SubscribeToTask", {"id": cut.task_id}, cut.last_id) as stream:
            yield stream

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None

    @contextlib.contextmanager
    def _asked(self, agent: str, method: str, params: dict[str, Any], last_id: str = "") -> Generator[Followed]:
        frame = {"jsonrpc": "2.0", "id": f"req-{next(_numbers)}", "method": method, "params": params}
        headers = {**self._headers, "Last-Event-ID": last_id} if last_id else self._headers

        def piece(item: SseItem) -> Piece:
            assert item.name == ""
            assert item.data["id"] == frame["id"]
            return _piece(item.id, item.data["result"])

        with sse(f"{self._hub}/agents/{quote(agent, safe='')}/", frame, headers=headers) as stream:
            yield followed(stream, piece)


def _piece(number: str, result: dict[str, Any]) -> Piece:
    (member,) = result
    value = result[member]
    match member:
        case "task":
            made = "".join(part.get("text", "") for each in value.get("artifacts", ()) for part in each["parts"])
            return Piece(number, text=made, state=_state(value["status"]), task_id=value["id"])
        case "statusUpdate":
            said = value["status"].get("message")
            words = "".join(part.get("text", "") for part in said["parts"]) if said else None
            return Piece(number, state=_state(value["status"]), message=words, task_id=value["taskId"])
        case "artifactUpdate":
            return Piece(number, text="".join(_words(part) for part in value["artifact"]["parts"]))
        case _:
            raise AssertionError(f"1.0 has no event {member!r}")


def _words(part: dict[str, Any]) -> str:
    data = part.get("data")
    return part.get("text") or (data["text"] if data and set(data) == {"text"} else "")


def _state(status: dict[str, Any]) -> str:
    state: str = status["state"]
    return state.removeprefix("TASK_STATE_").lower().replace("_", "-")


FOLLOWER = V10Follower
