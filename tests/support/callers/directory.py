"""A caller of the directory's dialect: looks the agent up, and sends it a task through the hub.

Published clients post to the endpoint of the record, which for an agent of this dialect is the agent itself; this one
always posts to the hub, since the hub is what is tested.
"""

import base64
import binascii
import http.client
import itertools
import json
import os
import threading
from typing import Any
from urllib.parse import quote, urlsplit

from dragoman.model.json import is_array, is_object
from tests.support.speaking import Content, File, Seen

_numbers = itertools.count(1)
_REFUSALS = frozenset({"no_agent", "task_not_found", "finished", "unavailable", "overloaded", "draining"})


class DirectoryCaller:
    """Sends tasks to agents at a hub."""

    slug = "directory"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Send a task; without `wait` its answer is left to a thread, for the dialect answers at the end alone."""
        task_id = f"task-{os.getpid()}-{next(_numbers)}"
        if wait:
            return self._task(agent, task_id, content, timeout_ms)
        threading.Thread(target=self._task, args=(agent, task_id, content, timeout_ms), daemon=True).start()
        return Seen(task_id=task_id, state="submitted")

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """Another task: the dialect has no conversations."""
        return self.call(agent, content)

    def get(self, agent: str, first: Seen) -> Seen:
        """There is no such word."""
        raise NotImplementedError("a directory's task cannot be asked after")

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel by the name under which the task was sent."""
        return self._rpc(agent, "a2a/cancel", {"taskId": first.task_id}, f"cancel-{first.task_id}")

    def _task(self, agent: str, task_id: str, content: Content, timeout_ms: int) -> Seen:
        status, record = self._request("GET", f"/a2a/agents/{quote(agent, safe='')}")
        if status != 200:
            return Seen(status=status, message=record.get("error"), raw=record)
        params = {
            "taskId": task_id,
            "action": (record["capabilities"] or [""])[0],
            "sender": "directory-caller",
            "input": _input(content),
            "timeoutMs": timeout_ms,
        }
        return self._rpc(agent, "a2a/task", params, task_id)

    def _rpc(self, agent: str, method: str, params: dict[str, Any], request_id: str) -> Seen:
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        status, answer = self._request("POST", f"/agents/{quote(agent, safe='')}/", body)
        error = answer.get("error")
        if error is not None:
            return _refused(status, error, answer)
        result = answer["result"]
        states = {"completed": "completed", "cancelled": "canceled"}
        return Seen(
            task_id=result["taskId"],
            state=states[result["status"]],
            content=_contents(result.get("output") or {}),
            status=status,
            raw=answer,
        )

    def _request(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(self._hub.hostname or "", self._hub.port, timeout=60)
        try:
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


def _refused(status: int, error: Any, answer: Any) -> Seen:
    if not is_object(error):
        return Seen(status=status, message=str(error), raw=answer)
    data: dict[str, Any] = error.get("data") or {}
    reason = data.get("reason")
    ended = error["code"] in (-32001, -32002) and reason not in _REFUSALS
    return Seen(
        task_id=data.get("taskId"),
        state=("rejected" if reason == "rejected" else "failed") if ended else None,
        message=data.get("message") or error["message"],
        error=error["code"],
        status=status,
        raw=answer,
    )


def _input(content: Content) -> dict[str, Any]:
    if content.text is not None and content.data is None and content.file is None:
        return {"text": content.text}
    if is_object(content.data) and content.text is None and content.file is None:
        return content.data
    parts: list[dict[str, Any]] = []
    if content.text is not None:
        parts.append({"kind": "text", "text": content.text})
    if content.data is not None:
        parts.append({"kind": "data", "data": content.data})
    if content.file is not None:
        parts.append({"kind": "file", "file": _shown_file(content.file)})
    return {"parts": parts}


def _shown_file(file: File) -> dict[str, str]:
    shown = {"bytes": base64.b64encode(file.raw).decode()} if file.raw is not None else {"uri": file.uri or ""}
    if file.name:
        shown["name"] = file.name
    if file.media_type:
        shown["mimeType"] = file.media_type
    return shown


def _contents(output: dict[str, Any]) -> tuple[Content, ...]:
    if not output:
        return ()
    if output.keys() == {"text"} and isinstance(output["text"], str):
        return (Content(text=output["text"]),)
    if output.keys() == {"parts"} and is_array(output["parts"]):
        return tuple(_content(part) for part in output["parts"])
    return (Content(data=output),)


def _content(part: dict[str, Any]) -> Content:
    match part:
        case {"kind": "text", "text": str(text)}:
            return Content(text=text)
        case {"kind": "data", "data": data}:
            return Content(data=data)
        case {"kind": "file", "file": {"bytes": str(raw), **more}}:
            return Content(file=File(raw=_bytes(raw), name=more.get("name"), media_type=more.get("mimeType")))
        case {"kind": "file", "file": {"uri": str(uri), **more}}:
            return Content(file=File(uri=uri, name=more.get("name"), media_type=more.get("mimeType")))
        case _:
            raise AssertionError(f"no part that a directory's caller knows: {part}")


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise AssertionError("a file's bytes are base64") from error
