"""Follows a task of AgentVault: tasks/send, then tasks/sendSubscribe, again with the last id."""

import contextlib
import itertools
from collections.abc import Generator
from typing import Any, Final
from urllib.parse import quote

from dragoman.model.json import is_array, is_object
from tests.support.callers.agentvault import AgentVaultCaller
from tests.support.following import Followed, Piece, followed
from tests.support.speaking import Content, Seen
from tests.support.sse_client import SseItem, sse

_numbers = itertools.count(1)
_STATES: Final = {
    "SUBMITTED": "submitted",
    "WORKING": "working",
    "INPUT_REQUIRED": "input-required",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELED": "canceled",
}


class AgentVaultFollower:
    """Sends a task and subscribes to it."""

    slug = "agentvault"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = hub_url
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._caller = AgentVaultCaller(hub_url, token)

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """tasks/send, tasks/sendSubscribe."""
        sent = self._caller.call(agent, Content(text=text), timeout_ms=timeout_ms, wait=False)
        assert sent.error is None, sent
        with self._asked(agent, sent.task_id or "") as stream:
            yield stream

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """tasks/sendSubscribe after the last id."""
        with self._asked(agent, cut.task_id or "", cut.last_id) as stream:
            yield stream

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None

    @contextlib.contextmanager
    def _asked(self, agent: str, task_id: str, last_id: str = "") -> Generator[Followed]:
        frame: dict[str, Any] = {
            "jsonrpc": "2.0",
            "id": f"req-sub-{next(_numbers)}",
            "method": "tasks/sendSubscribe",
            "params": {"id": task_id},
        }
        headers = {**self._headers, "Last-Event-ID": last_id} if last_id else self._headers
        with sse(f"{self._hub}/agents/{quote(agent, safe='')}/agentvault/", frame, headers=headers) as stream:
            yield followed(stream, _piece, task_id)


def _piece(item: SseItem) -> Piece:
    data = item.data
    match item.name:
        case "task_status":
            return Piece(item.id, state=_STATES[data["state"]], message=data.get("message"), task_id=data["taskId"])
        case "task_message":
            parts = data["message"]["parts"]
            said = "".join(_words(part) for part in parts)
            return Piece(item.id, message=said) if data["message"]["role"] == "user" else Piece(item.id, text=said)
        case "task_artifact":
            return Piece(item.id, whole=_content(data["artifact"].get("content")))
        case _:
            raise AssertionError(f"AgentVault has no event {item.name!r}")


def _words(part: dict[str, Any]) -> str:
    return _content(part.get("content")) or ""


def _content(content: Any) -> str | None:
    if isinstance(content, str):
        return content
    if is_array(content):
        return "".join(_words(part) for part in content if is_object(part))
    return content.get("text") if is_object(content) else None


FOLLOWER = AgentVaultFollower
