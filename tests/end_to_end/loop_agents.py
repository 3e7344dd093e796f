"""Agents that call on: each takes a call in its dialect, calls the next one through the hub in the same dialect, and
passes on what that dialect lets it pass on. A few bytes on a socket each; nothing of the hub's code."""

import contextlib
import json
from collections.abc import Generator, Mapping
from typing import Any, Final
from uuid import uuid4

from dragoman.model.json import Json, is_array, is_object
from tests.end_to_end.every_dialect import Asked, asked
from tests.end_to_end.world import fresh
from tests.support.hub import HubProcess, Reply
from tests.support.speaking import StubAgent, json_answer, serving

# What an agent of each dialect can pass on without knowing anything of hubs.
CUSTOMARY: Final = {
    "platform": "name",
    "envelope": "block",
    "dotted": "block",
    "a2a-1.0": "block",
    "a2a-0.3": "conversation",
    "agentvault": "block",
    "directory": "span",
}
TRACE: Final = "4bf92f3577b34da6a3ce929d0e0e4736"

Answer = tuple[int, Mapping[str, str], bytes]


class Link:
    """One agent of a chain: whom it calls on, once, what it passes on (nothing: ""), and what it was answered."""

    def __init__(self, slug: str, hub: HubProcess) -> None:
        self.slug = slug
        self.hub = hub
        self.stub = StubAgent(slug)
        self.passes = CUSTOMARY[slug]
        self.calls_on: Link | None = None
        self.token = ""
        self.id = ""
        self.uuid = ""
        self.usage: dict[str, Any] = {}  # what it says that it used
        self.answered: list[Reply] = []
        self.said: list[dict[str, Any]] = []

    def handle(self, method: str, _path: str, headers: Mapping[str, str], body: Any) -> Answer:
        """Take a call, call on, and answer it."""
        if method != "POST":
            return json_answer({"error": "not here"}, 404)
        if self.slug == "envelope" and body["type"] != "task_assignment":
            return json_answer({"status": "success", "message_id": body["message_id"]})
        if body.get("method") == "tasks/sendSubscribe":
            error = {"code": -32601, "message": "Method not found"}
            return json_answer({"jsonrpc": "2.0", "id": body["id"], "error": error})
        if body.get("method") != "tasks/get":
            self.said.append(body)
            if self.calls_on is not None and len(self.said) == 1:
                self.answered.append(self._call(self.calls_on, headers, body))
        return json_answer(_answer(self.slug, body, self.usage))

    def _call(self, to: "Link", headers: Mapping[str, str], body: Any) -> Reply:
        request = asked(self.slug, to.id, "further", sender=self.uuid, context=self._conversation(body))
        _put_in(request.body, self.slug, self._told(body))
        return request.post(self.hub, self.token, **self._trace(headers))

    def _conversation(self, body: Any) -> str | None:
        if self.passes != "conversation":
            return None
        context: str = body["context"]["conversation_id"] if self.slug == "platform" else _message(body)["contextId"]
        return context

    def _told(self, body: Any) -> dict[str, Any]:
        """What stands beside the message."""
        match self.passes, self.slug:
            case "name", "platform":
                return {"parent_execution_id": body["call_id"]}
            case "name", _:
                return {"dragoman": {"parent": _block(self.slug, body)["call_id"]}}
            case "block", _:
                return {"dragoman": _block(self.slug, body)}
            case _:
                return {}

    def _trace(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The trace as it came; or, as those do that trace themselves, with a span of its own."""
        given = headers["traceparent"]
        if self.passes == "span":
            return {"traceparent": given}
        if self.passes == "spelled":
            return {"X_Trace_ID": headers["x-trace-id"], "X_Span_ID": headers["x-span-id"]}
        return {"traceparent": f"{given[:36]}00f067aa0ba902b7-01"} if self.passes == "trace" else {}


@contextlib.contextmanager
def chain(hub: HubProcess, *slugs: str) -> Generator[list[Link]]:
    """Agents of these dialects at the hub, each calling the next, the last one the first."""
    with contextlib.ExitStack() as stack:
        links = [Link(slug, hub) for slug in slugs]
        for place, link in enumerate(links):
            stack.enter_context(serving(link.stub, link.handle))
            answer = hub.register(_card(link.slug, link.stub.url), id=fresh(f"agt_{place}"))
            link.id, link.uuid, link.token = answer["id"], answer["uuid"], answer.get("token", "")
            link.calls_on = links[(place + 1) % len(links)]
        yield links


def shown_chain(reply: Reply) -> list[str]:
    """The chain that a refusal names, wherever its dialect puts it."""
    found = _find(reply.json)
    assert found is not None, reply.body
    return found


def begun(hub: HubProcess, first: Link) -> Reply:
    """The call that begins it all, from outside."""
    request: Asked = asked("platform", first.id, "begin")
    return request.post(hub)


def _find(value: Json) -> list[str] | None:
    inside: list[Json] = value if is_array(value) else []
    if is_object(value):
        named: Json = value.get("chain")
        if isinstance(named, list | str):
            return json.loads(named if isinstance(named, str) else json.dumps(named))  # A2A 1.0 has facts as strings.
        inside = list(value.values())
    return next((found for each in inside if (found := _find(each)) is not None), None)


def _message(body: Any) -> Any:
    return body["params"]["message"]


def _block(slug: str, body: Any) -> dict[str, Any]:
    holder = body["payload"] if slug == "envelope" else _message(body)
    block: dict[str, Any] = holder["metadata"]["dragoman"]
    return block


def _put_in(body: dict[str, Any], slug: str, told: dict[str, Any]) -> None:
    """Beside the message, where the dialect has a place for it."""
    if not told:
        return
    if slug == "platform":
        body["context"] = {**body.get("context", {}), **told}
    elif slug == "envelope":
        body["payload"]["metadata"] = told
    else:
        body["params"]["message"]["metadata"] = told


def _answer(slug: str, body: Any, usage: dict[str, Any]) -> dict[str, Any]:
    """What an agent of a dialect answers that has done its work; what it used, where the dialect has a place for it."""
    about = {"metadata": {"usage": usage}} if usage else {}
    match slug:
        case "platform":
            return {"status": "completed", "result": {"text": "done"}, **({"usage": usage} if usage else {})}
        case "envelope":
            payload = {"task_id": body["payload"]["task_id"], "status": "completed", "result": {"text": "done"}}
            payload |= about
            return {"status": "success", "type": "task_completion", "payload": payload}
        case "directory":
            result: dict[str, Any] = {"taskId": body["params"]["taskId"], "status": "completed", "output": {}}
        case "agentvault":
            at = "2026-01-12T10:00:00.000Z"
            result = {"id": "t-1", "state": "COMPLETED", "createdAt": at, "updatedAt": at, "messages": [], **about}
            result = result if body["method"] == "tasks/get" else {"id": "t-1"}
        case "a2a-1.0":
            made = {"artifactId": "a-1", "parts": [{"text": "done"}]}
            task = {"id": "t-1", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": [made]}
            result = {"task": {**task, **about}}
        case _:
            made = {"artifactId": "a-1", "parts": [{"kind": "text", "text": "done"}]}
            result = {"kind": "task", "id": "t-1", "status": {"state": "completed"}, "artifacts": [made], **about}
    return {"jsonrpc": "2.0", "id": body["id"], "result": result}


def _card(slug: str, url: str) -> dict[str, Any]:
    """A small card of a dialect."""
    name, skill = fresh("Link"), {"id": "echo", "name": "echo", "description": "Calls on", "tags": ["t"]}
    said = {"name": name, "description": "Calls on", "version": "1.0.0", "skills": [skill]}
    match slug:
        case "platform":
            return {**said, "endpoint": url}
        case "envelope":
            return {
                "id": str(uuid4()), "name": name, "version": "1.0.0", "capabilities": ["custom"], "endpoint": url,
                "supported_tasks": ["echo"],
            }  # fmt: skip
        case "directory":
            return {"agentId": name, "name": name, "capabilities": ["echo"], "endpoint": url, "methods": ["a2a/task"]}
        case "agentvault":
            return {
                **said, "schemaVersion": "1.0", "humanReadableId": f"links/{name}", "agentVersion": "1.0.0",
                "url": url, "provider": {"name": "Links"}, "capabilities": {"a2aVersion": "0.2"},
                "authSchemes": [{"scheme": "none"}],
            }  # fmt: skip
        case "a2a-1.0":
            interface = {"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
            return {**said, "supportedInterfaces": [interface]}
        case "a2a-0.3":
            return {**said, "protocolVersion": "0.3.0", "url": url, "preferredTransport": "JSONRPC"}
        case _:
            return {**said, "url": url}
