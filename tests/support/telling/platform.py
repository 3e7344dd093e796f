"""Tells in the Agent Platform's words: its answer is a stream where the call says so."""

import contextlib
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from tests.support.telling import WHOLE, Answer, Teller, Work, event, told_over_http, wish_in


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller = Teller()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        if path.endswith("/cancel"):
            teller.works[body["call_id"]].cancel()
            return {}
        work = teller.begin(wish_in(body["input"]), body["call_id"])
        return _events(work) if body["options"]["stream"] else _whole(work)

    with told_over_http(teller, handle):
        teller.card = {
            "id": "agt_teller",
            "name": "Teller",
            "description": "Tells",
            "version": "1.0.0",
            "capabilities": {"streaming": True, "a2a": True, "memory": False},
            "skills": [{"name": "echo", "description": "Tells"}],
            "endpoint": f"{teller.url}/agent",
        }
        yield teller


def _events(work: Work) -> Iterator[bytes]:
    for piece in work.pieces():
        yield event({"content": piece}, "chunk")
    yield event(_whole(work), "complete")
    yield event({}, "done")


def _whole(work: Work) -> dict[str, Any]:
    if work.outcome() == "canceled":
        return {"status": "cancelled"}
    return {"status": "completed", "result": {"text": WHOLE}}
