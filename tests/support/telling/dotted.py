"""Tells in dotted JSON-RPC."""

from contextlib import AbstractContextManager
from typing import Any, Final

from tests.support.telling import Teller
from tests.support.telling.kinds import kind_teller

METHODS: Final = {
    "message.send": "send",
    "message.stream": "stream",
    "task.get": "get",
    "task.cancel": "cancel",
}


def agent() -> AbstractContextManager[Teller]:
    """The agent, within the block."""
    return kind_teller(METHODS, _card)


def _card(url: str) -> dict[str, Any]:
    return {
        "name": "Dotted teller",
        "description": "Tells",
        "url": url,
        "version": "1.0.0",
        "provider": "Stubs",
        "skills": [{"id": "echo", "name": "Echo", "description": "Tells", "tags": ["test"]}],
        "capabilities": {"streaming": True, "pushNotifications": False, "longRunningTasks": True},
        "metadata": {},
    }
