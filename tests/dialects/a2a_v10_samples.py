"""Requests of A2A 1.0 in both framings, and what the tests of that dialect look at."""

import json
from collections.abc import Mapping
from typing import Any, Final

from dragoman.dialects.a2a_v10 import DIALECT
from dragoman.dialects.dialect import Exchange, Outgoing, Verb
from dragoman.model.agent import Agent, AgentCard, Binding, Endpoint
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import SendTask, Unreadable
from dragoman.model.task import Task
from tests.dialects.goldens import AT, HUB

VERSION: Final = {"a2a-version": "1.0"}
JSON: Final = {"content-type": "application/json"}


def rpc(method: str, params: Any = None, *, url: str = "/agents/agt_target", **headers: str) -> HttpRequest:
    """A JSON-RPC request; a header is named with underscores, an empty one is left out."""
    frame: dict[str, Any] = {"jsonrpc": "2.0", "id": "r1", "method": method}
    if params is not None:
        frame["params"] = params
    return raw_rpc(json.dumps(frame).encode(), url=url, **headers)


def raw_rpc(body: bytes, *, url: str = "/agents/agt_target", **headers: str) -> HttpRequest:
    """Any bytes where JSON-RPC is expected."""
    return _request("POST", url, "rpc", body, {}, headers)


def rest(
    verb: str, path: str, route: str, body: Any = None, *, task: str = "", config: str = "", **headers: str
) -> HttpRequest:
    """A request of the HTTP binding at an agent's base."""
    data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
    named = {"task": task} if task else {}
    return _request(
        verb, f"/agents/agt_target{path}", route, data, named | ({"config": config} if config else {}), headers
    )


def _request(
    verb: str, url: str, route: str, body: bytes, params: Mapping[str, str], headers: Mapping[str, str]
) -> HttpRequest:
    given = {**VERSION, **JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
    at_base = url.startswith("/agents/")
    return HttpRequest(
        method=verb,
        url=url,
        headers={name.encode(): value.encode() for name, value in given.items() if value},
        body=body,
        id="1",
        at=AT,
        route=route,
        params={**params, **({"agent": url.split("/")[2].partition("?")[0]} if at_base else {})},
        hub=HUB,
    )


def read(request: HttpRequest) -> Exchange:
    """The exchange of a request."""
    assert DIALECT.read is not None
    return DIALECT.read(request)


def sent(request: HttpRequest) -> SendTask:
    """What a send asks."""
    operation = read(request).operation
    assert isinstance(operation, SendTask), operation
    return operation


def refusal(request: HttpRequest) -> tuple[HttpReply, dict[str, Any]]:
    """The reply to a request that makes no sense, and its error."""
    exchange = read(request)
    assert isinstance(exchange.operation, Unreadable), exchange.operation
    return shown_error(exchange, exchange.operation.error)


def shown_error(exchange: Exchange, error: DragomanError) -> tuple[HttpReply, dict[str, Any]]:
    """How an exchange says an error."""
    reply = exchange.refuse(error)
    body: dict[str, Any] = json.loads(reply.body)
    shown: dict[str, Any] = body["error"]
    return reply, shown


def message(*parts: Any, **more: Any) -> dict[str, Any]:
    """A message of the caller's."""
    return {"messageId": "m1", "role": "ROLE_USER", "parts": list(parts) or [{"text": "hi"}], **more}


def outgoing(verb: Verb, task: Task, *, binding: Binding = Binding.JSONRPC, **more: Any) -> Outgoing:
    """A request to an agent, before it is put into words."""
    url, tenant = more.pop("url", "http://agent.test/a2a/"), more.pop("tenant", None)
    version = more.pop("version", None)
    asked: SendTask = more.pop("asked", task.asked)
    return Outgoing(
        verb=verb,
        task=task,
        asked=asked,
        endpoint=Endpoint(dialect=DIALECT.slug, binding=binding, url=url, tenant=tenant, version=version),
        at=AT,
        message=asked.message if verb in (Verb.SEND, Verb.STREAM) else None,
        timeout_ms=20_000,
        **more,
    )


def agent_of(card: AgentCard, **more: Any) -> Agent:
    """An agent with this card."""
    return Agent(
        card=card,
        uuid="0f0e0d0c-0b0a-4908-8706-050403020100",
        tenant="default",
        owner_id="key_owner",
        registered_at=AT,
        updated_at=AT,
        **more,
    )


def fields_of(error: dict[str, Any]) -> set[str]:
    """The fields that an error names, in either framing."""
    details: list[dict[str, Any]] = error.get("data") or error["details"]
    assert details[0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    return {each["field"] for detail in details[1:] for each in detail["fieldViolations"]}
