"""Follows a task of the directory's dialect: a2a/stream, and the same again with the last id."""

import contextlib
import itertools
import os
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

from tests.support.callers.directory import DirectoryCaller
from tests.support.following import Followed, Piece, followed
from tests.support.speaking import Seen
from tests.support.sse_client import SseItem, sse

_numbers = itertools.count(1)


class DirectoryFollower:
    """Sends a task to be streamed; under the same name it is the same task."""

    slug = "directory"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = hub_url
        self._caller = DirectoryCaller(hub_url, token)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._sent: dict[str | None, dict[str, Any]] = {}

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """a2a/stream."""
        params: dict[str, Any] = {
            "taskId": f"task-{os.getpid()}-{next(_numbers)}",
            "action": "echo",
            "sender": "directory-follower",
            "input": {"text": text},
            "timeoutMs": timeout_ms,
        }
        self._sent[params["taskId"]] = params
        with self._asked(agent, params) as stream:
            yield stream

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """The same task, after the last id."""
        with self._asked(agent, self._sent[cut.task_id], cut.last_id) as stream:
            yield stream

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None

    @contextlib.contextmanager
    def _asked(self, agent: str, params: dict[str, Any], last_id: str = "") -> Generator[Followed]:
        frame = {"jsonrpc": "2.0", "id": params["taskId"], "method": "a2a/stream", "params": params}
        headers = {**self._headers, "Last-Event-ID": last_id} if last_id else self._headers
        with sse(f"{self._hub}/agents/{quote(agent, safe='')}/", frame, headers=headers) as stream:
            yield followed(stream, _piece, params["taskId"])


def _piece(item: SseItem) -> Piece:
    if "error" in item.data:
        error = item.data["error"]
        return Piece(item.id, state="failed", message=error.get("data", {}).get("message") or error["message"])
    result = item.data["result"]
    output: dict[str, Any] = result.get("output") or {}
    text = output.get("text")
    match result["status"]:
        case "working":
            return Piece(item.id, text=text or "", state="working", message=result.get("message"))
        case "completed":
            return Piece(item.id, state="completed", whole=text)
        case "cancelled":
            return Piece(item.id, state="canceled")
        case _:
            raise AssertionError(f"a directory has no status {result['status']!r}")


FOLLOWER = DirectoryFollower
