"""A stub agent of the directory's dialect: one JSON-RPC URL that knows a2a/task and, as its record says, a2a/cancel.

It cannot ask back: the dialect has no word for that. To `ask` it says that it lacks input, as an error.
"""

import contextlib
import threading
from collections import defaultdict
from collections.abc import Generator, Mapping
from typing import Any

from dragoman.model.json import is_object
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving, wish_of


@contextlib.contextmanager
def agent(name: str = "directory-stub") -> Generator[StubAgent]:
    """An agent that repeats its input, within the block."""
    stub = StubAgent("directory")
    stopped: defaultdict[str, threading.Event] = defaultdict(threading.Event)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        if method != "POST" or not is_object(body):
            return json_answer({"error": "Unknown endpoint"}, 404)
        return json_answer({"jsonrpc": "2.0", "id": body.get("id"), **_said(stub, stopped, body)})

    with serving(stub, handle):
        stub.card = {
            "agentId": name,
            "name": f"Agent {name}",
            "capabilities": ["echo"],
            "endpoint": stub.url,
            "methods": ["a2a/task", "a2a/cancel"],
        }
        yield stub


def _said(stub: StubAgent, stopped: dict[str, threading.Event], body: dict[str, Any]) -> dict[str, Any]:
    params: dict[str, Any] = body.get("params") or {}
    if body.get("method") == "a2a/cancel":
        stub.cancelled.set()
        stopped[params["taskId"]].set()
        return {"result": {"taskId": params.get("taskId"), "status": "cancelled"}}
    if body.get("method") != "a2a/task":
        return {"error": {"code": -32601, "message": "Method not found"}}
    given: dict[str, Any] = params.get("input") or {}
    stub.arrived.set()
    match wish_of(given.get("text")):
        case "fail":
            return _error(FAILURE, "broken")
        case "reject":
            return _error("not this", "rejected")
        case "ask":
            return _error(QUESTION, "input_required")
        case "slow":
            ended = stopped[params["taskId"]]
            while not (ended.is_set() or stub.release.is_set()):
                ended.wait(0.05)
            if ended.is_set():
                return {"result": {"taskId": params.get("taskId"), "status": "cancelled", "output": {}}}
            return _completed(params, given)
        case _:
            return _completed(params, given)


def _completed(params: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    return {"result": {"taskId": params.get("taskId"), "status": "completed", "output": output}}


def _error(message: str, reason: str) -> dict[str, Any]:
    return {"error": {"code": -32001, "message": message, "data": {"reason": reason}}}
