"""Tells in the directory's words: a2a/stream, as its record says that it knows it."""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from tests.support.telling import WHOLE, Answer, Teller, Work, event, told_over_http, wish_in


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        frame, params = {"jsonrpc": "2.0", "id": body["id"]}, body["params"]
        match body["method"]:
            case "a2a/task":
                return {**frame, "result": _whole(teller.begin(wish_in(params["input"]), params["taskId"]))}
            case "a2a/stream":
                return _events(teller.begin(wish_in(params["input"]), params["taskId"]), frame)
            case "a2a/cancel":
                teller.works[params["taskId"]].cancel()
                return {**frame, "result": {"taskId": params["taskId"], "status": "cancelled"}}
            case _:
                return {**frame, "error": {"code": -32601, "message": "no such method"}}

    with told_over_http(teller, handle):
        teller.card = {
            "agentId": "directory-teller",
            "name": "Directory teller",
            "capabilities": ["echo"],
            "endpoint": teller.url,
            "methods": ["a2a/task", "a2a/stream", "a2a/cancel"],
        }
        yield teller


def _events(work: Work, frame: dict[str, Any]) -> Iterator[bytes]:
    for piece in work.pieces():
        yield event({**frame, "result": {"taskId": work.id, "status": "working", "output": {"text": piece}}})
    yield event({**frame, "result": _whole(work)})


def _whole(work: Work) -> dict[str, Any]:
    if work.outcome() == "canceled":
        return {"taskId": work.id, "status": "cancelled", "output": {}}
    return {"taskId": work.id, "status": "completed", "output": {"text": WHOLE}}
