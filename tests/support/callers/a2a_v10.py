"""A client of A2A 1.0 in either framing, as the published ones speak it: PascalCase or paths, always the version."""

import base64
import http.client
import itertools
import json
import os
from typing import Any
from urllib.parse import quote, urlsplit

from tests.support.speaking import Content, File, Seen

_numbers = itertools.count(1)


class A2AV10Caller:
    """Sends messages to agents at a hub; `binding` is JSONRPC or HTTP+JSON."""

    slug = "a2a-1.0"

    def __init__(self, hub_url: str, token: str = "", binding: str = "JSONRPC") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token
        self._binding = binding

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """SendMessage; without `wait` it returns at once."""
        return self._send(agent, content, {}, timeout_ms=timeout_ms, wait=wait)

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """Into the task if it asks for input, else into its context."""
        into = {"taskId": first.task_id} if first.state == "input-required" else {"contextId": first.context_id}
        return self._send(agent, content, into)

    def get(self, agent: str, first: Seen) -> Seen:
        """GetTask."""
        return self._ask(agent, "GetTask", {"id": first.task_id})

    def cancel(self, agent: str, first: Seen) -> Seen:
        """CancelTask."""
        return self._ask(agent, "CancelTask", {"id": first.task_id})

    def _send(
        self, agent: str, content: Content, into: dict[str, Any], *, timeout_ms: int = 20_000, wait: bool = True
    ) -> Seen:
        message = {
            "messageId": f"message-{os.getpid()}-{next(_numbers)}",
            "role": "ROLE_USER",
            "parts": parts_of(content),
            "metadata": {"dragoman": {"timeout_ms": timeout_ms}},
            **into,
        }
        how = {} if wait else {"returnImmediately": True}
        return self._ask(agent, "SendMessage", {"message": message, "configuration": how})

    def _ask(self, agent: str, method: str, params: dict[str, Any]) -> Seen:
        base = f"/agents/{quote(agent, safe='')}/"
        if self._binding == "JSONRPC":
            frame = {"jsonrpc": "2.0", "id": f"req-{next(_numbers)}", "method": method, "params": params}
            status, answer = self._request("POST", base, frame)
            error = answer.get("error")
            return _refused(status, error["code"], answer) if error else seen_of(answer["result"], status, answer)
        verb, path, body = _rest(method, params)
        status, answer = self._request(verb, base + path, body)
        if "error" in answer:
            return _refused(status, answer["error"]["details"][0]["reason"], answer)
        return seen_of(answer, status, answer)

    def _request(self, verb: str, path: str, body: Any) -> tuple[int, Any]:
        assert self._hub.hostname is not None
        connection = http.client.HTTPConnection(self._hub.hostname, self._hub.port, timeout=60)
        headers = {"A2A-Version": "1.0", "Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(verb, path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


def parts_of(content: Content) -> list[dict[str, Any]]:
    """Content as the parts of a message."""
    parts: list[dict[str, Any]] = []
    if content.text is not None:
        parts.append({"text": content.text})
    if content.data is not None:
        parts.append({"data": content.data})
    if content.file is not None:
        raw, uri = content.file.raw, content.file.uri
        part = {"url": uri} if raw is None else {"raw": base64.b64encode(raw).decode()}
        named = {"filename": content.file.name, "mediaType": content.file.media_type}
        parts.append(part | {name: value for name, value in named.items() if value is not None})
    return parts


def seen_of(result: dict[str, Any], status: int, raw: Any) -> Seen:
    """A result: a task, wrapped or not, or a message."""
    if "message" in result:
        message = result["message"]
        content = tuple(_content(part) for part in message["parts"])
        return Seen(context_id=message["contextId"], state="completed", content=content, status=status, raw=raw)
    task = result.get("task", result)
    said = task["status"].get("message")
    return Seen(
        task_id=task["id"],
        context_id=task["contextId"],
        state=task["status"]["state"].removeprefix("TASK_STATE_").lower().replace("_", "-"),
        content=tuple(_content(part) for artifact in task.get("artifacts", ()) for part in artifact["parts"]),
        message="".join(part.get("text", "") for part in said["parts"]) if said else None,
        status=status,
        raw=raw,
    )


def _refused(status: int, code: str | int, answer: Any) -> Seen:
    return Seen(error=code, status=status, message=answer["error"]["message"], raw=answer)


def _content(part: dict[str, Any]) -> Content:
    if "text" in part:
        return Content(text=part["text"])
    if "data" in part:
        return Content(data=part["data"])
    raw = base64.b64decode(part["raw"], validate=True) if "raw" in part else None
    file = File(raw=raw, uri=part.get("url"), name=part.get("filename"), media_type=part.get("mediaType"))
    return Content(file=file)


def _rest(method: str, params: dict[str, Any]) -> tuple[str, str, Any]:
    if method == "SendMessage":
        return "POST", "message:send", params
    task = f"tasks/{quote(params['id'], safe='')}"
    return ("GET", task, None) if method == "GetTask" else ("POST", f"{task}:cancel", {})
