"""A stub agent of A2A 1.0, as strict as the published SDK's: PascalCase, the version header, both framings.

JSON-RPC is at `/`, HTTP with paths below it; the card lists them in the order the test wants. A tenant in the path is
taken off and remembered with the request.
"""

import base64
import contextlib
import itertools
import threading
from collections.abc import Generator, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from dragoman.model.json import is_object
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving, wish_of

Reply = tuple[int, Mapping[str, str], bytes]
ERRORS: Mapping[int, tuple[str, int, str]] = {
    -32001: ("TASK_NOT_FOUND", 404, "NOT_FOUND"),
    -32002: ("TASK_NOT_CANCELABLE", 400, "FAILED_PRECONDITION"),
    -32004: ("UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION"),
    -32009: ("VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION"),
    -32601: ("METHOD_NOT_FOUND", 404, "UNIMPLEMENTED"),
    -32602: ("INVALID_PARAMS", 400, "INVALID_ARGUMENT"),
}


class Refused(Exception):
    """An error of the protocol."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def details(self) -> list[dict[str, Any]]:
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        return [{"@type": kind, "reason": ERRORS[self.code][0], "domain": "a2a-protocol.org"}]


class Work:
    """The agent's tasks, and what becomes of each."""

    def __init__(self, stub: StubAgent) -> None:
        self._stub = stub
        self._numbers = itertools.count(1)
        self._ended: dict[str, threading.Event] = {}
        self.tasks: dict[str, dict[str, Any]] = {}

    def send(self, params: dict[str, Any]) -> dict[str, Any]:
        """SendMessage."""
        message = params["message"]
        if not message.get("parts"):
            raise Refused(-32602, "message.parts: required")
        self._stub.arrived.set()
        if "taskId" in message:
            return {"task": self._continued(message)}
        number = next(self._numbers)
        task: dict[str, Any] = {
            "id": f"remote:{number}",
            "contextId": message.get("contextId") or f"remote-context-{number}",
            "status": {"state": "TASK_STATE_WORKING"},
            "history": [message],
        }
        self.tasks[task["id"]] = task
        self._begin(task, message["parts"], wait=not params.get("configuration", {}).get("returnImmediately"))
        return {"task": task}

    def known(self, task_id: str) -> dict[str, Any]:
        """GetTask."""
        if task_id not in self.tasks:
            raise Refused(-32001, f"There is no task {task_id}.")
        return self.tasks[task_id]

    def cancel(self, task_id: str) -> dict[str, Any]:
        """CancelTask."""
        task = self.known(task_id)
        if task["status"]["state"] not in ("TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED"):
            raise Refused(-32002, "The task is finished.")
        task["status"] = {"state": "TASK_STATE_CANCELED"}
        self._stub.cancelled.set()
        if task_id in self._ended:
            self._ended[task_id].set()
        return task

    def _continued(self, message: dict[str, Any]) -> dict[str, Any]:
        task = self.known(message["taskId"])
        if task["status"]["state"] != "TASK_STATE_INPUT_REQUIRED":
            raise Refused(-32004, "The task takes no more messages.")
        task["history"].append(message)
        self._complete(task, message["parts"])
        return task

    def _begin(self, task: dict[str, Any], parts: list[dict[str, Any]], *, wait: bool) -> None:
        wish = wish_of("".join(_text(part) for part in parts))
        if wish == "fail":
            task["status"] = {"state": "TASK_STATE_FAILED", "message": _words(task, FAILURE)}
        elif wish == "reject":
            task["status"] = {"state": "TASK_STATE_REJECTED", "message": _words(task, FAILURE)}
        elif wish == "ask":
            task["status"] = {"state": "TASK_STATE_INPUT_REQUIRED", "message": _words(task, QUESTION)}
        elif wish == "slow":
            ended = self._ended[task["id"]] = threading.Event()
            threading.Thread(target=self._end_later, args=(task, parts, ended), daemon=True).start()
            if wait:
                ended.wait(60)
        else:
            self._complete(task, parts)

    def _end_later(self, task: dict[str, Any], parts: list[dict[str, Any]], ended: threading.Event) -> None:
        self._stub.release.wait(60)
        if task["status"]["state"] == "TASK_STATE_WORKING":
            self._complete(task, parts)
        ended.set()

    def _complete(self, task: dict[str, Any], parts: list[dict[str, Any]]) -> None:
        for part in parts:
            if "raw" in part:
                base64.b64decode(part["raw"], validate=True)
        task["artifacts"] = [{"artifactId": "echo", "name": "echo", "parts": parts}]
        task["status"] = {"state": "TASK_STATE_COMPLETED", "timestamp": "2026-01-12T10:00:00.000Z"}


