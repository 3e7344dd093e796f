"""What the end-to-end tests of the streams of A2A 0.3 and of dotted share: how they are asked for, and read."""

import contextlib
from collections.abc import Generator
from typing import Any, Final

from tests.end_to_end.world import fresh
from tests.support.hub import HubProcess
from tests.support.kind_streamer import DOTTED, REST, V03, KindStreamer
from tests.support.sse_client import SseItem, SseStream, sse

STREAM: Final = {V03: "message/stream", DOTTED: "message.stream"}
PUSH: Final = "tasks/pushNotificationConfig"
Shown = dict[str, Any]


def joined(hub: HubProcess, agent: KindStreamer) -> str:
    """The agent's id at the hub, once it is registered there."""
    found: str = hub.register(agent.card(fresh("streamer")), id=fresh())["id"]
    return found


def message_of(wire: str, text: str, **more: Any) -> Shown:
    """A message as callers on this wire write it."""
    if wire == REST:
        return {"messageId": fresh("m"), "role": "ROLE_USER", "content": [{"text": text}], **more}
    parts = [{"kind": "text", "text": text}]
    return {"kind": "message", "messageId": fresh("m"), "role": "user", "parts": parts, **more}


@contextlib.contextmanager
def called(
    hub: HubProcess, wire: str, agent: str, message: Shown | str = "tides", *, path: str = "", **how: Any
) -> Generator[SseStream]:
    """The stream of a call; what is more is the configuration, `key` an Idempotency-Key."""
    headers = {"Authorization": f"Bearer {how.pop('token', hub.token)}"}
    if key := how.pop("key", ""):
        headers["Idempotency-Key"] = key
    given = message_of(wire, message) if isinstance(message, str) else message
    body: Any = {"message": given, **({"configuration": how} if how else {})}
    url = f"{hub.url}/agents/{agent}{path}"
    if wire == REST:
        url += "/v1/message:stream"
    else:
        body = {"jsonrpc": "2.0", "id": "req-1", "method": STREAM[wire], "params": body}
    with sse(url, body, headers=headers) as stream:
        yield stream


@contextlib.contextmanager
def followed(
    hub: HubProcess, wire: str, agent: str, task_id: str, *, after: str = "", get: bool = False, token: str = ""
) -> Generator[SseStream]:
    """The stream of a task that there is, from now on or after a number; over HTTP by POST or by GET."""
    headers = {"Authorization": f"Bearer {token or hub.token}"}
    if after:
        headers["Last-Event-ID"] = after
    url = f"{hub.url}/agents/{agent}"
    body: Any = {"jsonrpc": "2.0", "id": "req-2", "method": "tasks/resubscribe", "params": {"id": task_id}}
    if wire == REST:
        url += f"/v1/tasks/{task_id}:subscribe"
        body = None if get else b"{}"
    with sse(url, body, headers=headers) as stream:
        yield stream


def told(wire: str, item: SseItem) -> tuple[str, Shown]:
    """What an event is, and the object in it."""
    if wire != REST:
        assert set(item.data) == {"jsonrpc", "id", "result"}, item
        return item.data["result"]["kind"], item.data["result"]
    ((name, shown),) = item.data.items()
    return {"task": "task", "statusUpdate": "status-update", "artifactUpdate": "artifact-update"}[name], shown


def kinds(wire: str, items: list[SseItem]) -> list[str]:
    """What each event is."""
    return [told(wire, item)[0] for item in items]


def text(wire: str, items: list[SseItem]) -> str:
    """The words of the artifacts, as a reader puts them together."""
    whole = ""
    for kind, shown in (told(wire, item) for item in items):
        made = [shown["artifact"]] if kind == "artifact-update" else shown.get("artifacts", [])
        words = "".join(part["text"] for artifact in made for part in artifact["parts"])
        replaces = kind == "task" or (kind == "artifact-update" and not shown["append"])
        whole = words if replaces else whole + words
    return whole


def state(wire: str, item: SseItem) -> str:
    """The state that an event tells, in 0.3's own spelling."""
    said: str = told(wire, item)[1]["status"]["state"]
    return said.removeprefix("TASK_STATE_").lower().replace("_", "-")


def task_id(wire: str, item: SseItem) -> str:
    """The task that the first event of a stream shows."""
    kind, shown = told(wire, item)
    assert kind == "task"
    found: str = shown["id"]
    return found
