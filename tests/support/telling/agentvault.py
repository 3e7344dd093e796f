"""Tells in AgentVault's words: a task that is subscribed to shows its artifact again whenever it has grown."""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from typing import Any, Final

from tests.support.telling import Answer, Teller, Work, event, told_over_http, wish_in

AT: Final = "2026-01-12T10:00:00Z"


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        if method == "GET":
            return teller.card
        frame, params = {"jsonrpc": "2.0", "id": body["id"]}, body["params"]
        match body["method"]:
            case "tasks/send":
                return {**frame, "result": {"id": teller.begin(wish_in(params["message"])).id}}
            case "tasks/sendSubscribe":
                return _events(teller.works[params["id"]])
            case "tasks/get":
                return {**frame, "result": _task(teller.works[params["id"]])}
            case "tasks/cancel":
                teller.works[params["id"]].cancel()
                return {**frame, "result": {"success": True, "message": None}}
            case _:
                return {**frame, "error": {"code": -32601, "message": "no such method"}}

    with told_over_http(teller, handle):
        teller.card = {
            "schemaVersion": "1.0",
            "humanReadableId": "stubs/teller",
            "agentVersion": "1.0.0",
            "name": "AgentVault teller",
            "description": "Tells",
            "url": f"{teller.url}/a2a/",
            "provider": {"name": "Stubs"},
            "capabilities": {"a2aVersion": "0.2", "supportedMessageParts": ["text"]},
            "authSchemes": [{"scheme": "none"}],
            "skills": [{"id": "echo", "name": "Echo", "description": "Tells"}],
        }
        yield teller


def _events(work: Work) -> Iterator[bytes]:
    yield event({"taskId": work.id, "state": "WORKING", "timestamp": AT}, "task_status")
    so_far = ""
    for piece in work.pieces():
        so_far += piece
        yield event({"taskId": work.id, "artifact": _artifact(so_far), "timestamp": AT}, "task_artifact")
    yield event({"taskId": work.id, "state": work.state.upper(), "timestamp": AT}, "task_status")


def _task(work: Work) -> dict[str, Any]:
    said = "".join(work.said)
    return {
        "id": work.id,
        "state": work.state.upper(),
        "createdAt": AT,
        "updatedAt": AT,
        "messages": [],
        "artifacts": [_artifact(said)] if said else [],
    }


def _artifact(text: str) -> dict[str, Any]:
    return {"id": "answer", "type": "text", "content": text}
