"""Tells in the words of A2A 0.3."""

from contextlib import AbstractContextManager
from typing import Any, Final

from tests.support.telling import Teller
from tests.support.telling.kinds import kind_teller

METHODS: Final = {
    "message/send": "send",
    "message/stream": "stream",
    "tasks/resubscribe": "subscribe",
    "tasks/get": "get",
    "tasks/cancel": "cancel",
}


def agent() -> AbstractContextManager[Teller]:
    """The agent, within the block."""
    return kind_teller(METHODS, _card)


def _card(url: str) -> dict[str, Any]:
    return {
        "protocolVersion": "0.3.0",
        "name": "Teller 0.3",
        "description": "Tells",
        "url": f"{url}/",
        "preferredTransport": "JSONRPC",
        "version": "1.0.0",
        "capabilities": {"streaming": True},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "echo", "name": "Echo", "description": "Tells", "tags": ["test"]}],
    }
