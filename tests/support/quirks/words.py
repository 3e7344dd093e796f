"""What the quirk stubs share: fixed ids and times, JSON-RPC frames, event streams, and what every card has."""

import json
from collections.abc import Mapping
from typing import Any, Final, TypeGuard

from tests.support.speaking import json_answer

Said = tuple[int, Mapping[str, str], bytes]

T: Final = "7c9e6679-7425-40de-944b-e07fc1f90ae7"  # the task
C: Final = "9b2d5b1e-3f53-4a7f-8c58-0d7c4ad0a2aa"  # its context
M: Final = "2f1b8a44-51a5-4d39-9a4f-6e0c6f7d1d11"  # the agent's message
A: Final = "5d0c3c2e-7c86-4f0c-8a2f-0c6a1f0b9a55"  # the artifact
AT: Final = "2026-11-15T18:44:47.178Z"
AT_OFFSET: Final = "2026-11-15T18:44:47.178191+00:00"
AT_NAIVE: Final = "2026-11-15T18:44:47.178191"
INTERNAL: Final[Said] = (500, {"Content-Type": "text/plain; charset=utf-8"}, b"Internal Server Error")
MISSING: Final[Said] = (404, {}, b'{"detail":"Not Found"}')


def hello(name: str) -> str:
    """The text a stub answers with."""
    return f"hello from {name}"


def skill(name: str, **more: Any) -> dict[str, Any]:
    """A skill as every framework writes one, save where `more` says otherwise; None leaves a member out."""
    full = {"id": "greet", "name": "Greet", "description": f"Greets as {name}", "tags": ["greeting"], **more}
    return {member: value for member, value in full.items() if value is not None}


def card_base(name: str, **more: Any) -> dict[str, Any]:
    """What the official cards of both versions have in common; None leaves a member out."""
    full = {
        "name": name,
        "description": f"The stub {name}",
        "version": "1.0.0",
        "capabilities": {"streaming": True, "pushNotifications": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [skill(name)],
        **more,
    }
    return {member: value for member, value in full.items() if value is not None}


def result(request: Any, value: Any) -> Said:
    """A JSON-RPC answer; its members come in no particular order."""
    return json_answer({"result": value, "id": request["id"], "jsonrpc": "2.0"})


def error(request: Any, code: int, message: str, **more: Any) -> Said:
    """A JSON-RPC error; `data` only where it is given."""
    return json_answer({"jsonrpc": "2.0", "error": {"code": code, "message": message, **more}, "id": request["id"]})


def error_info(reason: str) -> list[dict[str, Any]]:
    """The details of an official 1.0 error."""
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    return [{"@type": kind, "reason": reason, "domain": "a2a-protocol.org", "metadata": {}}]


def events(request: Any, values: list[Any], *, name: str = "") -> Said:
    """A stream of JSON-RPC frames, with or without event names."""
    return sse([{"jsonrpc": "2.0", "id": request["id"], "result": value} for value in values], name=name)


def sse(values: list[Any], *, name: str = "") -> Said:
    """A stream of events."""
    begin = f"event: {name}\n" if name else ""
    body = "".join(f"{begin}data: {json.dumps(value)}\n\n" for value in values)
    return 200, {"Content-Type": "text/event-stream", "Cache-Control": "no-cache"}, body.encode()


def is_request(body: Any) -> bool:
    """Whether a body is a JSON-RPC request at all."""
    return is_object(body) and isinstance(body.get("method"), str) and "id" in body


def params_of(request: Any) -> dict[str, Any]:
    """The params of a request, empty where they are none."""
    params = request.get("params")
    return params if is_object(params) else {}


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Any) -> TypeGuard[list[Any]]:
    """Whether a JSON value is an array that has something in it."""
    return isinstance(value, list) and value != []
