"""fasta2a: both families of methods and neither's shapes; a send is never done, whatever was asked.

Wrappers under 0.3 names, states in the method's own spelling, no kinds, times without a zone; the task is complete when
it is looked at a second time. What it does not know, it answers as a broken server.
"""

import contextlib
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final

from tests.support.quirks.words import (
    AT_NAIVE,
    INTERNAL,
    MISSING,
    A,
    C,
    M,
    Said,
    T,
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

NAME: Final = "hybrid"
SENDS: Final = ("SendMessage", "message/send")
STREAMS: Final = ("SendStreamingMessage", "message/stream")
GETS: Final = ("GetTask", "tasks/get")


@contextlib.contextmanager
def hybrid() -> Generator[StubAgent]:
    """The stub."""
    stub = StubAgent(NAME)
    looks: list[str] = []  # how often the task was looked at since it was sent

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if (method, path) == ("GET", "/.well-known/agent-card.json"):
            return json_answer(stub.card)
        if (method, path) != ("POST", "/"):
            return MISSING
        return _answer(body, looks) if is_request(body) else INTERNAL

    with serving(stub, handle):
        interface = {"url": stub.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        stub.card = card_base(NAME, supportedInterfaces=[interface], skills=[])
        yield stub


def _answer(request: Any, looks: list[str]) -> Said:
    method, params = request["method"], params_of(request)
    say = str.lower if "/" in method else "TASK_STATE_{}".format
    user = params.get("message")
    if method in GETS and isinstance(params.get("id"), str):
        if params["id"] != T:
            return error(request, -32001, "Task not found")
        looks.append(method)
        return result(request, _task(say("WORKING")) if len(looks) < 2 else _done(say))
    if method not in SENDS + STREAMS or not is_object(user) or not user.get("parts") or "role" not in user:
        return INTERNAL
    looks.clear()
    if method in STREAMS:
        return events(request, _stream(say, user))
    return result(request, {"task": _task(say("SUBMITTED"), history=[{**user, "taskId": T, "contextId": C}])})


def _task(state: str, **more: Any) -> dict[str, Any]:
    return {"id": T, "contextId": C, "status": {"state": state, "timestamp": AT_NAIVE}, **more}


def _done(say: Callable[[str], str]) -> dict[str, Any]:
    role = say("AGENT") if say is str.lower else "ROLE_AGENT"
    said = {"role": role, "parts": [{"text": hello(NAME)}], "messageId": M, "taskId": T, "contextId": C}
    artifact = {"artifactId": A, "name": "result", "parts": [{"text": hello(NAME)}]}
    return _task(say("COMPLETED"), artifacts=[artifact], history=[said])


def _stream(say: Callable[[str], str], user: dict[str, Any]) -> list[dict[str, Any]]:
    ids = {"taskId": T, "contextId": C}

    def chunk(text: str, **more: Any) -> dict[str, Any]:
        artifact = {"artifactId": A, "parts": [{"text": text}], **more.pop("about", {})}
        return {"artifactUpdate": {**ids, "artifact": artifact, **more}}

    return [
        {"task": _task(say("SUBMITTED"), history=[{**user, **ids}])},
        {"statusUpdate": {**ids, "status": {"state": say("WORKING")}}},
        *(chunk(text, append=True, lastChunk=False) for text in ("hello", " from", f" {NAME}")),
        chunk(hello(NAME), append=False, lastChunk=True, about={"name": "result"}),
        {"statusUpdate": {**ids, "status": {"state": say("COMPLETED"), "timestamp": AT_NAIVE}}},
    ]
