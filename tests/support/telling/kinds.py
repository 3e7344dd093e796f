"""Tells in the words that A2A 0.3 and dotted share; each names its methods and has a card of its own."""

import contextlib
from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from tests.support.telling import Answer, Teller, Work, event, told_over_http, wish_in


@contextlib.contextmanager
def kind_teller(names: Mapping[str, str], card: Callable[[str], dict[str, Any]]) -> Generator[Teller]:
    """The agent within the block: its methods mean what `names` says, and at a URL it has that card."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        return teller.card if method == "GET" else _answer(teller, names, body)

    with told_over_http(teller, handle):
        teller.card = card(teller.url)
        yield teller


def _answer(teller: Teller, names: Mapping[str, str], body: Any) -> Answer:
    frame, params = {"jsonrpc": "2.0", "id": body["id"]}, body["params"]
    task_id = params.get("id") or params.get("taskId")
    match names.get(body["method"]):
        case "send":
            work = teller.begin(wish_in(params["message"]))
            if params.get("configuration", {}).get("blocking") is not False:
                work.outcome()
            return {**frame, "result": _task(work)}
        case "stream":
            return _events(teller.begin(wish_in(params["message"])), frame)
        case "subscribe":
            return _events(teller.works[task_id], frame)
        case "get":
            return {**frame, "result": _task(teller.works[task_id])}
        case "cancel":
            teller.works[task_id].cancel()
            return {**frame, "result": _task(teller.works[task_id])}
        case _:
            return {**frame, "error": {"code": -32601, "message": "no such method"}}


def _events(work: Work, frame: dict[str, Any]) -> Iterator[bytes]:
    ids = {"taskId": work.id, "contextId": f"context-{work.id}"}
    begun = {"kind": "task", "id": work.id, "contextId": ids["contextId"], "status": {"state": "working"}}
    yield event({**frame, "result": begun})
    for number, piece in enumerate(work.pieces()):
        made = {"artifactId": "answer", "parts": [{"kind": "text", "text": piece}]}
        update = {"kind": "artifact-update", **ids, "artifact": made, "append": number > 0}
        yield event({**frame, "result": update})
    last = {"kind": "status-update", **ids, "status": _task(work)["status"], "final": True}
    yield event({**frame, "result": last})


def _task(work: Work) -> dict[str, Any]:
    task: dict[str, Any] = {
        "kind": "task",
        "id": work.id,
        "contextId": f"context-{work.id}",
        "status": {"state": work.state, "timestamp": "2026-01-12T10:00:00.000Z"},
    }
    if work.said:
        parts = [{"kind": "text", "text": "".join(work.said)}]
        task["artifacts"] = [{"artifactId": "answer", "parts": parts}]
    return task
