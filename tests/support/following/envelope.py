"""Follows a task of the envelope dialect: it has no streams; its reports come into a mailbox, which has a cursor."""

import contextlib
import itertools
from collections.abc import Generator, Iterator
from typing import Any, Final
from urllib.parse import quote

from dragoman.model.json import is_object
from tests.support.callers.envelope import EnvelopeCaller
from tests.support.following import FINAL, Followed, Piece
from tests.support.speaking import Content

_STATES: Final = {"created": "submitted", "assigned": "submitted", "in_progress": "working", "cancelled": "canceled"}
_numbers = itertools.count(1)


class EnvelopeFollower:
    """Assigns a task and reads its reports, each of which is a piece."""

    slug = "envelope"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._caller = EnvelopeCaller(hub_url, token)

    @contextlib.contextmanager
    def open(self, agent: str, text: str, *, timeout_ms: int = 20_000) -> Generator[Followed]:
        """Assign, then read the mailbox."""
        sent = self._caller.call(agent, Content(text=text), timeout_ms=timeout_ms, wait=False)
        assert sent.error is None, sent
        yield Followed(self._reports(sent.task_id or ""), sent.task_id)

    @contextlib.contextmanager
    def resume(self, agent: str, cut: Followed) -> Generator[Followed]:
        """The mailbox has kept what was not fetched."""
        yield Followed(self._reports(cut.task_id or ""), cut.task_id)

    def cancel(self, agent: str, stream: Followed) -> None:
        """Say that the task is no longer wanted; what becomes of it is reported like everything else."""
        _, card = self._caller.request("GET", f"/agents/{quote(agent, safe='')}/agent-card.json")
        payload = {"task_id": stream.task_id, "status": "cancelled"}
        status, answer = self._caller.send(self._caller.message(card["id"], "status_update", payload))
        assert status == 200, answer

    def _reports(self, task_id: str) -> Iterator[Piece]:
        while True:
            report = self._caller.wait_for(task_id, lambda _: True)
            piece = _piece(report)
            yield piece
            metadata: dict[str, Any] = report["payload"].get("metadata") or {}
            if piece.state in FINAL or "awaiting" in metadata:
                return


def _piece(report: dict[str, Any]) -> Piece:
    payload = report["payload"]
    number = str(next(_numbers))
    if report["type"] == "status_update":
        state = _STATES.get(payload["status"], payload["status"])
        return Piece(number, state=state, message=payload.get("message"), task_id=payload["task_id"])
    result: dict[str, Any] = payload["result"]
    if payload["status"] == "completed":
        return Piece(number, state="completed", whole=result.get("text"), task_id=payload["task_id"])
    error: Any = result.get("error")
    said = error["message"] if is_object(error) else error
    return Piece(number, state="failed", message=said, task_id=payload["task_id"])


FOLLOWER = EnvelopeFollower
