"""A stub agent of AgentVault: takes a task, answers with its id alone, and shows it when asked.

Like those of the published server SDK it answers in a message of role assistant, and redirects from `/a2a` to `/a2a/`.
"""

import contextlib
import itertools
import threading
from collections.abc import Generator, Mapping
from typing import Any, Final

from dragoman.model.json import is_array, is_object
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving, wish_of

AT: Final = "2026-01-12T10:00:00.000000+00:00"
FINISHED: Final = ("COMPLETED", "FAILED", "CANCELED")


_stubs = itertools.count(1)


@contextlib.contextmanager
def agent(name: str = "") -> Generator[StubAgent]:
    """An agent that repeats what it is sent, within the block; without a name it has one that no other has."""
    name = name or f"agentvault-stub-{next(_stubs)}"
    stub = StubAgent("agentvault")
    tasks = Tasks(stub)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method == "GET" and path == "/agent-card.json":
            return json_answer(stub.card)
        if method == "POST" and path == "/a2a":
            return 307, {"Location": "/a2a/"}, b""
        if method != "POST" or path != "/a2a/" or not is_object(body):
            return json_answer({"detail": "Not Found"}, 404)
        return json_answer({"jsonrpc": "2.0", "id": body.get("id"), **tasks.answer(body)})

    with serving(stub, handle):
        stub.card = {
            "schemaVersion": "1.0",
            "humanReadableId": f"stubs/{name}",
            "agentVersion": "1.0.0",
            "name": f"Agent {name}",
            "description": "Repeats what it is sent",
            "url": f"{stub.url}/a2a/",
            "provider": {"name": "Stubs"},
            "capabilities": {"a2aVersion": "0.2", "supportedMessageParts": ["text", "file", "data"]},
            "authSchemes": [{"scheme": "none"}],
            "skills": [{"id": "echo", "name": "Echo", "description": "Repeats its input"}],
        }
        yield stub


class Tasks:
    """The tasks of one agent, and what it says of them."""

    def __init__(self, stub: StubAgent) -> None:
        self._stub = stub
        self._tasks: dict[str, dict[str, Any]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        """The result or error of one request."""
        given = body.get("params")
        params: dict[str, Any] = given if is_object(given) else {}
        if body.get("method") == "tasks/send":
            with self._lock:
                named = self._send(params)
            self._stub.release.wait(self._stub.names_after_s)
            return named
        with self._lock:
            match body.get("method"):
                case "tasks/get":
                    return self._get(params)
                case "tasks/cancel":
                    return self._cancel(params)
                case _:
                    return _error(-32601, "Method not found")

    def _send(self, params: dict[str, Any]) -> dict[str, Any]:
        message = params.get("message")
        if not is_object(message) or not is_array(message.get("parts")) or not message["parts"]:
            return _error(-32602, "Invalid parameters: message")
        task_id = params.get("id")
        if task_id is None:
            task_id = f"task-{next(self._numbers)}"
            self._tasks[task_id] = {"id": task_id, "state": "SUBMITTED", "createdAt": AT, "updatedAt": AT}
            self._tasks[task_id] |= {"messages": [], "artifacts": [], "metadata": None}
        task = self._tasks.get(task_id)
        if task is None:
            return _error(-32001, f"Task not found: {task_id}")
        continued = bool(task["messages"])
        task["messages"].append(message)
        self._stub.arrived.set()
        match "echo" if continued else wish_of(_words(message["parts"][0])):
            case "fail":
                _say(task, "FAILED", _text(FAILURE))
            case "reject":
                _say(task, "FAILED", _text("not this"))
            case "ask":
                _say(task, "INPUT_REQUIRED", _text(QUESTION))
            case "slow":
                task["state"] = "WORKING"
            case _:
                _say(task, "COMPLETED", message["parts"])
        return {"result": {"id": task_id}}

    def _get(self, params: dict[str, Any]) -> dict[str, Any]:
        task = self._tasks.get(str(params.get("id")))
        if task is None:
            return _error(-32001, f"Task not found: {params.get('id')}")
        if task["state"] == "WORKING" and self._stub.release.is_set():
            _say(task, "COMPLETED", task["messages"][-1]["parts"])
        return {"result": task}

    def _cancel(self, params: dict[str, Any]) -> dict[str, Any]:
        task = self._tasks.get(str(params.get("id")))
        if task is None:
            return _error(-32001, f"Task not found: {params.get('id')}")
        if task["state"] in FINISHED:
            return {"result": {"success": False, "message": None}}
        task["state"] = "CANCELED"
        self._stub.cancelled.set()
        return {"result": {"success": True, "message": None}}


def _say(task: dict[str, Any], state: str, parts: list[dict[str, Any]]) -> None:
    task["state"] = state
    task["messages"].append({"role": "assistant", "parts": parts, "metadata": None})


def _words(part: dict[str, Any]) -> str | None:
    """A text, or the one that an input object holds."""
    content = part.get("content")
    said = content.get("text") if is_object(content) else content
    return said if isinstance(said, str) else None


def _text(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}]


def _error(code: int, message: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": message}}
