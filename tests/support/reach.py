"""Everything that can be asked of a hub, or of the server of one agent: taken from the application's own tables.

A path of a dialect has the dialect's name and its own (`a2a-1.0 get`), a JSON-RPC method that of its dialect and its
own (`a2a-1.0 GetTask`), a page its method and path (`GET /v1/keys`), a WebSocket its path (`ws /a2a/messages/ws`).
"""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.config import load
from dragoman.dialects import DIALECTS
from dragoman.dialects.directory.card import CANCEL_METHOD, STREAM_METHOD
from dragoman.dialects.directory.inbound import DISCOVER, EVENTS, REGISTER, TASK
from dragoman.model.http import HttpRequest
from dragoman.observe.calls import CallLog
from dragoman.ports.clock import SystemClock
from dragoman.sdk.serve.resident import AgentResident
from dragoman.server.app import living, load_secrets, sqlite_store
from dragoman.server.asgi import Application
from dragoman.server.drain import Drain
from dragoman.server.exchange import DialectRoute
from dragoman.server.mcp.route import REQUESTS, McpRoute
from dragoman.server.rpc import RpcRoute
from tests.support.ports import free_port
from tests.support.served_agent import make_agent

# The one dialect that claims its methods by how they begin.
BEGINNING: Final = {"a2a/": (REGISTER, DISCOVER, TASK, EVENTS, CANCEL_METHOD, STREAM_METHOD)}
JSON: Final = {b"content-type": b"application/json"}
AT: Final = datetime(2026, 1, 12, 10, tzinfo=UTC)


class Reached(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be asked: how, where, and the name under which the tables of the tests know it."""

    key: str
    method: str
    path: str
    rpc: str = ""  # the JSON-RPC method, where it is one
    dialect: str = ""
    cap: int = 0

    def __str__(self) -> str:
        return f"{self.key} at {self.method} {self.path}"


def everything(data: Path, *, one_agent: bool = False) -> tuple[Reached, ...]:
    """Whatever a hub serves, or the server of one agent."""
    return asyncio.run(_everything(data, one_agent=one_agent))


async def _everything(data: Path, *, one_agent: bool) -> tuple[Reached, ...]:
    settings = load({"port": str(free_port()), "data": str(data), "auth": "token"}, {}, None)
    clock, bus = SystemClock(), LocalBus()
    async with living(
        settings,
        load_secrets(settings),
        store=sqlite_store(settings, clock, bus),
        bus=bus,
        clock=clock,
        drain=Drain(),
        calls=CallLog(form="json", level="critical"),
        resident=AgentResident(make_agent(), settings, clock, register=None) if one_agent else None,
    ) as built:
        await asyncio.sleep(0)  # what runs beside the hub begins, before it is told to stop
        return _of(built)


def _of(app: Application) -> tuple[Reached, ...]:
    found: list[Reached] = []
    for method, path, target in app.routes:
        if isinstance(target, DialectRoute):
            slug = target.said(target.read(_request(method, path, target.name)))[1].slug
            key = f"{slug} {target.name}"
            found.append(Reached(key=key, method=method, path=path, dialect=slug, cap=target.cap))
        elif isinstance(target, RpcRoute):
            found.extend(_methods(target, path))
        elif isinstance(target, McpRoute) and method == "POST":
            found.extend(
                Reached(key=f"mcp {name}", method=method, path=path, rpc=name, dialect="mcp", cap=target.cap)
                for name in REQUESTS
            )
        else:
            found.append(Reached(key=f"{method} {path}", method=method, path=path, cap=target.cap))
    found.extend(Reached(key=f"ws {path}", method="WS", path=path) for path in app.socket_paths)
    return tuple(found)


def _methods(target: RpcRoute, path: str) -> list[Reached]:
    """The JSON-RPC methods that are claimed at a URL, and the bodies without a frame."""
    found: list[Reached] = []
    for dialect in DIALECTS.values():
        for name in sorted(dialect.methods) or BEGINNING.get(dialect.methods_begin, ()):
            task = {"id": f"{dialect.task_prefix}x", "taskId": f"{dialect.task_prefix}x"}
            asked = target.read(_request("POST", path, target.name, framed(name, task)))
            if target.said(asked)[1].slug == dialect.slug:
                key = f"{dialect.slug} {name}"
                found.append(Reached(key=key, method="POST", path=path, rpc=name, dialect=dialect.slug, cap=target.cap))
    unframed = msgspec.structs.replace(
        _request("POST", path, target.name, {"skill": "echo", "input": {}}), headers=JSON
    )
    if target.said(target.read(unframed))[1].slug == "platform":
        found.append(Reached(key="platform call", method="POST", path=path, dialect="platform", cap=target.cap))
    return found


def framed(method: str, params: Any) -> dict[str, Any]:
    """A JSON-RPC request."""
    return {"jsonrpc": "2.0", "id": "1", "method": method, "params": params}


def _request(method: str, path: str, route: str, body: Any = None) -> HttpRequest:
    return HttpRequest(
        method=method,
        url=path,
        headers={**JSON, b"a2a-version": b"1.0"},
        body=b"" if body is None else json.dumps(body).encode(),
        id="1",
        at=AT,
        route=route,
        params={"agent": "x", "task": "x", "call": "x", "config": "x", "uuid": "x", "org": "x", "name": "x"},
    )
