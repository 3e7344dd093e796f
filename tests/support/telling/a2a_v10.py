"""Tells in the words of A2A 1.0, over JSON-RPC."""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from tests.support.telling import Answer, Teller, Work, event, told_over_http, wish_in


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        if method == "GET":
            return teller.card
        assert headers["a2a-version"] == "1.0"
        frame, params = {"jsonrpc": "2.0", "id": body["id"]}, body["params"]
        match body["method"]:
            case "SendMessage":
                work = teller.begin(wish_in(params["message"]))
                if not params.get("configuration", {}).get("returnImmediately"):
                    work.outcome()
                return {**frame, "result": {"task": _task(work)}}
            case "SendStreamingMessage":
                return _events(teller.begin(wish_in(params["message"])), frame)
            case "SubscribeToTask":
                return _events(teller.works[params["id"]], frame)
            case "GetTask":
                return {**frame, "result": _task(teller.works[params["id"]])}
            case "CancelTask":
                teller.works[params["id"]].cancel()
                return {**frame, "result": _task(teller.works[params["id"]])}
            case _:
                return {**frame, "error": {"code": -32601, "message": "no such method"}}

    with told_over_http(teller, handle):
        teller.card = {
            "name": "Teller 1.0",
            "description": "Tells",
            "version": "1.0.0",
            "supportedInterfaces": [{"url": f"{teller.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {"streaming": True},
            "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"],
            "skills": [{"id": "echo", "name": "Echo", "description": "Tells", "tags": ["test"]}],
        }
        yield teller


def _events(work: Work, frame: dict[str, Any]) -> Iterator[bytes]:
    ids = {"taskId": work.id, "contextId": f"context-{work.id}"}
    begun = {"id": work.id, "contextId": ids["contextId"], "status": {"state": "TASK_STATE_WORKING"}}
    yield event({**frame, "result": {"task": begun}})
    for number, piece in enumerate(work.pieces()):
        made = {"artifactId": "answer", "parts": [{"text": piece}]}
        update = {**ids, "artifact": made, "append": number > 0}
        yield event({**frame, "result": {"artifactUpdate": update}})
    yield event({**frame, "result": {"statusUpdate": {**ids, "status": _task(work)["status"]}}})


def _task(work: Work) -> dict[str, Any]:
    task: dict[str, Any] = {
        "id": work.id,
        "contextId": f"context-{work.id}",
        "status": {"state": f"TASK_STATE_{work.state.upper()}", "timestamp": "2026-01-12T10:00:00.000Z"},
    }
    if work.said:
        task["artifacts"] = [{"artifactId": "answer", "parts": [{"text": "".join(work.said)}]}]
    return task
