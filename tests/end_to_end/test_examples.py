"""The documents of the platform's specification: what it sends is taken, what it shows is what the hub answers."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from dragoman.model.json import is_array, is_object
from tests.end_to_end.world import call_line, holds, join, says
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

EXAMPLES: Final = Path(__file__).parents[1] / "examples" / "platform"


def _example(name: str) -> Any:
    return json.loads((EXAMPLES / f"{name}.json").read_text())


def _fits(found: Any, shown: Any, place: str = "$") -> list[str]:
    """Where an answer lacks what the example shows, or has it in another form; what it has beside that is its own."""
    if is_object(shown):
        if not is_object(found):
            return [f"{place} is no object"]
        return [
            fault
            for name, value in shown.items()
            for fault in (
                _fits(found[name], value, f"{place}.{name}") if name in found else [f"{place}.{name} is missing"]
            )
        ]
    if is_array(shown):
        if not is_array(found):
            return [f"{place} is no list"]
        return [fault for each in found for fault in _fits(each, shown[0], f"{place}[]")] if shown else []
    number = isinstance(shown, int | float) and not isinstance(shown, bool)
    same = isinstance(found, int | float) if number else type(found) is type(shown)
    return [] if same else [f"{place} is {found!r}, shown as {shown!r}"]


@pytest.fixture
def researcher(hub: HubProcess, agent: PlatformAgent) -> dict[str, Any]:
    """The document's agent, at an address of this machine."""
    card = _example("registry-request")["agent_card"] | {"endpoint": agent.endpoint}
    card["skills"].append({"name": "deep_research", "description": "Digs", "input_schema": {"type": "object"}})
    answer = _example("agent-answer")
    agent.respond = says(answer)
    hub.register(card)
    return card


def test_the_documents_registration_is_taken_and_answered_as_shown(hub: HubProcess) -> None:
    body = _example("registry-request")
    body["agent_card"]["id"] = "agt_documented"
    reply = hub.post("/v1/a2a/registry", body)
    assert reply.status == 201
    assert _fits(reply.json, _example("registry-response")) == []
    assert set(reply.json) == set(_example("registry-response"))
    # The card keeps every member it came with.
    shown = hub.get("/v1/a2a/agents/agt_documented/card").json
    assert shown == {**_example("agent-card"), "id": "agt_documented"}


def test_the_documents_limits_are_taken(hub: HubProcess, agent: PlatformAgent) -> None:
    answer = join(hub, agent, **_example("rate-limits"))
    card = hub.get(f"/v1/a2a/agents/{answer['id']}/card").json
    assert card["rate_limits"] == _example("rate-limits")["rate_limits"]


def test_discovery_answers_as_shown(hub: HubProcess, researcher: dict[str, Any]) -> None:
    page = hub.get("/v1/a2a/discover?skill=web_search&min_rating=4.0").json
    assert page["agents"]
    shown = _example("discover-response")
    assert _fits({**page, "next_cursor": "…"}, shown) == []
    assert list(page) == list(shown)


def test_the_documents_call_is_carried_out_and_answered_as_shown(
    hub: HubProcess, agent: PlatformAgent, researcher: dict[str, Any]
) -> None:
    headers = {"X-Request-ID": "req_123abc", "X-Trace-ID": "trace_456def", "X-Span-ID": "span_789ghi"}
    reply = hub.post("/v1/a2a/call", _example("call-request"), headers)
    assert reply.status == 200, reply.body
    assert _fits(reply.json, _example("call-response")) == []
    assert reply.json["result"] == _example("agent-answer")["result"]
    assert reply.json["usage"] == _example("agent-answer")["usage"]
    assert reply.json["trace"]["trace_id"] == "trace_456def"
    sent = agent.requests[0][2]
    assert _fits(sent, _example("agent-request")) == []
    assert sent["input"] == _example("agent-request")["input"]
    status = hub.get(f"/v1/a2a/call/{reply.json['id']}/status").json
    assert _fits(status, _example("status-completed")) == []
    assert set(status) == set(_example("status-completed"))
    assert _fits(call_line(hub, reply.json["id"]), _example("log-line")) == []


def test_the_bodies_of_stream_and_async_calls_are_taken_on_call_too(
    hub: HubProcess, agent: PlatformAgent, researcher: dict[str, Any]
) -> None:
    agent.respond = says({"result": {"summary": "short"}})
    for name in ("call-stream-request", "call-async-request"):
        reply = hub.post("/v1/a2a/call", _example(name))
        assert reply.status == 200, reply.body
        assert reply.json["result"] == {"summary": "short"}


def test_the_agents_failure_is_answered_as_shown(
    hub: HubProcess, agent: PlatformAgent, researcher: dict[str, Any]
) -> None:
    said = _example("agent-answer-error")
    agent.respond = says(said)
    reply = hub.call("summarize", {"content": "x"}, researcher["id"])
    assert reply.status == 502
    assert reply.json["error"] == {
        **said["error"],
        "details": {**said["error"]["details"], "agent_code": "AGENT_ERROR"},
    }


def test_a_timeout_is_answered_and_told_to_the_agent_as_shown(
    hub: HubProcess, agent: PlatformAgent, researcher: dict[str, Any]
) -> None:
    agent.respond = holds(agent)
    reply = hub.call("summarize", {"content": "x"}, researcher["id"], options={"timeout_ms": 200})
    assert reply.status == 504
    shown = _example("call-error-response")
    assert _fits(reply.json, shown) == []
    assert reply.json["error"]["message"] == shown["error"]["message"]
    assert reply.json["error"]["details"].keys() == shown["error"]["details"].keys()
    assert agent.cancelled.wait(5)
    (cancel,) = [body for path, _, body in agent.requests if path.endswith("/cancel")]
    assert cancel.keys() == _example("agent-cancel-request").keys()
    assert cancel["reason"] == "timeout"


def test_an_agents_limit_is_answered_as_shown(
    hub: HubProcess, agent: PlatformAgent, researcher: dict[str, Any]
) -> None:
    said = _example("rate-limited-response")
    agent.respond = says((429, {"Retry-After": "12"}, json.dumps(said).encode()))
    reply = hub.call("summarize", {"content": "x"}, researcher["id"])
    assert reply.status == 429
    assert _fits(reply.json, said) == []
    assert reply.json["error"] == said["error"]
    assert reply.headers["retry-after"] == "12"


def test_the_documents_scopes_make_a_key(hub: HubProcess) -> None:
    assert hub.post("/v1/keys", {"name": "doc", **_example("scopes")}).json["scopes"] == ["a2a:call", "a2a:receive"]
