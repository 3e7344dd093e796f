"""Follows a task of A2A 0.3: message/stream, and tasks/resubscribe with the last id."""

import contextlib
import itertools
from collections.abc import Generator
from typing import Any
from urllib.parse import quote

from tests.support.callers.a2a_v03 import A2aV03Caller
from tests.support.following import Followed, Piece, followed
from tests.support.following.kinds import piece
from tests.support.speaking import Seen
from tests.support.sse_client import SseItem, sse

_numbers = itertools.count(1)


class V03Follower:
    """Speaks JSON-RPC at the agent's base."""

    slug = "a2a-0.3"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = hub_url
        self._caller = A2aV03Caller(hub_url, token)
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """message/stream."""
        message = {
            "kind": "message",
            "messageId": f"message-{next(_numbers)}",
            "role": "user",
            "parts": [{"kind": "text", "text": text}],
            "metadata": {"dragoman": {"timeout_ms": timeout_ms}},
        }
        with self._asked(agent, "message/stream", {"message": message}) as stream:
            yield stream

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """tasks/resubscribe."""
        with self._asked(agent, "tasks/resubscribe", {"id": cut.task_id}, cut.last_id) as stream:
            yield stream

    def cancel(self, agent: str, stream: Followed) -> None:
        """As any of its callers would."""
        assert self._caller.cancel(agent, Seen(task_id=stream.task_id)).error is None

    @contextlib.contextmanager
    def _asked(self, agent: str, method: str, params: dict[str, Any], last_id: str = "") -> Generator[Followed]:
        frame = {"jsonrpc": "2.0", "id": f"req-{next(_numbers)}", "method": method, "params": params}
        headers = {**self._headers, "Last-Event-ID": last_id} if last_id else self._headers

        def read(item: SseItem) -> Piece:
            assert item.data["id"] == frame["id"]
            return piece(item.id, item.data["result"])

        with sse(f"{self._hub}/agents/{quote(agent, safe='')}/", frame, headers=headers) as stream:
            yield followed(stream, read)


FOLLOWER = V03Follower
