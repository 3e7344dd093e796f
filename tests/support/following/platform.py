"""Follows a call of the Agent Platform: start, progress, chunk, complete or error, done."""

import contextlib
from collections.abc import Generator
from typing import Any

from tests.support.callers.platform import PlatformCaller
from tests.support.following import Followed, Piece, followed
from tests.support.speaking import Seen
from tests.support.sse_client import SseItem, sse


class PlatformFollower:
    """Posts to /call/stream, and comes back to the call's own stream."""

    slug = "platform"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = hub_url
        self._caller = PlatformCaller(hub_url, token)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """POST /v1/a2a/call/stream."""
        body: dict[str, Any] = {"target_agent_id": agent, "skill": "echo", "input": {"text": text}}
        body["options"] = {"timeout_ms": timeout_ms}
        with sse(f"{self._hub}/v1/a2a/call/stream", body, headers=self._headers) as stream:
            yield followed(stream, _piece)

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """GET the call's stream with the last id."""
        headers = {**self._headers, "Last-Event-ID": cut.last_id}
        with sse(f"{self._hub}/v1/a2a/call/{cut.task_id}/stream", headers=headers) as stream:
            yield followed(stream, _piece, cut.task_id)

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None


def _piece(item: SseItem) -> Piece:
    data = item.data
    match item.name:
        case "start":
            return Piece(item.id, state="submitted", task_id=data["call_id"])
        case "chunk":
            return Piece(item.id, text=data["content"])
        case "progress":
            return Piece(item.id, message=data.get("message"))
        case "complete":
            state = {"completed": "completed", "cancelled": "canceled"}[data["status"]]
            whole = data["result"].get("text") if state == "completed" else None
            return Piece(item.id, state=state, whole=whole)
        case "error":
            state = "input-required" if data.get("details", {}).get("reason") == "input_required" else "failed"
            return Piece(item.id, state=state, message=data["message"])
        case "done":
            assert data == {}
            return Piece(item.id)
        case _:
            raise AssertionError(f"the platform has no event {item.name!r}")


FOLLOWER = PlatformFollower
