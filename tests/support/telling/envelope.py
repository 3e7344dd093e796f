"""Tells in envelopes: it has no streams; what it does it reports to the hub, the words with the completion."""

import contextlib
import threading
from collections.abc import Generator, Mapping
from typing import Any

from tests.support.agents.envelope import EnvelopeAgent, now
from tests.support.telling import WHOLE, Answer, Teller, Work, told_over_http, wish_in


@contextlib.contextmanager
def agent() -> Generator[Teller]:
    """The agent, within the block."""
    teller, voice = Teller(), EnvelopeAgent()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        if method == "GET":
            return teller.card
        payload = body["payload"]
        if body["type"] == "task_assignment":
            work = teller.begin(wish_in(payload["payload"]), payload["task_id"])
            threading.Thread(target=_report, args=(voice, work, body), daemon=True).start()
        elif body["type"] == "status_update" and payload["status"] == "cancelled":
            teller.works[payload["task_id"]].cancel()
        return {"status": "success", "message_id": body["message_id"], "processed_at": now()}

    with told_over_http(teller, handle):
        teller.card = {
            "id": voice.id,
            "name": "Envelope teller",
            "version": "1.0.0",
            "description": "Tells",
            "capabilities": ["analysis"],
            "supported_tasks": ["echo"],
            "endpoint": teller.url,
            "status": "active",
        }
        yield teller


def _report(voice: EnvelopeAgent, work: Work, asked: dict[str, Any]) -> None:
    hub = asked["payload"]["metadata"]["reply_to"]

    def tell(kind: str, **payload: Any) -> None:
        with contextlib.suppress(OSError, ValueError):
            voice.post(hub, voice.envelope(asked["from"], kind, {"task_id": work.id, **payload}))

    for number, piece in enumerate(work.pieces(), 1):
        tell("status_update", status="in_progress", progress=number / 2, message=piece)
    if work.outcome() == "completed":
        tell("task_completion", status="completed", result={"text": WHOLE})
