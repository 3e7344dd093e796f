"""A caller of the envelope dialect, as its published client is: `signature` null, microseconds, cards by discovery.

It is told of its tasks at an endpoint of its own (`EndpointCaller`), or fetches the reports from its mailbox.
"""

import base64
import http.client
import itertools
import json
import queue
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit
from uuid import uuid4

from dragoman.model.json import is_array, is_object
from tests.support.speaking import Content, File, Seen, StubAgent, json_answer, serving

PATIENCE_S = 30.0
_numbers = itertools.count(1)
_STATES = {"created": "submitted", "assigned": "submitted", "in_progress": "working", "cancelled": "canceled"}


class EnvelopeCaller:
    """Assigns tasks to agents at a hub, and finds what becomes of them in its mailbox.

    With a token it registers itself first: a stranger may only write to a hub that asks nobody who he is.
    """

    slug = "envelope"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token
        self.id = str(uuid4())
        self._cursor = 0
        self._joined = not token
        self._reports: dict[str, list[dict[str, Any]]] = {}  # of each task, oldest first
        self._ids: set[str] = set()

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Assign a task, and wait for its completion (or its question)."""
        task_id = f"task-{self.id[:8]}-{next(_numbers)}"
        return self._assign(agent, task_id, content, timeout_ms, wait)

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """The same task once more where it asks; else another task, as there are no conversations."""
        if first.state != "input-required" or first.task_id is None:
            return self.call(agent, content)
        return self._assign(agent, first.task_id, content, 20_000, wait=True)

    def get(self, agent: str, first: Seen) -> Seen:
        """Such a task cannot be asked for."""
        raise NotImplementedError("the envelope has no word for that")

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel, and wait until that is told; a task that had ended says `applied: false` in `raw`."""
        payload = {"task_id": first.task_id, "status": "cancelled"}
        status, answer = self.send(self.message(self._card(agent)[1]["id"], "status_update", payload))
        if status != 200:
            return _refused(status, answer)
        if answer.get("applied") is False:
            return Seen(task_id=first.task_id, state=first.state, status=status, raw=answer)
        return self._outcome(str(first.task_id))

    def ping(self, agent: str, nonce: str, echo: Any) -> tuple[int, Any]:
        """Ask whether somebody is there."""
        return self.send(self.message(self._card(agent)[1]["id"], "ping", {"nonce": nonce, "echo": echo}))

    def message(self, to: str, kind: str, payload: dict[str, Any], **more: Any) -> dict[str, Any]:
        """One message, as the published client writes it."""
        return {
            "version": "1.0.0",
            "message_id": str(uuid4()),
            "timestamp": _time(datetime.now(UTC)),
            "from": self.id,
            "to": to,
            "type": kind,
            "payload": payload,
            "signature": None,
            **more,
        }

    def send(self, message: Any, path: str = "/a2a/messages") -> tuple[int, Any]:
        """Post a message: 200 and 400 are JSON objects, and a 400 says why."""
        self._join()
        status, answer = self.request("POST", path, message)
        assert is_object(answer)
        if status != 200:
            assert isinstance(answer["error"], str)
        return status, answer

    def request(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request on a connection of its own."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(self._hub.hostname or "", self._hub.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def wait_for(self, task_id: str, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first report of a task that is wanted; those before it are dropped."""
        until = datetime.now(UTC) + timedelta(seconds=PATIENCE_S)
        while datetime.now(UTC) < until:
            waiting = self._reports.get(task_id, [])
            while waiting:
                report = waiting.pop(0)
                if wanted(report):
                    return report
            for report in self.fetch():
                self._keep(report)
        raise AssertionError(f"{task_id}: no such report within {PATIENCE_S:g} s")

    def fetch(self) -> list[dict[str, Any]]:
        """What has come since the last look; waits a while for it."""
        self._join()
        query = urlencode({"after": self._cursor, "wait": 2, "agent": self.id})
        status, answer = self.request("GET", f"/a2a/messages?{query}")
        assert status == 200, answer
        self._cursor = answer["cursor"]
        messages: list[dict[str, Any]] = answer["messages"]
        return messages

    def card(self) -> dict[str, Any]:
        """The card by which this caller is known; without an endpoint."""
        return {"id": self.id, "name": f"caller {self.id[:8]}", "version": "1.0.0", "supported_tasks": ["listen"]}

    def become(self, token: str) -> None:
        """Go on with another token; whoever gave it has registered this caller."""
        self._token, self._joined = token, True

    def _join(self) -> None:
        if not self._joined:
            self._joined = True
            status, answer = self.request("POST", "/v1/a2a/registry", {"agent_card": self.card()})
            assert status in (200, 201), answer

    def _keep(self, report: dict[str, Any]) -> None:
        if report["message_id"] not in self._ids:  # delivered once or more: the id tells
            self._ids.add(report["message_id"])
            self._reports.setdefault(report["payload"]["task_id"], []).append(report)

    def _card(self, agent: str) -> tuple[int, Any]:
        """The agent's card, where the published client looks first."""
        return self.request("GET", f"/agents/{quote(agent, safe='')}/agent-card.json")

    def _assign(self, agent: str, task_id: str, content: Content, timeout_ms: int, wait: bool) -> Seen:
        status, card = self._card(agent)
        if status != 200:
            return _refused(status, card)
        at = datetime.now(UTC)
        payload: dict[str, Any] = {
            "task_id": task_id,
            "task_type": card["supported_tasks"][0],
            "title": "A task",
            "description": "Something to do",
            "payload": _payload(content),
            "deadline": _time(at + timedelta(milliseconds=timeout_ms)),
        }
        status, answer = self.send(self.message(card["id"], "task_assignment", payload, timestamp=_time(at)))
        if status != 200:
            return _refused(status, answer)
        assert answer["payload"] == {"task_id": task_id, "status": "assigned"}
        if not wait:
            return Seen(task_id=task_id, state="submitted", status=status, raw=answer)
        return self._outcome(task_id)

    def _outcome(self, task_id: str) -> Seen:
        report = self.wait_for(task_id, _ends_or_asks)
        payload = report["payload"]
        awaits = _awaited(payload)
        if report["type"] == "status_update":
            state = f"{awaits}-required" if awaits else _STATES[payload["status"]]
            return Seen(task_id=task_id, state=state, message=payload.get("message"), raw=report)
        if payload["status"] == "failed":
            error: Any = payload["result"].get("error")
            if not is_object(error):
                return Seen(task_id=task_id, state="failed", message=error, raw=report)
            return Seen(
                task_id=task_id, state="failed", message=error.get("message"), error=error.get("code"), raw=report
            )
        return Seen(task_id=task_id, state="completed", content=_contents(payload["result"]), raw=report)


class EndpointCaller(EnvelopeCaller):
    """The same, told at an endpoint of its own; a context manager, within which that endpoint is served."""

    def __init__(self, hub_url: str, token: str = "") -> None:
        super().__init__(hub_url, token)
        self._joined = False
        self._served = ExitStack()
        self._stub = StubAgent("envelope")
        self._came: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()

    def __enter__(self) -> Self:
        self._served.enter_context(serving(self._stub, self._take))
        return self

    def __exit__(self, *_: object) -> None:
        self._served.close()

    def fetch(self) -> list[dict[str, Any]]:
        """The next report that is posted."""
        try:
            return [self._came.get(timeout=2)]
        except queue.Empty:
            return []

    def card(self) -> dict[str, Any]:
        """The card, with the endpoint."""
        return {**super().card(), "endpoint": self._stub.url}

    def _take(
        self, method: str, path: str, headers: Mapping[str, str], body: Any
    ) -> tuple[int, Mapping[str, str], bytes]:
        if (method, path) != ("POST", "/a2a/messages"):
            return json_answer({"error": "not here"}, 404)
        self._came.put(body)
        return json_answer({"status": "success", "message_id": body["message_id"]})


def _ends_or_asks(report: dict[str, Any]) -> bool:
    payload = report["payload"]
    return report["type"] == "task_completion" or payload["status"] == "cancelled" or _awaited(payload) is not None


def _awaited(payload: dict[str, Any]) -> str | None:
    metadata = payload.get("metadata")
    return metadata.get("awaiting") if is_object(metadata) else None


def _refused(status: int, answer: dict[str, Any]) -> Seen:
    return Seen(message=answer["error"], error=answer["error_code"], status=status, raw=answer)


def _time(at: datetime) -> str:
    return at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _payload(content: Content) -> dict[str, Any]:
    if content.file is not None:
        return {"parts": [{"kind": "file", "file": _file(content.file)}]}
    if content.text is not None:
        return {"text": content.text}
    return content.data


def _file(file: File) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if file.raw is not None:
        shown["bytes"] = base64.b64encode(file.raw).decode()
    if file.uri is not None:
        shown["uri"] = file.uri
    if file.name:
        shown["name"] = file.name
    if file.media_type:
        shown["mimeType"] = file.media_type
    return shown


def _contents(result: dict[str, Any]) -> tuple[Content, ...]:
    if set(result) == {"text"}:
        return (Content(text=result["text"]),)
    if set(result) == {"parts"} and is_array(result["parts"]):
        return tuple(_content(part) for part in result["parts"])
    return (Content(data=result),)


def _content(part: dict[str, Any]) -> Content:
    if part["kind"] == "text":
        return Content(text=part["text"])
    if part["kind"] == "data":
        return Content(data=part["data"])
    file: dict[str, Any] = part["file"]
    raw = base64.b64decode(file["bytes"]) if "bytes" in file else None
    return Content(file=File(raw=raw, uri=file.get("uri"), name=file.get("name"), media_type=file.get("mimeType")))
