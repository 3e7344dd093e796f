"""A caller of the eighth dialect, the one that is added for a test."""

import http.client
import json
from base64 import b64decode, b64encode
from typing import Any
from urllib.parse import urlsplit

from tests.support.speaking import Content, File, Seen


class EighthCaller:
    """Posts to /eighth."""

    slug = "eighth"

    def __init__(self, hub_url: str, token: str = "") -> None:
        self._hub = urlsplit(hub_url)
        self._token = token

    def call(self, agent: str, content: Content, *, timeout_ms: int = 20_000, wait: bool = True) -> Seen:
        """Send a message."""
        return self._post({"do": "send", "to": agent, "say": [part_of(content)], "ms": timeout_ms, "wait": wait})

    def follow_up(self, agent: str, first: Seen, content: Content) -> Seen:
        """A further message: into the task if it asks for input, else into its context."""
        said = {"do": "send", "to": agent, "say": [part_of(content)], "context": first.context_id}
        return self._post({**said, "task": first.task_id} if first.state == "input-required" else said)

    def get(self, agent: str, first: Seen) -> Seen:
        """The task again."""
        return self._post({"do": "get", "task": first.task_id})

    def cancel(self, agent: str, first: Seen) -> Seen:
        """Cancel the task."""
        return self._post({"do": "cancel", "task": first.task_id})

    def _post(self, said: dict[str, Any]) -> Seen:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        connection = http.client.HTTPConnection(self._hub.hostname or "", self._hub.port, timeout=60)
        try:
            connection.request("POST", "/eighth", json.dumps(said).encode(), headers)
            reply = connection.getresponse()
            body = json.loads(reply.read())
        finally:
            connection.close()
        if "wrong" in body:
            return Seen(error=body["wrong"], message=body["why"], status=reply.status, raw=body)
        return Seen(
            task_id=body["task"],
            context_id=body["context"],
            state=body["state"],
            content=tuple(content_of(part) for part in body.get("say", [])),
            message=body.get("words"),
            status=reply.status,
            raw=body,
        )


def part_of(content: Content) -> dict[str, Any]:
    """A content as one part."""
    if content.text is not None:
        return {"kind": "text", "text": content.text}
    if content.file is None:
        return {"kind": "data", "data": content.data}
    file = content.file
    place = {"uri": file.uri} if file.raw is None else {"bytes": b64encode(file.raw).decode()}
    about = {"name": file.name, "mimeType": file.media_type}
    return {"kind": "file", "file": {**place, **{name: value for name, value in about.items() if value}}}


def content_of(part: dict[str, Any]) -> Content:
    """One part as a content."""
    if part["kind"] == "text":
        return Content(text=part["text"])
    if part["kind"] == "data":
        return Content(data=part["data"])
    file = part["file"]
    raw = b64decode(file["bytes"]) if "bytes" in file else None
    return Content(file=File(raw=raw, uri=file.get("uri"), name=file.get("name"), media_type=file.get("mimeType")))
