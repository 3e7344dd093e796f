"""What the stub callers of A2A 0.3 and of dotted share: one JSON-RPC URL per agent, tasks with a `kind`."""

import http.client
import itertools
import json
import os
from typing import Any
from urllib.parse import urlsplit

from tests.support.kind_parts import contents_of, parts_of
from tests.support.speaking import Content, Seen

_numbers = itertools.count(1)


class KindCaller:
    """A client that posts to an agent's base URL. The names of the methods are each dialect's own."""

    slug = ""
    send_method = ""
    get_method = ""
    cancel_method = ""
    id_name = "id"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Send a message in a context of its own."""
        message = self._message(content)
        message["metadata"] = {"dragoman": {"timeout_ms": timeout_ms}}
        return self._send(agent, message, wait=wait)

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """A further message: into the task if it asks for input, else into its context."""
        message = {**self._message(content), "contextId": first.context_id}
        if first.state == "input-required":
            message["taskId"] = first.task_id
        elif first.task_id is not None:
            message["referenceTaskIds"] = [first.task_id]
        return self._send(agent, message, wait=True)

    def get(self, agent: str, first: Seen) -> Seen:
        """The task again."""
        return self._rpc(agent, self.get_method, {self.id_name: first.task_id})

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel the task."""
        return self._rpc(agent, self.cancel_method, {self.id_name: first.task_id, "reason": "no longer needed"})

    def _message(self, content: Content) -> dict[str, Any]:
        number = f"msg-{os.getpid()}-{next(_numbers)}"
        return {"kind": "message", "messageId": number, "role": "user", "parts": parts_of(content)}

    def _send(self, agent: str, message: dict[str, Any], *, wait: bool) -> Seen:
        params: dict[str, Any] = {"message": message}
        if not wait:
            params["configuration"] = {"blocking": False}
        return self._rpc(agent, self.send_method, params)

    def _rpc(self, agent: str, method: str, params: dict[str, Any]) -> Seen:
        request_id = f"req-{next(_numbers)}"
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        status, answer = self._post(f"/agents/{agent}/", body)
        assert answer["jsonrpc"] == "2.0"
        assert answer["id"] == request_id
        assert ("result" in answer) is not ("error" in answer)
        if "error" in answer:
            error = answer["error"]
            return Seen(error=error["code"], message=error["message"], status=status, raw=answer)
        return seen_of(answer["result"], status, answer)

    def _post(self, path: str, body: Any) -> tuple[int, Any]:
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(self._hub.hostname or "", self._hub.port, timeout=60)
        try:
            connection.request("POST", path, json.dumps(body).encode(), headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


def seen_of(result: dict[str, Any], status: int, answer: Any) -> Seen:
    """A task, or a message that is the whole answer."""
    if result["kind"] == "message":
        return Seen(
            context_id=result["contextId"],
            state="completed",
            content=contents_of(result["parts"]),
            status=status,
            raw=answer,
        )
    assert result["kind"] == "task"
    said = result["status"].get("message")
    return Seen(
        task_id=result["id"],
        context_id=result["contextId"],
        state=result["status"]["state"],
        content=contents_of(part for artifact in result["artifacts"] for part in artifact["parts"]),
        message=said if isinstance(said, str) or said is None else "".join(each["text"] for each in said["parts"]),
        status=status,
        raw=answer,
    )
