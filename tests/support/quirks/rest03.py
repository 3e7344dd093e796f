"""A server of A2A 0.3 over HTTP+JSON alone: ProtoJSON bodies, plain errors, and bytes encoded once or twice.

It takes no member that is not in the protocol's own messages. A file that it is sent comes back beside its text.
"""

import contextlib
from base64 import b64decode, b64encode
from collections.abc import Generator, Mapping
from typing import Any, Final
from urllib.parse import unquote

from tests.support.quirks.words import AT, MISSING, A, C, Said, T, card_base, hello, is_array, is_object, sse
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "rest03"
REQUEST: Final = {"message", "configuration", "metadata"}
CONFIGURATION: Final = {"acceptedOutputModes", "pushNotification", "historyLength", "blocking"}
MESSAGE: Final = {"messageId", "contextId", "taskId", "role", "content", "metadata", "extensions"}
PART: Final = {"text", "file", "data", "metadata"}
FILE: Final = {"fileWithUri", "fileWithBytes", "mimeType", "name"}


class RestStub(StubAgent):
    """A stub that also keeps the files it was sent."""

    def __init__(self, *, twice: bool) -> None:
        super().__init__(NAME)
        self.twice = twice
        self.files: list[bytes] = []


@contextlib.contextmanager
def rest03(*, twice: bool = False) -> Generator[RestStub]:
    """The stub; `twice`: file bytes are the base64 of their base64, as Python's 0.3 SDKs have it."""
    stub = RestStub(twice=twice)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        path = unquote(path.partition("?")[0])
        if (method, path) in (("GET", "/.well-known/agent-card.json"), ("GET", "/v1/card")):
            return json_answer(stub.card)
        if method == "POST" and path in ("/v1/message:send", "/v1/message:stream"):
            return _sent(stub, body, stream=path.endswith(":stream"))
        if path.startswith("/v1/tasks/"):
            return _about_a_task(method, path.removeprefix("/v1/tasks/"))
        return MISSING

    with serving(stub, handle):
        stub.card = card_base(NAME, protocolVersion="0.3.0", url=stub.url, preferredTransport="HTTP+JSON")
        yield stub


def _sent(stub: RestStub, body: Any, *, stream: bool) -> Said:
    wrong = _wrong(body)
    if wrong:
        return json_answer({"message": wrong}, 422)
    files = [part["file"] for part in body["message"]["content"] if "fileWithBytes" in part.get("file", {})]
    for file in files:
        stub.files.append(b64decode(file["fileWithBytes"], validate=True))
    parts: list[dict[str, Any]] = [{"text": hello(NAME)}]
    parts += [{"file": {**file, "fileWithBytes": _again(stub, file["fileWithBytes"])}} for file in files]
    task = _task(parts, [{**body["message"], "taskId": T, "contextId": C}])
    if not stream:
        return json_answer({"task": task})
    ids = {"taskId": T, "contextId": C}
    return sse(
        [
            {"task": {**task, "artifacts": [], "status": {"state": "TASK_STATE_SUBMITTED", "timestamp": AT}}},
            {"artifactUpdate": {**ids, "artifact": task["artifacts"][0], "lastChunk": True}},
            {"statusUpdate": {**ids, "status": task["status"], "final": True}},
        ]
    )


def _about_a_task(method: str, rest: str) -> Said:
    task_id, _, verb = rest.rpartition(":") if rest.endswith((":cancel", ":subscribe")) else (rest, "", "")
    if task_id.partition("/")[0] != T:
        return json_answer({"message": f"Task not found: {task_id}"}, 404)
    if "/pushNotificationConfigs" in task_id:
        return json_answer({"message": "Push notifications are not supported"}, 501)
    if verb == "cancel":
        return json_answer({"message": "Task cannot be canceled: it is completed"}, 409)
    task = _task([{"text": hello(NAME)}], [])
    if verb == "subscribe":
        return sse([{"task": task}])
    return json_answer(task) if method == "GET" else MISSING


def _task(parts: list[dict[str, Any]], history: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "id": T,
        "contextId": C,
        "status": {"state": "TASK_STATE_COMPLETED", "timestamp": AT},
        "artifacts": [{"artifactId": A, "name": "answer", "parts": parts}],
        "history": history,
    }


def _again(stub: RestStub, encoded: str) -> str:
    return b64encode(encoded.encode()).decode() if stub.twice else encoded


def _wrong(body: Any) -> str:
    """What a protobuf parser would not take; empty where all is well."""
    message = body.get("message") if is_object(body) else None
    if not is_object(body) or not is_object(message):
        return "message: required"
    configuration: dict[str, Any] = body.get("configuration", {})
    content = message.get("content")
    if not is_array(content) or message.get("role") not in ("ROLE_USER", "ROLE_AGENT"):
        return "message: content and role are required"
    strange = set(body) - REQUEST | set(configuration) - CONFIGURATION | set(message) - MESSAGE
    for part in content:
        strange |= set(part) - PART | set(part.get("file", {})) - FILE
        if "data" in part and set(part["data"]) != {"data"}:
            strange.add("data")
    return f"no such field: {sorted(strange)}" if strange else ""
