"""The work of a stub agent of A2A 0.3 or dotted: its tasks, as both dialects show them."""

import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.kind_parts import text_of
from tests.support.speaking import FAILURE, QUESTION, StubAgent, wish_of

AT = "2026-01-12T10:00:00Z"
OPEN = ("working", "input-required")
Said = dict[str, Any]


class KindTasks:
    """The tasks of one agent. `words`: how a status says something, a message in 0.3 and a text in dotted."""

    def __init__(self, stub: StubAgent, *, words: Callable[[str, Said], Any], at: str = AT) -> None:
        self._stub = stub
        self._words = words
        self._at = at
        self._numbers = itertools.count(1)
        self._tasks: dict[str, Said] = {}

    def send(self, params: Mapping[str, Any]) -> Said:
        """Take a message, and what came of it; slow work is only begun."""
        message: Said = params["message"]
        self._stub.arrived.set()
        known = message.get("taskId")
        if known is not None:
            if known not in self._tasks:
                return error(-32001, "Task not found")
            task = self._tasks[known]
            if task["status"]["state"] not in OPEN:
                return error(-32004, "Task is finished")
            task["history"].append(message)
            return self._finish(task, "completed", message["parts"])
        task = self._new(message)
        match wish_of(text_of(message["parts"])):
            case "fail":
                return self._finish(task, "failed", say=FAILURE)
            case "reject":
                return self._finish(task, "rejected", say="not this")
            case "ask":
                return self._finish(task, "input-required", say=QUESTION)
            case "slow":
                return {"result": task}
            case _:
                return self._finish(task, "completed", message["parts"])

    def get(self, task_id: str) -> Said:
        """A task; slow work ends when it is let go."""
        task = self._tasks.get(task_id)
        if task is None:
            return error(-32001, "Task not found")
        if task["status"]["state"] == "working" and self._stub.release.is_set():
            return self._finish(task, "completed", task["history"][-1]["parts"])
        return {"result": task}

    def cancel(self, task_id: str) -> Said:
        """Stop a task."""
        task = self._tasks.get(task_id)
        if task is None:
            return error(-32001, "Task not found")
        if task["status"]["state"] not in OPEN:
            return error(-32002, "Task cannot be canceled")
        self._stub.cancelled.set()
        return self._finish(task, "canceled")

    def _new(self, message: Said) -> Said:
        number = next(self._numbers)
        task: Said = {
            "kind": "task",
            "id": f"remote-{number}",
            "contextId": message.get("contextId") or f"remote-context-{number}",
            "status": {"state": "working", "timestamp": self._at},
            "artifacts": [],
            "history": [message],
        }
        self._tasks[task["id"]] = task
        return task

    def _finish(self, task: Said, state: str, parts: list[Said] | None = None, say: str | None = None) -> Said:
        task["status"] = {"state": state, "timestamp": self._at}
        if say is not None:
            task["status"]["message"] = self._words(say, task)
        if parts is not None:
            task["artifacts"] = [{"artifactId": "artifact-1", "name": "echo", "parts": parts}]
        return {"result": task}


def error(code: int, message: str) -> Said:
    """A refusal."""
    return {"error": {"code": code, "message": message}}
