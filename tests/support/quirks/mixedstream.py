"""langgraph: one agent of several below a path, with a task id that has a colon in it.

Its objects are 1.0's and carry 0.3's kinds; its 1.0 streams turn to 0.3 shapes after the first event, with texts that
repeat all that was said before. It refuses requests whose Accept is not to its liking and contexts that are no UUID,
and shows its card only below the agent's own path, or to those who name the agent in the query.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final
from uuid import UUID

from tests.support.quirks.words import (
    AT_OFFSET,
    MISSING,
    A,
    C,
    M,
    Said,
    card_base,
    error,
    events,
    hello,
    is_object,
    is_request,
    params_of,
    result,
)
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "mixedstream"
AGENT: Final = "fe096781-5601-53d2-b2f6-0d3403f7e9ca"
TASK: Final = "1f0b7a3c-0000-6000-8000-000000000001:1f0b7a3c-0000-6000-8000-000000000002"
CARD: Final = "/.well-known/agent-card.json"
PLACE: Final = f"/a2a/{AGENT}"
NO_AGENT: Final = {"error": {"code": -32602, "message": "Missing required query parameter: assistant_id"}}
IN_10: Final = {"SendMessage": "send", "SendStreamingMessage": "stream", "GetTask": "get", "CancelTask": "cancel"}
IN_03: Final = {"message/send": "send", "message/stream": "stream", "tasks/get": "get", "tasks/cancel": "cancel"}


@contextlib.contextmanager
def mixedstream() -> Generator[StubAgent]:
    """The stub; its url is that of the one agent it has."""
    stub = StubAgent(NAME)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if method == "GET":
            if path in (f"{PLACE}{CARD}", f"{CARD}?assistant_id={AGENT}"):
                return json_answer(stub.card)
            return json_answer(NO_AGENT, 400) if path == CARD else MISSING
        if path.rstrip("/") != PLACE or not is_request(body):
            return MISSING
        return _answer(body, headers.get("accept", ""))

    with serving(stub, handle):
        stub.url += PLACE
        stub.card = card_base(
            NAME,
            protocolVersion="0.3.0",
            url=stub.url,
            preferredTransport="JSONRPC",
            supportedInterfaces=[
                {"url": stub.url, "protocolBinding": "JSONRPC", "protocolVersion": version}
                for version in ("1.0", "0.3")
            ],
        )
        yield stub


def _answer(request: Any, accept: str) -> Said:
    method, params = request["method"], params_of(request)
    verb = IN_10.get(method) or IN_03.get(method)
    wanted = "text/event-stream" if verb == "stream" else "application/json"
    if wanted not in accept:
        return json_answer({"error": f"Accept header must include {wanted}"}, 400)
    if verb is None:
        return error(request, -32601, f"Method not found: {method}")
    names = _Names(official=method in IN_10)
    if verb in ("get", "cancel"):
        if params.get("id") != TASK:
            return error(request, -32001, "Task not found")
        return result(request, names.task("completed")) if verb == "get" else error(request, -32004, "Unsupported")
    message = params.get("message")
    if not is_object(message) or not message.get("parts"):
        return error(request, -32602, "Invalid params: message is required")
    if not _is_uuid(message.get("contextId", C)):
        return error(request, -32602, "Failed to create run: Invalid thread ID")
    if verb == "stream":
        return events(request, _stream(names), name="message")
    return result(request, {"task": names.task("completed")} if method in IN_10 else names.task("completed"))


def _is_uuid(value: Any) -> bool:
    try:
        UUID(value)
    except ValueError:
        return False
    return True


class _Names:
    """The spelling of states and roles; the kinds are there in both."""

    def __init__(self, *, official: bool) -> None:
        self.official = official

    def state(self, state: str) -> str:
        return f"TASK_STATE_{state.upper()}" if self.official else state

    def message(self, text: str) -> dict[str, Any]:
        role = "ROLE_AGENT" if self.official else "agent"
        parts = [{"kind": "text", "text": text}]
        return {"kind": "message", "messageId": M, "role": role, "parts": parts, "taskId": TASK, "contextId": C}

    def task(self, state: str) -> dict[str, Any]:
        done = state == "completed"
        artifact = {"artifactId": A, "name": "Assistant Response", "parts": [{"kind": "text", "text": hello(NAME)}]}
        return {
            "kind": "task",
            "id": TASK,
            "contextId": C,
            "status": {"state": self.state(state), "timestamp": AT_OFFSET},
            **({"artifacts": [artifact], "history": [self.message(hello(NAME))]} if done else {}),
        }


def _stream(names: _Names) -> list[dict[str, Any]]:
    ids = {"taskId": TASK, "contextId": C}
    text = hello(NAME)
    ends = [index for index in range(1, len(text) + 1) if index == len(text) or " " in text[index - 1 : index + 1]]
    said = [
        {
            "kind": "status-update",
            **ids,
            "status": {"state": names.state("working"), "message": names.message(text[:end]), "timestamp": AT_OFFSET},
            "final": False,
        }
        for end in ends
    ]
    artifact = {"artifactId": A, "name": "Assistant Response", "parts": [{"kind": "text", "text": text}]}
    ended = {"state": names.state("completed"), "timestamp": AT_OFFSET}
    first = names.task("submitted")
    return [
        {"task": first} if names.official else first,
        *said,
        {"kind": "artifact-update", **ids, "artifact": artifact, "lastChunk": True},
        {"kind": "status-update", **ids, "status": ended, "final": True},
    ]
