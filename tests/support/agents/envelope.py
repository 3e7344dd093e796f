"""A stub agent of the envelope dialect: acknowledges an assignment, and posts its reports to the hub that gave it.

Where the hub wants to know who reports, the test sets `token` to what registration gave back.
"""

import contextlib
import http.client
import json
import threading
import time
from collections.abc import Generator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

from dragoman.model.json import is_object
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving, wish_of

WAIT_S = 20.0
Answer = tuple[int, Mapping[str, str], bytes]


class EnvelopeAgent(StubAgent):
    """An agent with an id of its own, and what the hub said to its reports."""

    def __init__(self) -> None:
        super().__init__("envelope")
        self.id = str(uuid4())
        self.token = ""
        self.at_once = False  # whether it answers an assignment with the completion itself
        self.silent = False  # whether it reports nothing by itself: the test does it
        self.hasty = False  # whether it reports before it says that it took the assignment
        self.acks: list[tuple[int, Any]] = []
        self._asking: set[str] = set()
        self._stopped: set[str] = set()

    @property
    def assignments(self) -> list[dict[str, Any]]:
        """The assignments that came in, whole."""
        return [body for _, _, _, body in self.requests if is_object(body) and body.get("type") == "task_assignment"]

    def receive(self, message: dict[str, Any]) -> Answer:
        """Answer one message, and do what it asks."""
        payload: dict[str, Any] = message["payload"]
        match message["type"]:
            case "ping":
                return json_answer({**self._ack(message), **self.envelope(message["from"], "ping", payload), **payload})
            case "status_update" if payload["status"] == "cancelled":
                self._stopped.add(payload["task_id"])
                self.cancelled.set()
                return json_answer(self._ack(message))
            case "task_assignment":
                return self._assigned(message, payload)
            case _:
                return json_answer(self._ack(message))

    def envelope(self, to: str, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """A message of this agent's."""
        return {
            "version": "1.0.0",
            "message_id": str(uuid4()),
            "timestamp": now(),
            "from": self.id,
            "to": to,
            "type": kind,
            "payload": payload,
            "signature": None,
        }

    def post(self, url: str, message: dict[str, Any]) -> tuple[int, Any]:
        """Post a message to a hub; its answer is kept."""
        place = urlsplit(url)
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=WAIT_S)
        try:
            connection.request("POST", f"{place.path}/a2a/messages", json.dumps(message).encode(), headers)
            reply = connection.getresponse()
            answer = (reply.status, json.loads(reply.read()))
        finally:
            connection.close()
        self.acks.append(answer)
        return answer

    def _assigned(self, message: dict[str, Any], asked: dict[str, Any]) -> Answer:
        task_id = asked["task_id"]
        given: dict[str, Any] = asked.get("payload") or {}  # encrypted, it has none to be seen
        text = given.get("text")
        wish = "echo" if task_id in self._asking else wish_of(text if isinstance(text, str) else None)
        self._asking.discard(task_id)
        self.arrived.set()
        if self.at_once:
            done = self.envelope(message["from"], "task_completion", _outcome(task_id, wish, given))
            return json_answer({**self._ack(message), **done})
        if self.hasty:
            self._work(message, wish, given)
        elif not self.silent:
            threading.Thread(target=self._work, args=(message, wish, given), daemon=True).start()
        told = self.envelope(message["from"], "status_update", {"task_id": task_id, "status": "assigned"})
        return json_answer({**told, **self._ack(message)})

    def _work(self, message: dict[str, Any], wish: str, given: dict[str, Any]) -> None:
        asked = message["payload"]
        task_id, hub = asked["task_id"], asked["metadata"]["reply_to"]

        def tell(kind: str, payload: dict[str, Any]) -> None:
            with contextlib.suppress(OSError, ValueError, http.client.HTTPException):
                self.post(hub, self.envelope(message["from"], kind, payload))

        if wish == "ask":
            self._asking.add(task_id)
            waiting = {"task_id": task_id, "status": "in_progress", "message": QUESTION}
            tell("status_update", {**waiting, "metadata": {"awaiting": "input"}})
            return
        if wish == "slow":
            tell("status_update", {"task_id": task_id, "status": "in_progress", "progress": 0.1})
            if self._held(task_id):
                return
        tell("task_completion", _outcome(task_id, wish, given))

    def _held(self, task_id: str) -> bool:
        """Work until the task is cancelled, which is true, or until the test lets all slow work go."""
        until = time.monotonic() + WAIT_S
        while task_id not in self._stopped and time.monotonic() < until:
            if self.release.wait(0.02):
                break
        return task_id in self._stopped

    def _ack(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"status": "success", "message_id": message["message_id"], "processed_at": now()}


@contextlib.contextmanager
def agent(name: str = "envelope-stub") -> Generator[EnvelopeAgent]:
    """An agent that repeats its input, within the block."""
    stub = EnvelopeAgent()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> Answer:
        if method == "GET" and path in ("/agent-card.json", "/a2a/agent-card"):
            return json_answer(stub.card)
        if method != "POST" or path != "/a2a/messages" or not is_object(body):
            return json_answer({"error": "not here"}, 404)
        return stub.receive(body)

    with serving(stub, handle):
        stub.card = {
            "id": stub.id,
            "name": name,
            "version": "1.0.0",
            "description": f"Agent {name}",
            "capabilities": ["analysis"],
            "supported_tasks": ["echo"],
            "endpoint": stub.url,
            "status": "active",
        }
        yield stub


def now() -> str:
    """The time as published clients write it: with microseconds and Z."""
    return datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _outcome(task_id: str, wish: str, given: dict[str, Any]) -> dict[str, Any]:
    match wish:
        case "fail":
            result: dict[str, Any] = {"error": {"code": "INTERNAL_ERROR", "message": FAILURE}}
            return {"task_id": task_id, "status": "failed", "result": result}
        case "reject":
            return {"task_id": task_id, "status": "failed", "result": {"error": "rejected"}}
        case _:
            return {"task_id": task_id, "status": "completed", "result": given, "execution_time_ms": 12}
