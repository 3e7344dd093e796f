"""A stub agent of A2A 0.3: JSON-RPC at its root, a card at both of the well-known paths."""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any

from dragoman.model.json import is_object
from tests.support.kind_tasks import KindTasks, Said, error
from tests.support.speaking import StubAgent, json_answer, serving

CARDS = ("/.well-known/agent-card.json", "/.well-known/agent.json")


@contextlib.contextmanager
def agent(name: str = "v03-stub") -> Generator[StubAgent]:
    """An agent that repeats what it is told, within the block."""
    stub = StubAgent("a2a-0.3")
    tasks = KindTasks(stub, words=_words)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET":
            return json_answer(stub.card) if path in CARDS else json_answer({"detail": "Not Found"}, 404)
        if headers.get("a2a-version", "0.3") != "0.3":
            return json_answer({"jsonrpc": "2.0", "id": body["id"], **error(-32603, "version")})
        if not is_object(body) or not is_object(body.get("params")):
            return json_answer({"jsonrpc": "2.0", "id": None, **error(-32600, "Invalid request")})
        return json_answer({"jsonrpc": "2.0", "id": body["id"], **_said(tasks, body["method"], body["params"])})

    with serving(stub, handle):
        stub.card = {
            "protocolVersion": "0.3.0",
            "name": name,
            "description": "Repeats what it is told",
            "url": f"{stub.url}/",
            "preferredTransport": "JSONRPC",
            "version": "1.0.0",
            "capabilities": {"streaming": False},
            "defaultInputModes": ["text/plain", "application/json"],
            "defaultOutputModes": ["text/plain", "application/json"],
            "skills": [{"id": "echo", "name": "Echo", "description": "Repeats", "tags": ["test"]}],
        }
        yield stub


def _said(tasks: KindTasks, method: str, params: Said) -> Said:
    match method:
        case "message/send" if params.get("message", {}).get("kind") == "message":
            return tasks.send(params)
        case "tasks/get" if "id" in params:
            return tasks.get(params["id"])
        case "tasks/cancel" if "id" in params:
            return tasks.cancel(params["id"])
        case "message/send" | "tasks/get" | "tasks/cancel":
            return error(-32602, "Invalid params")
        case _:
            return error(-32601, "Method not found")


def _words(text: str, task: Said) -> Said:
    return {
        "kind": "message",
        "messageId": f"status-of-{task['id']}",
        "role": "agent",
        "parts": [{"kind": "text", "text": text}],
        "contextId": task["contextId"],
        "taskId": task["id"],
    }
