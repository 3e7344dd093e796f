"""Follows a task of dotted JSON-RPC: message.stream, and the same again with its key and the last id."""

import contextlib
import itertools
import os
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

from tests.support.callers.dotted import DottedCaller
from tests.support.following import Followed, Piece, followed
from tests.support.following.kinds import piece
from tests.support.speaking import Seen
from tests.support.sse_client import SseItem, sse

_numbers = itertools.count(1)


class DottedFollower:
    """Speaks at the agent's base; it has no other way back to a stream than to ask for the same under the same key."""

    slug = "dotted"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = hub_url
        self._caller = DottedCaller(hub_url, token)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._sent: dict[str | None, tuple[str, dict[str, Any]]] = {}

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """message.stream."""
        message = {
            "kind": "message",
            "messageId": f"msg-{next(_numbers)}",
            "role": "user",
            "parts": [{"kind": "text", "text": text}],
            "metadata": {"dragoman": {"timeout_ms": timeout_ms}},
        }
        key, params = f"key-{os.getpid()}-{next(_numbers)}", {"message": message}
        with self._asked(agent, key, params) as stream:
            yield stream
            self._sent[stream.task_id] = (key, params)

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """The same message under the same key, after the last id."""
        with self._asked(agent, *self._sent[cut.task_id], cut.last_id) as stream:
            yield stream

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None

    @contextlib.contextmanager
    def _asked(self, agent: str, key: str, params: dict[str, Any], last_id: str = "") -> Generator[Followed]:
        frame = {"jsonrpc": "2.0", "id": f"req-{next(_numbers)}", "method": "message.stream", "params": params}
        headers = {**self._headers, "Idempotency-Key": key} | ({"Last-Event-ID": last_id} if last_id else {})

        def read(item: SseItem) -> Piece:
            assert item.data["id"] == frame["id"]
            return piece(item.id, item.data["result"])

        with sse(f"{self._hub}/agents/{quote(agent, safe='')}/", frame, headers=headers) as stream:
            yield followed(stream, read)


FOLLOWER = DottedFollower
