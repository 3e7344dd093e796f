"""agentvault: the published server of that profile. A send is answered by an id alone; the rest is asked for.

Without the final slash it answers 307; params it cannot read break it.
"""

import contextlib
from collections.abc import Generator, Mapping
from typing import Any, Final

from tests.support.quirks.words import (
    AT,
    INTERNAL,
    MISSING,
    Said,
    T,
    error,
    hello,
    is_object,
    is_request,
    params_of,
    result,
    sse,
)
from tests.support.speaking import StubAgent, json_answer, serving

NAME: Final = "agentvault"
CARD: Final = "/agent-card.json"
ROLES: Final = ("user", "assistant", "system", "tool")
SAID: Final = {"role": "assistant", "parts": [{"type": "text", "content": hello(NAME)}]}


@contextlib.contextmanager
def agentvault() -> Generator[StubAgent]:
    """The stub; its JSON-RPC is at /a2a/."""
    stub = StubAgent(NAME)

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if (method, path) == ("GET", CARD):
            return json_answer(stub.card)
        if (method, path) == ("POST", "/a2a"):
            return 307, {"Location": f"{stub.url}/a2a/"}, b""
        if (method, path) != ("POST", "/a2a/"):
            return MISSING
        return _answer(body) if is_request(body) else error({"id": None}, -32600, "Invalid Request")

    with serving(stub, handle):
        stub.card = {
            "schemaVersion": "1.0",
            "humanReadableId": "stubs/agentvault",
            "agentVersion": "1.0.0",
            "name": NAME,
            "description": f"The stub {NAME}",
            "url": f"{stub.url.replace('127.0.0.1', 'localhost')}/a2a/",
            "provider": {"name": "Stubs"},
            "capabilities": {"a2aVersion": "0.2", "supportedMessageParts": ["text"]},
            "authSchemes": [{"scheme": "none"}],
            "skills": [{"id": "greet", "name": "Greet", "description": "Greets"}],
        }
        yield stub


def _answer(request: Any) -> Said:
    method, params = request["method"], params_of(request)
    if method == "tasks/send":
        if _wrong(params.get("message")):
            return INTERNAL
        known = params.get("id") in (None, T)
        return result(request, {"id": T}) if known else error(request, -32001, "Task not found")
    if method not in ("tasks/get", "tasks/cancel", "tasks/sendSubscribe"):
        return error(request, -32601, "Method not found")
    if not isinstance(params.get("id"), str):
        return INTERNAL
    if params["id"] != T:
        return error(request, -32001, "Task not found")
    if method == "tasks/cancel":
        return result(request, {"success": True})
    if method == "tasks/sendSubscribe":
        return _stream()
    user = {"role": "user", "parts": [{"type": "text", "content": "hi"}]}
    task = {"id": T, "state": "COMPLETED", "createdAt": AT, "updatedAt": AT, "messages": [user, SAID], "artifacts": []}
    return result(request, task)


def _wrong(message: Any) -> bool:
    if not is_object(message) or message.get("role") not in ROLES or not message.get("parts"):
        return True
    members = {"text": "content", "file": "url", "data": "content"}
    return any(members.get(part.get("type")) not in part for part in message["parts"])


def _stream() -> Said:
    told = (
        sse([{"taskId": T, "state": "WORKING", "timestamp": AT}], name="task_status"),
        sse([{"taskId": T, "message": SAID, "timestamp": AT}], name="task_message"),
        sse([{"taskId": T, "state": "COMPLETED", "timestamp": AT}], name="task_status"),
    )
    return 200, told[0][1], b"".join(body for _, _, body in told)
