"""Tells in the words of A2A 0.3."""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.telling import Answer, Teller, told_over_http
from tests.support.telling.kinds import answer

METHODS: Final = {
    "message/send": "send",
    "message/stream": "stream",
    "tasks/resubscribe": "subscribe",
    "tasks/get": "get",
    "tasks/cancel": "cancel",
}


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        return teller.card if method == "GET" else answer(teller, METHODS, body)

    with told_over_http(teller, handle):
        teller.card = {
            "protocolVersion": "0.3.0",
            "name": "Teller 0.3",
            "description": "Tells",
            "url": f"{teller.url}/",
            "preferredTransport": "JSONRPC",
            "version": "1.0.0",
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "echo", "name": "Echo", "description": "Tells", "tags": ["test"]}],
        }
        yield teller