@contextlib.contextmanager
def agent(name: str = "Echo 1.0", *bindings: str, tenant: str = "") -> Generator[StubAgent]:
    """The agent, running; `bindings` are those its card lists, JSON-RPC alone where none is named."""
    stub = StubAgent("a2a-1.0")
    work = Work(stub)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Reply:
        if path.endswith("/.well-known/agent-card.json"):
            return json_answer(stub.card)
        if method == "POST" and urlsplit(path).path == "/":
            return _rpc(work, headers, body)
        return _rest(work, method, path, headers, body)

    with serving(stub, handle):
        stub.card = card_of(name, stub.url, bindings or ("JSONRPC",), tenant)
        yield stub


def card_of(name: str, url: str, bindings: tuple[str, ...], tenant: str = "") -> dict[str, Any]:
    """The card of such an agent."""
    interfaces = [
        {"url": f"{url}/", "protocolBinding": binding, "protocolVersion": "1.0"}
        | ({"tenant": tenant} if tenant else {})
        for binding in bindings
    ]
    return {
        "name": name,
        "description": "Gives back what it is told.",
        "version": "1.0.0",
        "supportedInterfaces": interfaces,
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [{"id": "echo", "name": "Echo", "description": "Says it again.", "tags": ["test"]}],
    }


def _carried_out(work: Work, method: str, params: dict[str, Any]) -> dict[str, Any]:
    match method:
        case "SendMessage":
            return work.send(params)
        case "GetTask":
            return work.known(params["id"])
        case "CancelTask":
            return work.cancel(params["id"])
        case _:
            raise Refused(-32601, f"There is no method {method}.")


def _rpc(work: Work, headers: Mapping[str, str], body: Any) -> Reply:
    frame = {"jsonrpc": "2.0", "id": body["id"]}
    try:
        if headers.get("a2a-version") != "1.0":
            raise Refused(-32009, "A2A version '0.3' is not supported by this handler. Expected version '1.0'.")
        return json_answer({**frame, "result": _carried_out(work, body["method"], body.get("params") or {})})
    except Refused as refused:
        error = {"code": refused.code, "message": refused.message, "data": refused.details}
        return json_answer({**frame, "error": error})


def _rest(work: Work, method: str, path: str, headers: Mapping[str, str], body: Any) -> Reply:
    try:
        if headers.get("a2a-version") != "1.0":
            raise Refused(-32009, "A2A version '0.3' is not supported by this handler. Expected version '1.0'.")
        name, params = _meant(method, urlsplit(path).path, body)
        return json_answer(_carried_out(work, name, params))
    except Refused as refused:
        _, status, word = ERRORS[refused.code]
        error = {"code": status, "status": word, "message": refused.message, "details": refused.details}
        return json_answer({"error": error}, status)


def _meant(method: str, path: str, body: Any) -> tuple[str, dict[str, Any]]:
    """Which operation a path means; whatever stands before its last part is the tenant."""
    segments = path.strip("/").split("/")
    if method == "POST" and segments[-1] == "message:send":
        return "SendMessage", body
    if "tasks" in segments[-2:-1]:
        if method == "GET":
            return "GetTask", {"id": unquote(segments[-1])}
        task, _, verb = segments[-1].rpartition(":")
        if verb == "cancel":
            return "CancelTask", {"id": unquote(task)}
    raise Refused(-32601, f"There is no {method} {path}.")


def _text(part: dict[str, Any]) -> str:
    """The words of a part; a caller whose dialect has objects alone says them in one."""
    data = part.get("data")
    held: dict[str, Any] = data if is_object(data) else part
    text = held.get("text", "")
    return text if isinstance(text, str) else ""


def _words(task: dict[str, Any], text: str) -> dict[str, Any]:
    return {
        "messageId": f"{task['id']}-said",
        "role": "ROLE_AGENT",
        "taskId": task["id"],
        "contextId": task["contextId"],
        "parts": [{"text": text}],
    }
