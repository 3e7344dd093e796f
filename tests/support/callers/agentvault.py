"""A caller of AgentVault: sends a task and asks for it until it is done, as its published client's users do."""

import http.client
import itertools
import json
import time
from typing import Any
from urllib.parse import quote, urlsplit

from dragoman.model.json import is_object
from tests.support.speaking import Content, File, Seen

_numbers = itertools.count(1)
_STATES = {
    "SUBMITTED": "submitted",
    "WORKING": "working",
    "INPUT_REQUIRED": "input-required",
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELED": "canceled",
}
_OPEN = ("submitted", "working")
POLL_S = 0.02
PATIENCE_S = 60.0


class AgentVaultCaller:
    """Sends tasks to agents at a hub."""

    slug = "agentvault"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Send a message as a new task."""
        return self._send(agent, {"message": _message(content, timeout_ms)}, wait)

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """A further message into a task that asks; else another task, as there are no conversations beside tasks."""
        if first.state != "input-required":
            return self.call(agent, content)
        return self._send(agent, {"id": first.task_id, "message": _message(content, 20_000)}, wait=True)

    def get(self, agent: str, first: Seen) -> Seen:
        """The task as it is now."""
        return self._rpc(agent, "tasks/get", {"id": first.task_id})

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel, and what became of the task; one that had ended stays as it is, with `success` false in `raw`."""
        answer = self._rpc(agent, "tasks/cancel", {"id": first.task_id})
        if answer.error is not None:
            return answer
        seen = self.get(agent, first)
        return Seen(task_id=seen.task_id, state=seen.state, status=answer.status, raw=answer.raw)

    def _send(self, agent: str, params: dict[str, Any], wait: bool) -> Seen:
        sent = self._rpc(agent, "tasks/send", params)
        if sent.error is not None or not wait:
            return sent
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            seen = self.get(agent, sent)
            if seen.state not in _OPEN:
                return seen
            time.sleep(POLL_S)  # such clients poll
        raise AssertionError(f"{sent.task_id} did not end within {PATIENCE_S:g} s")

    def _rpc(self, agent: str, method: str, params: dict[str, Any]) -> Seen:
        body = {"jsonrpc": "2.0", "id": f"req-{next(_numbers)}", "method": method, "params": params}
        status, answer = self._post(f"/agents/{quote(agent, safe='')}/agentvault/", body)
        assert answer["id"] == body["id"]
        if "error" in answer:
            error = answer["error"]
            assert "result" not in answer
            return Seen(message=error["message"], error=error["code"], status=status, raw=answer)
        result = answer["result"]
        if "state" not in result:
            return Seen(task_id=result.get("id"), state="submitted", status=status, raw=answer)
        return _seen(result, status, answer)

    def _post(self, path: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["X-Api-Key"] = self._token
        connection = http.client.HTTPConnection(self._hub.hostname or "", self._hub.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


def _seen(task: dict[str, Any], status: int, answer: Any) -> Seen:
    state = _STATES[task["state"]]
    words = _last_words(task["messages"])
    done = state == "completed"
    return Seen(
        task_id=task["id"],
        state=state,
        content=tuple(_content(part) for part in words) if done else (),
        message=None if done else "".join(part["content"] for part in words if part["type"] == "text") or None,
        status=status,
        raw=answer,
    )


def _last_words(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts of the agent's last message since the caller's last."""
    if not messages or messages[-1]["role"] != "assistant":
        return []
    return messages[-1]["parts"]


def _message(content: Content, timeout_ms: int) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    if content.text is not None:
        parts.append({"type": "text", "content": content.text})
    if content.data is not None:
        parts.append({"type": "data", "content": content.data, "mediaType": "application/json"})
    if content.file is not None:
        parts.append(_file(content.file))
    return {"role": "user", "parts": parts, "metadata": {"dragoman": {"timeout_ms": timeout_ms}}}


def _file(file: File) -> dict[str, Any]:
    if file.uri is None:
        raise NotImplementedError("AgentVault carries files by their address only")
    shown = {"type": "file", "url": file.uri}
    if file.media_type:
        shown["mediaType"] = file.media_type
    if file.name:
        shown["filename"] = file.name
    return shown


def _content(part: dict[str, Any]) -> Content:
    match part:
        case {"type": "text", "content": str(text)}:
            return Content(text=text)
        case {"type": "data", "content": data, "mediaType": str()} if is_object(data):
            return Content(data=data)
        case {"type": "file", "url": str(uri), **more}:
            return Content(file=File(uri=uri, name=more.get("filename"), media_type=more.get("mediaType")))
        case _:
            raise AssertionError(f"no part that an AgentVault client knows: {part}")
