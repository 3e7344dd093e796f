"""A small real HTTP server that speaks the JSON API of a hub, for tests of the command line.

It keeps agents and keys, carries calls out by a function in place of an agent, and remembers every request. A test may
set the answer to one method and path. Runs in a thread of the test's process, on a free port.
"""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple, Self
from urllib.parse import parse_qsl

import uvicorn

from dragoman.model.json import Json, JsonObject, is_object
from tests.cli.stub_editor import SKILLS, edit
from tests.support.ports import free_port

START_S = 10.0
CALLED = {
    "queued_at": "2026-01-12T10:00:00.000Z",
    "started_at": "2026-01-12T10:00:00.003Z",
    "completed_at": "2026-01-12T10:00:02.403Z",
    "duration_ms": 2400,
}
PUBLIC: Mapping[str, JsonObject] = {
    "/": {"name": "dragoman", "version": "9.9.9", "status": "ok"},
    "/readyz": {"status": "ok"},
}
KEY_ID = "k7f2Qx0aZ91b"
TRACE = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}

Scope = Mapping[str, Json]
Receive = Callable[[], Awaitable[Mapping[str, Json]]]
Send = Callable[[Mapping[str, Json]], Awaitable[None]]


class Seen(NamedTuple):
    """A request that arrived."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Json


def refusal(code: str, message: str, **details: Json) -> JsonObject:
    error: JsonObject = {"code": code, "message": message, "details": details, "retryable": False}
    return {"id": "a2a_call_0", "call_id": "a2a_call_0", "status": "failed", "error": error, "timing": {}}


def agent(agent_id: str, name: str, skills: list[JsonObject], **more: Json) -> JsonObject:
    card: JsonObject = {"id": agent_id, "name": name, "version": "1.0.0", "skills": skills}
    return {
        "id": agent_id,
        "uuid": "8a1b6f0e-3c2d-4f5a-9b7c-0d1e2f3a4b02",
        "name": name,
        "description": f"{name} of the tests",
        "version": "1.0.0",
        "dialect": "platform",
        "status": "active",
        "open": False,
        "private": False,
        "skills": [skill["name"] for skill in skills],
        "rating": 4.8,
        "response_time_p95_ms": 2500,
        "availability": 0.999,
        "endpoint": f"http://localhost:8700/v1/agents/{agent_id}/a2a",
        "base_url": f"http://localhost:8700/agents/{agent_id}/",
        "owner": "local",
        "tags": [],
        "registered_at": "2026-01-12T10:00:00.000Z",
        "updated_at": "2026-01-12T10:00:00.000Z",
        "card": card,
        **more,
    }


def some_agents() -> dict[str, JsonObject]:
    echo = {
        "name": "echo",
        "description": "Say it again",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    }
    plan = {
        "name": "plan",
        "description": "Takes every kind of value",
        "input_schema": {
            "type": "object",
            "properties": {
                "days": {"type": "integer"},
                "budget": {"type": "number"},
                "fast": {"type": "boolean"},
                "stops": {"type": "array", "items": {"type": "string"}},
                "options": {"type": "object"},
                "mode": {"enum": ["car", "train", 3]},
                "note": {"type": ["string", "null"]},
                "start": {"$ref": "#/$defs/place"},
                "end": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            },
            "$defs": {"place": {"type": "object"}},
            "additionalProperties": False,
        },
    }
    editor = agent("agt_editor", "Editor", SKILLS)
    return {
        "agt_editor": editor,
        "agt_echo": agent("agt_echo", "Echo", [echo], dialect="a2a-1.0", rating=4.5),
        "agt_eclipse": agent("agt_eclipse", "Eclipse", [plan], status="paused"),
    }


def some_deliveries() -> list[JsonObject]:
    shared: JsonObject = {
        "event": 3,
        "caller": "key:k7f2Qx0aZ91b",
        "replays": 0,
        "last_attempt_at": "2026-01-12T10:00:00.000Z",
        "created_at": "2026-01-12T10:00:00.000Z",
        "enabled": True,
        "disabled_reason": None,
    }
    different = [
        ("dlv_3", "parked", "http://127.0.0.1:9/done", 8, "HTTP 500", None),
        ("dlv_2", "pending", "http://127.0.0.1:9/done", 1, "connection refused", "2036-01-12T10:05:00.000Z"),
        ("dlv_1", "disabled", "https://gone.example/hook", 1, "HTTP 410", None),
    ]
    names = ("id", "state", "url", "attempts", "last_answer", "next_attempt_at")
    return [
        {**dict(zip(names, each, strict=True)), "call_id": f"a2a_call_{each[0][-1]}", **shared} for each in different
    ]


EVENTS: list[JsonObject] = [
    {"n": 1, "event": "status", "at": "2026-01-12T10:00:00.000Z", "data": {"status": "submitted"}},
    {"n": 2, "event": "sent", "at": "2026-01-12T10:00:00.003Z", "data": {"agent": "agt_editor", "attempt": 1}},
    {
        "n": 3,
        "event": "status",
        "at": "2026-01-12T10:00:01.200Z",
        "data": {"status": "working", "progress": 0.75, "message": "Reading"},
    },
    {
        "n": 4,
        "event": "artifact",
        "at": "2026-01-12T10:00:02.300Z",
        "data": {"id": "result", "parts": [{"kind": "text", "text": "Tides rise and fall. " * 9}]},
    },
    {"n": 5, "event": "status", "at": "2026-01-12T10:00:02.403Z", "data": {"status": "completed"}},
]


def some_calls() -> list[JsonObject]:
    """Calls in several states, as the hub shows one whole; in a list it shows less of each."""
    shared: JsonObject = {
        "agent": "agt_editor", "skill": "summarize", "caller": "key:k7f2Qx0aZ91b", "dialect": "platform",
        "agent_version": "1.0.0", "created_at": "2026-01-12T10:00:00.000Z", "updated_at": "2026-01-12T10:00:02.403Z",
        "started_at": "2026-01-12T10:00:00.003Z", "attempts": 1, "conversation_id": "conv_1", "parent_id": None,
        "trace_id": TRACE["trace_id"], "trace": TRACE, "input": {"content": "Tides."}, "callbacks": 0, "last_event": 5,
        "error": None, "error_code": None, "message": None, "question": None, "artifacts": [], "messages": [],
        "chain": [],
    }  # fmt: skip
    timing: JsonObject = {"queued_at": "2026-01-12T10:00:00.000Z", "deadline_at": "2026-01-12T10:00:30.000Z"}
    done = {**timing, "queued_ms": 3, "agent_ms": 2400, "total_ms": 2403}
    running = {**timing, "queued_ms": 3, "agent_ms": None, "total_ms": None}
    ended: JsonObject = {"ended_at": "2026-01-12T10:00:02.403Z", "duration_ms": 2403, "progress": None, "timing": done}
    going: JsonObject = {"ended_at": None, "duration_ms": None, "progress": 0.5, "timing": running, "usage": None}
    usage = {"tokens": 812, "cost_usd": 0.001}
    return [
        {
            "id": "a2a_call_7c1e",
            "status": "completed",
            "result": {"summary": "Tides."},
            "usage": usage,
            **shared,
            **ended,
        },
        {"id": "a2a_call_9d2b", "status": "working", "result": None, **shared, **going},
        {"id": "task-9d2b", "status": "input-required", "result": None, **shared, **going, "question": "Which city?"},
    ]


def span(depth: int, name: str, offset_ms: float, duration_ms: float | None, **more: Json) -> JsonObject:
    """A span as a trace shows it."""
    return {
        "span_id": f"{depth}{name}"[:16],
        "depth": depth,
        "name": name,
        "kind": "server" if name.startswith("invoke_agent") else "internal",
        "call_id": "a2a_call_7c1e",
        "status": "running" if duration_ms is None else "ok",
        "error_code": None,
        "offset_ms": offset_ms,
        "duration_ms": duration_ms,
        "attributes": {},
        **more,
    }


WATERFALL: JsonObject = {
    "trace_id": TRACE["trace_id"],
    "given_id": None,
    "status": "completed",
    "root": "a2a_call_7c1e",
    "agents": ["agt_editor", "agt_archive"],
    "calls": 2,
    "duration_ms": 2403.0,
    "truncated": False,
    "spans": [
        span(0, "invoke_agent Editor", 0.0, 2403.0, attributes={"a2a.skill": "summarize"}),
        span(1, "attempt", 3.0, 400.0, status="error", error_code="AGENT_UNAVAILABLE",
             attributes={"a2a.attempt": 1, "a2a.dialect.out": "a2a-1.0", "http.response.status_code": 503}),
        span(1, "attempt", 1400.0, 1003.0, attributes={"a2a.attempt": 2, "a2a.dialect.out": "a2a-1.0"}),
        span(2, "another owner", 1500.0, None, kind="server", call_id=None),
    ],
}  # fmt: skip


class StubHub:
    """The server; `requests` is what it was asked, `answers` what a test wants it to say."""

    def __init__(self, *, token: str | None = None) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.token = token
        self.agents = some_agents()
        self.keys: dict[str, JsonObject] = {KEY_ID: {"key_id": KEY_ID, "name": "old", "scopes": ["a2a:call"]}}
        self.deliveries: dict[str, JsonObject] = {one["id"]: one for one in some_deliveries()}
        self.calls: dict[str, JsonObject] = {one["id"]: one for one in some_calls()}
        self.requests: list[Seen] = []
        self.answers: dict[tuple[str, str], tuple[int, Json]] = {}
        self.asked = threading.Event()
        self.held: set[str] = set()
        self._release_s: float | None = None
        config = uvicorn.Config(
            self._app, interface="asgi3", port=self.port, log_config=None, lifespan="off", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        wait = threading.Event()
        for _ in range(int(START_S / 0.01)):
            if self._server.started:
                return self
            wait.wait(0.01)
        raise TimeoutError("the stub hub did not start")

    def __exit__(self, *raised: object) -> None:
        self._server.should_exit = True
        self._thread.join(START_S)

    def release_after(self, seconds: float) -> None:
        """Answer what is held after so many seconds."""
        self._release_s = seconds

    def last(self, path: str) -> Seen:
        return [seen for seen in self.requests if seen.path == path][-1]

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        data = b""
        while True:
            message = await receive()
            data += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        query = dict(parse_qsl(scope["query_string"].decode()))
        body: Json = json.loads(data) if data else None
        seen = Seen(scope["method"], scope["path"], query, headers, body)
        self.requests.append(seen)
        self.asked.set()
        if seen.path in self.held and await self._left(receive):
            return
        status, answer = self._answer(seen)
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        kind = b"text/html" if isinstance(answer, bytes) else b"application/json"
        head = [(b"content-type", kind), (b"content-length", str(len(text)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": head})
        await send({"type": "http.response.body", "body": text})

    async def _left(self, receive: Receive) -> bool:
        """A call that takes long: wait until the caller leaves, or the time is over."""
        try:
            async with asyncio.timeout(self._release_s):
                while (await receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True

    def _answer(self, seen: Seen) -> tuple[int, Json]:  # noqa: C901 - one line per path
        given = self.answers.get((seen.method, seen.path))
        if given is not None:
            return given
        if seen.path in PUBLIC:
            return 200, PUBLIC[seen.path]
        if self.token is not None and seen.headers.get("authorization") != f"Bearer {self.token}":
            return 401, refusal("AUTHORIZATION_ERROR", "Send a valid key: Authorization: Bearer ap_…")
        parts = seen.path.strip("/").split("/")
        match seen.method, parts:
            case "GET", ["v1", "a2a", "discover"]:
                return self._discover(seen.query)
            case "GET", ["v1", "a2a", "agents", agent_id, "card"] if agent_id in self.agents:
                return 200, self.agents[agent_id]["card"]
            case "POST", ["v1", "a2a", "call"]:
                return self._call(seen.body)
            case "POST", ["v1", "a2a", "registry"]:
                return self._register(seen.body)
            case _, ["v1", "agents", *rest]:
                return self._agents(seen, rest)
            case _, ["v1", "calls", *rest]:
                return self._calls(seen, rest)
            case "GET", ["v1", "traces", name] if name in (WATERFALL["trace_id"], WATERFALL["root"]):
                return 200, WATERFALL
            case _, ["v1", "keys", *rest]:
                return self._keys(seen, rest)
            case "POST", ["v1", "signing-keys", "rotate"]:
                at_once = bool(seen.body["now"])
                item = {"kid": "Z8Q0c1fHq7wFz0gW3v5Y", "signs_from": "2026-01-12T11:00:00.000Z", "signs": at_once}
                return 200, {"items": [item], "next_cursor": None}
            case _, ["v1", "deliveries", *rest]:
                return self._deliveries(seen, rest)
            case "GET", ["v1", "audit", "verify"]:
                figures: dict[str, Any] = {"done": 3, "total": 3, "acts": 2, "calls": 1, "unvouched": 0, "rows": []}
                found = {"ok": True, "broken": None, "vouches_since": CALLED["queued_at"], "signed_row": 3}
                return 200, {**figures, **found, "next_cursor": None}
            case "GET", ["v1", "settings"]:
                items = [
                    {"setting": "host", "value": "0.0.0.0", "source": "flag --host"},
                    {"setting": "auth", "value": "token", "source": "default"},
                ]
                return 200, {"items": items}
            case _:
                return 404, refusal("AGENT_NOT_FOUND", "There is no such agent.")

    def _discover(self, query: Mapping[str, str]) -> tuple[int, Json]:
        fields = ("id", "name", "skills", "rating", "response_time_p95_ms", "availability", "dialect", "status")
        fitting = [one for one in self.agents.values() if query.get("skill") in (None, *one["skills"])]
        fitting = [one for one in fitting if query.get("status") in (None, one["status"])]
        page, cursor = paged([{field: one[field] for field in fields} for one in fitting], query)
        return 200, {"agents": page, "total": len(fitting), "next_cursor": cursor}

    def _call(self, body: Json) -> tuple[int, Json]:
        common = {"id": "a2a_call_7c1e", "call_id": "a2a_call_7c1e"}
        if body["skill"] == "summarize":
            status, said = edit(body)
            if status != 200:
                return status, {**refusal(said["error"]["code"], said["error"]["message"]), **common}
        else:
            said = {"result": {"text": body["input"].get("text", "")}, "usage": {"tokens": 812}}
        return 200, {**common, "status": "completed", **said, "timing": CALLED, "trace": TRACE}

    def _register(self, body: Json) -> tuple[int, Json]:
        card = body.get("agent_card")
        name = card["name"] if is_object(card) else "Found"
        agent_id = body.get("id") or (card.get("id") if is_object(card) else None) or "agt_found"
        skills: list[JsonObject] = card.get("skills", []) if is_object(card) else []
        self.agents[agent_id] = agent(agent_id, name, skills)
        fields = ("id", "uuid", "name", "version", "dialect", "endpoint", "base_url")
        shown = {field: self.agents[agent_id][field] for field in fields}
        return 201, {**shown, "status": "registered", "token": "ap_once", "signing_secret": "whsec_once"}

    def _agents(self, seen: Seen, rest: list[str]) -> tuple[int, Json]:
        if not rest:
            items = [{name: one[name] for name in one if name != "card"} for one in self.agents.values()]
            page, cursor = paged(items, seen.query)
            return 200, {"items": page, "next_cursor": cursor}
        found = self.agents.get(rest[0])
        if found is None:
            return 404, refusal("AGENT_NOT_FOUND", "There is no such agent.")
        if rest[1:] == ["versions"]:
            return 200, {"items": ["1.0.0", "0.9.0"]}
        if seen.method == "PATCH":
            found |= seen.body
        if seen.method == "DELETE":
            del self.agents[rest[0]]
            found = {**found, "status": "removed"}
        return 200, found

    def _keys(self, seen: Seen, rest: list[str]) -> tuple[int, Json]:
        if not rest and seen.method == "GET":
            return 200, {"items": list(self.keys.values()), "next_cursor": None}
        if not rest or rest[1:] == ["rotate"]:
            key_id = f"k{len(self.keys)}f2Qx0aZ91b"
            given = seen.body if not rest else {"name": self.keys[rest[0]]["name"], "scopes": ["a2a:call"]}
            item: JsonObject = {"key_id": key_id, "created_at": "2026-01-12T10:00:00.000Z", "revoked_at": None, **given}
            self.keys[key_id] = item
            return 201, {**item, "key": f"ap_{key_id}_{'0123456789abcdef' * 3}", "signing_secret": "whsec_c2VjcmV0"}
        self.keys[rest[0]]["revoked_at"] = "2026-01-12T11:00:00.000Z"
        return 200, self.keys[rest[0]]

    def _calls(self, seen: Seen, rest: list[str]) -> tuple[int, Json]:
        if not rest and seen.method == "DELETE":
            return 200, {"forgotten": 3, "cancelled": 0, "note": "Backups keep it.", "next_cursor": None}
        if not rest:
            prefix = seen.query.get("prefix", "")
            page, cursor = paged([one for one in self.calls.values() if one["id"].startswith(prefix)], seen.query)
            return 200, {"items": page, "next_cursor": cursor}
        found = self.calls.get(rest[0])
        if found is None:
            return 404, refusal("CALL_NOT_FOUND", f"There is no call or task {rest[0]!r}.", call_id=rest[0])
        if rest[1:] == ["events"]:
            return 200, {"items": EVENTS, "next_cursor": None}
        if rest[1:] == ["cancel"]:
            found |= {"status": "canceled"}
        return 200, found

    def _deliveries(self, seen: Seen, rest: list[str]) -> tuple[int, Json]:
        if not rest:
            fitting = [
                one
                for one in self.deliveries.values()
                if seen.query.get("state") in (None, one["state"]) and seen.query.get("url") in (None, one["url"])
            ]
            page, cursor = paged(fitting, seen.query)
            return 200, {"items": page, "next_cursor": cursor}
        if rest == ["replay"]:
            known = [self.deliveries[each] for each in seen.body["ids"] if each in self.deliveries]
            for one in known:
                one["state"] = "pending"
            return 200, {"items": known, "next_cursor": None}
        found = self.deliveries.get(rest[0])
        if found is None:
            return 404, refusal("NOT_FOUND", "There is no such delivery.")
        found |= {"state": "pending"} if rest[1:] == ["replay"] else seen.body
        return 200, found


def paged(items: list[JsonObject], query: Mapping[str, str]) -> tuple[list[JsonObject], str | None]:
    start, size = int(query.get("cursor", "0")), int(query.get("limit", "20"))
    return items[start : start + size], str(start + size) if start + size < len(items) else None
