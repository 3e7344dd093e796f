"""Follows a task of dotted JSON-RPC: message.stream, and the same again with its key and the last id."""

import contextlib
import os
from collections.abc import Generator
from contextlib import AbstractContextManager
from typing import Any

from tests.support.callers.dotted import DottedCaller
from tests.support.following import Followed
from tests.support.following.kinds import event_piece, message
from tests.support.following.rpc import RpcFollower, numbers


class DottedFollower(RpcFollower):
    """Speaks at the agent's base; it has no other way back to a stream than to ask for the same under the same key."""

    slug = "dotted"

    def __init__(self, hub_url: str, token: str = "") -> None:
        super().__init__(DottedCaller(hub_url, token), event_piece, hub_url, token)
        self._sent: dict[str | None, tuple[str, dict[str, Any]]] = {}

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """message.stream."""
        key, params = f"key-{os.getpid()}-{next(numbers)}", {"message": message(text, timeout_ms)}
        with self._keyed(agent, key, params) as stream:
            yield stream
            self._sent[stream.task_id] = (key, params)

    def resume(self, agent: str, cut: Followed) -> AbstractContextManager[Followed]:
        """The same message under the same key, after the last id."""
        return self._keyed(agent, *self._sent[cut.task_id], cut.last_id)

    def _keyed(
        self, agent: str, key: str, params: dict[str, Any], last_id: str = ""
    ) -> AbstractContextManager[Followed]:
        return self.asked(agent, "message.stream", params, last_id, {"Idempotency-Key": key})


FOLLOWER = DottedFollower
