"""python-a2a: an A2A of before 0.2 whose card claims 0.3.0. The method is a path; its JSON-RPC URL breaks on all.

It reads `type` parts alone: a part with a `kind` is empty text to it. Its answer has the caller's own message beside
the status, artifacts without ids, and times without a zone.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.quirks.words import AT_NAIVE, Said, card_base, hello, is_array, is_object
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "pathmethod"
CARDS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json", "/agent.json", "/a2a/agent.json")
BROKEN: Final = {"parts": [{"data": {"error": "Error processing request: 'content'"}}], "role": "agent"}
NOT_ALLOWED: Final[Said] = (
    405,
    {"Content-Type": "text/html; charset=utf-8"},
    b"<!doctype html>\n<html lang=en>\n<title>405 Method Not Allowed</title>\n<h1>Method Not Allowed</h1>\n",
)


@contextlib.contextmanager
def pathmethod() -> Generator[StubAgent]:
    """The stub."""
    stub = StubAgent(NAME)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if method == "GET" and path in CARDS:
            return json_answer(stub.card)
        if method == "POST" and path.rstrip("/") in ("", "/a2a"):
            return json_answer(BROKEN, 500)
        if (method, path) == ("POST", "/tasks/send"):
            return _answer(body)
        return NOT_ALLOWED

    with serving(stub, handle):
        stub.card = card_base(NAME, protocolVersion="0.3.0", url=stub.url, preferredTransport="JSONRPC")
        yield stub


def _answer(body: Any) -> Said:
    request = body if is_object(body) else {}
    params = request.get("params", request)
    message = params.get("message")
    parts = message.get("parts") if is_object(message) else None
    heard = "".join(part.get("text", "") for part in parts if part.get("type") == "text") if is_array(parts) else ""
    answer = hello(NAME) if heard else ""
    task = {
        "id": params.get("id", "0"),
        "sessionId": params.get("sessionId", "0"),
        "status": {"state": "completed", "timestamp": AT_NAIVE},
        "artifacts": [{"parts": [{"type": "text", "text": answer}]}],
        "message": message,
    }
    return json_answer({"jsonrpc": "2.0", "id": request.get("id", 1), "result": task})
