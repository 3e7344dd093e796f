"""A caller of the platform: it posts skill and input, and reads result or error."""

import base64
import http.client
import json
from typing import Any, Final
from urllib.parse import urlsplit

from dragoman.model.json import is_array, is_object
from tests.support.speaking import Content, File, Seen

_STATES: Final = {
    "queued": "submitted",
    "running": "working",
    "completed": "completed",
    "failed": "failed",
    "cancelled": "canceled",
}


class PlatformCaller:
    """Calls agents at a hub."""

    slug = "platform"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """A call that waits, or one that is accepted."""
        body = {"target_agent_id": agent, "skill": "echo", "input": _input(content)}
        body["options"] = {"timeout_ms": timeout_ms}
        return self._ask("POST", "/v1/a2a/call" if wait else "/v1/a2a/call/async", body)

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """Into the call that asked, else into its conversation."""
        if first.state == "input-required":
            context = {"continue_call_id": first.task_id}
        else:
            context = {"conversation_id": f"conv-{first.task_id}"}
        body = {"target_agent_id": agent, "skill": "echo", "input": _input(content), "context": context}
        return self._ask("POST", "/v1/a2a/call", body)

    def get(self, agent: str, first: Seen) -> Seen:
        """The call's status."""
        return self._ask("GET", f"/v1/a2a/call/{first.task_id}/status", None)

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel the call."""
        return self._ask("POST", f"/v1/a2a/call/{first.task_id}/cancel", {})

    def _ask(self, method: str, path: str, body: Any) -> Seen:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(self._hub.hostname or "", self._hub.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            return _seen(reply.status, json.loads(reply.read()))
        finally:
            connection.close()


def _seen(status: int, answer: dict[str, Any]) -> Seen:
    error: dict[str, Any] = answer.get("error") or {}
    details: dict[str, Any] = error.get("details") or {}
    reason = details.get("reason")
    state = "input-required" if reason == "input_required" else _STATES[answer["status"]]
    if error and status >= 400 and "trace" not in answer:
        state = None  # refused: there is no call
    return Seen(
        task_id=answer["call_id"],
        state=state,
        content=_contents(answer.get("result") or {}),
        message=error.get("message") or answer.get("message"),
        error=error.get("code"),
        status=status,
        raw=answer,
    )


def _input(content: Content) -> dict[str, Any]:
    if content.text is not None:
        return {"text": content.text}
    if content.file is None:
        assert is_object(content.data)
        return content.data
    file = content.file
    shown = {"uri": file.uri} if file.raw is None else {"bytes": base64.b64encode(file.raw).decode()}
    named = {"name": file.name, "mimeType": file.media_type}
    shown |= {name: value for name, value in named.items() if value is not None}
    return {"parts": [{"kind": "file", "file": shown}]}


def _contents(result: dict[str, Any]) -> tuple[Content, ...]:
    if not result:
        return ()
    if result.keys() == {"text"}:
        return (Content(text=result["text"]),)
    if result.keys() == {"parts"} and is_array(result["parts"]):
        return tuple(_content(part) for part in result["parts"])
    return (Content(data=result),)


def _content(part: dict[str, Any]) -> Content:
    if part["kind"] != "file":
        return Content(text=part.get("text"), data=part.get("data"))
    file = part["file"]
    raw = base64.b64decode(file["bytes"]) if "bytes" in file else None
    return Content(file=File(raw=raw, uri=file.get("uri"), name=file.get("name"), media_type=file.get("mimeType")))
