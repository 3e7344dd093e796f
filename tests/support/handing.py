"""Calls that nobody waits for, handed over with an address where their outcome is told: one way per dialect."""

import contextlib
import http.client
import itertools
import json
import os
import threading
from collections.abc import Callable, Generator, Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from tests.support.speaking import StubAgent, json_answer, serving

PATIENCE_S: Final = 20.0
_numbers = itertools.count(1)


class Receiver(StubAgent):
    """Where outcomes are told."""

    def __init__(self) -> None:
        super().__init__("receiver")
        self._changed = threading.Condition()
        self.got: list[tuple[Mapping[str, str], Any]] = []

    def until(self, wanted: Callable[[Any], bool]) -> tuple[Mapping[str, str], Any]:
        """The first notice that is wanted."""
        with self._changed:
            found = self._changed.wait_for(lambda: next((one for one in self.got if wanted(one[1])), None), PATIENCE_S)
            assert found, self.got
            return found

    def take(self, headers: Mapping[str, str], body: Any) -> None:
        """Keep one notice."""
        with self._changed:
            self.got.append((headers, body))
            self._changed.notify_all()


@contextlib.contextmanager
def receiver() -> Generator[Receiver]:
    """A receiver, within the block."""
    stub = Receiver()

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        stub.take(headers, body)
        return json_answer({"status": "success", "message_id": body.get("message_id")})

    with serving(stub, handle):
        yield stub


def hand_over(slug: str, hub_url: str, agent: str, text: str, url: str) -> str:
    """Hand a call over in a dialect; the id under which its outcome is told.

    Raises NotImplementedError where the dialect has no word for that.
    """
    way = _WAYS.get(slug)
    if way is None:
        raise NotImplementedError(f"{slug} has no word for a call that nobody waits for")
    return way(hub_url, f"/agents/{quote(agent, safe='')}/", agent, text, url)


def is_outcome(slug: str, task_id: str, body: Any) -> bool:
    """Whether a notice tells that the task is completed."""
    match slug:
        case "platform":
            return body["call_id"] == task_id and body["status"] == "completed"
        case "a2a-1.0":
            status = body.get("statusUpdate", {})
            return status.get("taskId") == task_id and status["status"]["state"] == "TASK_STATE_COMPLETED"
        case "a2a-0.3" | "dotted":
            return body["id"] == task_id and body["status"]["state"] == "completed"
        case "agentvault":
            return body["taskId"] == task_id and body["state"] == "COMPLETED"
        case _:
            raise AssertionError(slug)


def _platform(hub: str, _base: str, agent: str, text: str, url: str) -> str:
    body = {"target_agent_id": agent, "skill": "echo", "input": {"text": text}, "callback": {"url": url}}
    return _post(hub, "/v1/a2a/call/async", body, 202)["call_id"]


def _v10(hub: str, base: str, _agent: str, text: str, url: str) -> str:
    message = {"messageId": _fresh("m"), "role": "ROLE_USER", "parts": [{"text": text}]}
    push = {"url": url, "token": "mine"}
    configuration = {"returnImmediately": True, "taskPushNotificationConfig": push}
    result = _rpc(hub, base, "SendMessage", {"message": message, "configuration": configuration})
    return result["task"]["id"]


def _v03(hub: str, base: str, _agent: str, text: str, url: str) -> str:
    return _kind(hub, base, "message/send", text, url)


def _dotted(hub: str, base: str, _agent: str, text: str, url: str) -> str:
    return _kind(hub, base, "message.send", text, url)


def _kind(hub: str, base: str, method: str, text: str, url: str) -> str:
    parts = [{"kind": "text", "text": text}]
    message = {"kind": "message", "messageId": _fresh("m"), "role": "user", "parts": parts}
    configuration = {"blocking": False, "pushNotificationConfig": {"url": url, "token": "mine"}}
    return _rpc(hub, base, method, {"message": message, "configuration": configuration})["id"]


def _agentvault(hub: str, base: str, _agent: str, text: str, url: str) -> str:
    message = {"role": "user", "parts": [{"type": "text", "content": text}]}
    return _rpc(hub, f"{base}agentvault/", "tasks/send", {"message": message, "webhookUrl": url})["id"]


def _rpc(hub: str, path: str, method: str, params: Any) -> Any:
    frame = {"jsonrpc": "2.0", "id": _fresh("req"), "method": method, "params": params}
    answer = _post(hub, path, frame, 200)
    assert "error" not in answer, answer
    return answer["result"]


def _post(hub: str, path: str, body: Any, status: int) -> Any:
    place = urlsplit(hub)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE_S)
    headers = {"Content-Type": "application/json"}
    if body.get("method") in ("SendMessage",):
        headers["A2A-Version"] = "1.0"
    try:
        connection.request("POST", path, json.dumps(body), headers)
        reply = connection.getresponse()
        answer = json.loads(reply.read())
        assert reply.status == status, answer
        return answer
    finally:
        connection.close()


def _fresh(prefix: str) -> str:
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


_WAYS: Final[dict[str, Callable[[str, str, str, str, str], str]]] = {
    "platform": _platform,
    "a2a-1.0": _v10,
    "a2a-0.3": _v03,
    "dotted": _dotted,
    "agentvault": _agentvault,
}
