"""Tells in dotted JSON-RPC."""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.telling import Answer, Teller, told_over_http
from tests.support.telling.kinds import answer

METHODS: Final = {
    "message.send": "send",
    "message.stream": "stream",
    "task.get": "get",
    "task.cancel": "cancel",
}


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        return teller.card if method == "GET" else answer(teller, METHODS, body)

    with told_over_http(teller, handle):
        teller.card = {
            "name": "Dotted teller",
            "description": "Tells",
            "url": teller.url,
            "version": "1.0.0",
            "provider": "Stubs",
            "skills": [{"id": "echo", "name": "Echo", "description": "Tells", "tags": ["test"]}],
            "capabilities": {"streaming": True, "pushNotifications": False, "longRunningTasks": True},
            "metadata": {},
        }
        yield teller
