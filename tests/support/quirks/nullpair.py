"""The dotted dialect's own reference server, which does not speak its own method names.

Slash names, `result` and `error` both in every answer, times without a zone, `history` instead of `messages`; a request
that it cannot read, an integer id included, is an internal error under the id "unknown".
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.quirks.words import AT_NAIVE, MISSING, Said, hello, is_object, is_request, params_of
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "nullpair"
TASK: Final = "task-0a1b2c3d4e5f"
CARDS: Final = ("/.well-known/agent-card", "/agent-card")


@contextlib.contextmanager
def nullpair() -> Generator[StubAgent]:
    """The stub."""
    stub = StubAgent(NAME)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if method == "GET":
            return _page(stub, path)
        if path != "/":
            return MISSING
        if not is_request(body) or not isinstance(body["id"], str):
            return _said("unknown", None, {"code": -32603, "message": "Internal error: invalid request"})
        return _answer(body)

    with serving(stub, handle):
        stub.card = {
            "name": NAME,
            "description": f"The stub {NAME}",
            "url": stub.url,
            "version": "1.0.0",
            "provider": {"name": "Terminal Bench A2A Agent"},
            "skills": [
                {
                    "id": "greet",
                    "name": "Greet",
                    "description": "Greets",
                    "inputModes": ["text"],
                    "outputModes": ["text"],
                    "tags": ["greeting"],
                    "examples": [],
                }
            ],
            "capabilities": {"streaming": False, "pushNotifications": False, "longRunningTasks": True},
            "metadata": {"a2a_version": "1.0"},
        }
        yield stub


def _page(stub: StubAgent, path: str) -> Said:
    if path in CARDS:
        return json_answer(stub.card)
    if path == "/":
        return json_answer({"message": NAME, "status": "running", "protocol": "A2A", "agent_card_url": CARDS[0]})
    return json_answer({"status": "healthy", "agent": NAME}) if path == "/health" else MISSING


def _answer(request: Any) -> Said:
    method, params = request["method"], params_of(request)
    if method == "message/send":
        message = params.get("message")
        if not is_object(message) or not message.get("parts"):
            return _refused(request, -32602, "Invalid params: message is required")
        if any(part.get("kind") not in ("text", "file", "data") for part in message["parts"]):
            return _refused(request, -32602, "Invalid params: unknown part")
        return _said(request["id"], _task(message), None)
    if method in ("tasks/get", "tasks/cancel"):
        if params.get("id") != TASK:
            return _refused(request, -32001, "Task not found")
        if method == "tasks/cancel":
            return _refused(request, -32002, "Task cannot be canceled")
        return _said(request["id"], _task({"kind": "message", "role": "user", "parts": []}), None)
    return _refused(request, -32601, f"Method not found: {method}")


def _task(user: dict[str, Any]) -> dict[str, Any]:
    parts = [{"kind": "text", "text": hello(NAME)}]
    return {
        "id": TASK,
        "kind": "task",
        "contextId": "ctx-0a1b2c3d4e5f",
        "status": {"state": "completed", "timestamp": AT_NAIVE, "message": None},
        "artifacts": [{"artifactId": "artifact-0a1b2c3d", "name": "answer", "description": None, "parts": parts}],
        "history": [{**user, "timestamp": AT_NAIVE}],
        "createdAt": AT_NAIVE,
        "updatedAt": AT_NAIVE,
        "metadata": None,
    }


def _refused(request: Any, code: int, message: str) -> Said:
    return _said(request["id"], None, {"code": code, "message": message, "data": None})


def _said(request_id: str, value: Any, problem: Any) -> Said:
    return json_answer({"jsonrpc": "2.0", "id": request_id, "result": value, "error": problem})
