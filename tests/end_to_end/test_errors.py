import json
from typing import Any

import pytest

from tests.end_to_end.world import RFC_3339, fresh, join, refused, says, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent
from tests.support.ports import free_port

CALL = "/v1/a2a/call"


def _said(**error: Any) -> bytes:
    return json.dumps({"status": "failed", "error": error}).encode()


@pytest.mark.req("P-14", "P-15", "P-48")
def test_what_the_caller_got_wrong_has_its_code_and_is_not_retryable(hub: HubProcess, agent: PlatformAgent) -> None:
    needs = skill("strict", input_schema={"type": "object", "required": ["q"]})
    name = join(hub, agent, skills=[skill("echo"), needs])["id"]
    cases = [
        (hub.call("echo", {}, "agt_nobody"), 404, "AGENT_NOT_FOUND"),
        (hub.call("serch", {}, name), 404, "SKILL_NOT_FOUND"),
        (hub.call("strict", {}, name), 400, "VALIDATION_ERROR"),
        (hub.post(CALL, {"target_agent_id": name}), 400, "VALIDATION_ERROR"),
        (hub.call("echo", {}, name, headers={"Authorization": "Bearer ap_wrong"}), 401, "AUTHORIZATION_ERROR"),
        (hub.call("echo", {}, name, headers={"Authorization": ""}), 401, "AUTHORIZATION_ERROR"),
        (hub.call("echo", {}, name, token=hub.new_key("a2a:register")), 403, "AUTHORIZATION_ERROR"),
        (hub.get("/v1/a2a/call/a2a_call_never/status"), 404, "CALL_NOT_FOUND"),
    ]
    for reply, status, code in cases:
        assert refused(reply, status, code)["retryable"] is False
        assert "retry-after" not in reply.headers
    assert "It has: echo, strict." in cases[1][0].json["error"]["message"]
    assert agent.requests == []


@pytest.mark.req("P-14", "P-15", "P-48", "P-55")
@pytest.mark.parametrize(
    ("status", "headers", "body", "expected"),
    [
        (429, {"Retry-After": "7"}, b"", (429, "RATE_LIMITED", True)),
        (503, {}, b"busy", (503, "AGENT_UNAVAILABLE", True)),
        (504, {}, b"", (504, "AGENT_TIMEOUT", True)),
        (500, {}, b"<html>oops</html>", (502, "AGENT_ERROR", False)),
        (500, {}, _said(code="BOOM", message="It broke"), (502, "AGENT_ERROR", False)),
        (500, {}, _said(code="BOOM", message="It broke", retryable=True), (502, "AGENT_ERROR", True)),
        (200, {}, _said(code="BOOM", message="It broke", retryable=True), (502, "AGENT_ERROR", True)),
        (200, {}, _said(code="VALIDATION_ERROR", message="No such city"), (400, "VALIDATION_ERROR", False)),
        (422, {}, _said(code="VALIDATION_ERROR", message="No such city"), (400, "VALIDATION_ERROR", False)),
        (404, {}, _said(code="SKILL_NOT_FOUND", message="Gone"), (404, "SKILL_NOT_FOUND", False)),
        (400, {}, _said(code="RATE_LIMITED", message="Slow down"), (429, "RATE_LIMITED", True)),
        (401, {}, b"", (502, "AGENT_ERROR", False)),
        (403, {}, _said(code="FORBIDDEN", message="No"), (502, "AGENT_ERROR", False)),
        (404, {}, b"not found", (502, "AGENT_ERROR", False)),
        (301, {"Location": "http://127.0.0.1:1/"}, b"", (502, "AGENT_ERROR", False)),
        (204, {}, b"", (502, "AGENT_ERROR", False)),
    ],
)
def test_an_agents_failure_is_told_in_the_hubs_codes(
    hub: HubProcess,
    agent: PlatformAgent,
    status: int,
    headers: dict[str, str],
    body: bytes,
    expected: tuple[int, str, bool],
) -> None:
    agent.respond = says((status, headers, body))
    reply = hub.call("echo", {}, join(hub, agent)["id"])
    error = refused(reply, *expected[:2])
    assert error["retryable"] is expected[2]
    assert RFC_3339.fullmatch(reply.json["timing"]["started_at"])
    if expected[0] in (429, 503):
        assert reply.headers["retry-after"] == headers.get("Retry-After", "1")
        assert error["details"]["retry_after"] == int(reply.headers["retry-after"])
    shown = hub.get(f"/v1/a2a/call/{reply.json['id']}/status")
    assert shown.status == 200
    assert shown.json == reply.json


@pytest.mark.req("P-55")
def test_the_agents_own_words_and_code_are_passed_on(hub: HubProcess, agent: PlatformAgent) -> None:
    details = {"index": "news", "self": 1, "message": "m", "retryable": "x", "retry_after_s": 5, "big": 2**70}
    agent.respond = says((418, {}, _said(code="TEAPOT", message="The index is down", details=details)))
    error = refused(hub.call("echo", {}, join(hub, agent)["id"]), 502, "AGENT_ERROR")
    assert error["message"] == "The index is down"
    assert error["details"]["index"] == "news"
    assert error["details"]["big"] == 2**70
    assert (error["details"]["agent_code"], error["details"]["agent_status"]) == ("TEAPOT", 418)
    for status in (401, 403):
        agent.respond = says((status, {}, b"{}"))
        error = refused(hub.call("echo", {}, join(hub, agent)["id"]), 502, "AGENT_ERROR")
        assert error["details"]["reason"] == "agent_refused_hub"


@pytest.mark.parametrize(
    "error", [{}, [], "text", 5, True, {"code": 7, "message": {"a": 1}, "details": [1]}, {"message": None}]
)
def test_an_error_of_any_shape_is_an_agents_error(hub: HubProcess, agent: PlatformAgent, error: object) -> None:
    agent.respond = says({"status": "failed", "error": error})
    refused(hub.call("echo", {}, join(hub, agent)["id"]), 502, "AGENT_ERROR")


@pytest.mark.req("P-55")
def test_an_agent_that_cannot_be_reached_is_unavailable(hub: HubProcess, agent: PlatformAgent) -> None:
    name = fresh()
    hub.register(agent.card(id=name, endpoint=f"http://127.0.0.1:{free_port()}/a2a"))
    reply = hub.call("echo", {}, name)
    error = refused(reply, 503, "AGENT_UNAVAILABLE")
    assert error["retryable"] is True
    assert reply.headers["retry-after"]
    assert error["details"]["agent_id"] == name


@pytest.mark.req("P-05")
@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("POST", "/v1/a2a/registry", "a2a:register"),
        ("GET", "/v1/a2a/discover", None),
        ("GET", "/v1/a2a/agents/agt_x/card", None),
        ("POST", CALL, "a2a:call"),
        ("GET", "/v1/a2a/call/a2a_call_x/status", "a2a:call"),
        ("GET", "/v1/agents", None),
        ("GET", "/v1/agents/agt_x", None),
        ("PATCH", "/v1/agents/agt_x", "a2a:register"),
        ("DELETE", "/v1/agents/agt_x", "a2a:register"),
        ("GET", "/v1/agents/agt_x/versions", None),
        ("GET", "/v1/keys", "a2a:admin"),
        ("POST", "/v1/keys", "a2a:admin"),
        ("POST", "/v1/keys/k/rotate", "a2a:admin"),
        ("DELETE", "/v1/keys/k", "a2a:admin"),
        ("GET", "/v1/settings", "a2a:admin"),
    ],
)
def test_every_endpoint_wants_a_key_and_its_scope(hub: HubProcess, method: str, path: str, scope: str | None) -> None:
    body = {"name": "x", "scopes": ["a2a:call"], "skill": "echo", "url": "http://127.0.0.1:9009/"}
    if method == "PATCH":
        body = {}
    sent = body if method in ("POST", "PATCH") else None
    if path == "/v1/keys":
        sent = {"name": "x", "scopes": ["a2a:call"]} if method == "POST" else None
    missing = hub.request(method, path, sent, {"Authorization": ""})
    refused(missing, 401, "AUTHORIZATION_ERROR")
    assert missing.headers["www-authenticate"].startswith("Bearer")
    if scope is not None:
        others = [each for each in ("a2a:call", "a2a:receive", "a2a:register") if each != scope]
        error = refused(hub.request(method, path, sent, token=hub.new_key(*others)), 403, "AUTHORIZATION_ERROR")
        assert error["details"]["missing"] == [scope]


@pytest.mark.req("P-05")
@pytest.mark.parametrize("credential", ["Bearer nonsense", "Bearer ap_aaaaaaaaaaaa_bbb", "Basic dTpw", "Bearer", "x"])
def test_a_wrong_credential_is_401(hub: HubProcess, credential: str) -> None:
    reply = hub.get("/v1/a2a/discover", headers={"Authorization": credential})
    refused(reply, 401, "AUTHORIZATION_ERROR")
    assert reply.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.req("P-31")
def test_scopes_of_keys_and_cards_are_enforced_on_callers(hub: HubProcess, agent: PlatformAgent) -> None:
    caller, registrar = hub.new_key("a2a:call"), hub.new_key("a2a:register")
    wants = {"type": "bearer", "scopes_required": ["a2a:call", "news:read"]}
    name = join(hub, agent, token=registrar, authentication=wants)["id"]
    refused(hub.call("echo", {}, name, token=registrar), 403, "AUTHORIZATION_ERROR")
    refused(hub.post("/v1/a2a/registry", {"agent_card": agent.card()}, token=caller), 403, "AUTHORIZATION_ERROR")
    refused(hub.get("/v1/keys", token=caller), 403, "AUTHORIZATION_ERROR")
    error = refused(hub.call("echo", {}, name, token=caller), 403, "AUTHORIZATION_ERROR")
    assert error["details"]["missing"] == ["news:read"]
    assert hub.call("echo", {}, name, token=hub.new_key("a2a:call", "news:read")).status == 200
    administrator = hub.new_key("a2a:admin")
    assert hub.get("/v1/keys", token=administrator).status == 200
    refused(hub.call("echo", {}, name, token=administrator), 403, "AUTHORIZATION_ERROR")


def test_a_key_limited_to_skills_may_use_no_other(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent, skills=[skill("read"), skill("write")])["id"]
    key = hub.new_key("a2a:call", allow=[f"{name}:read"])
    assert hub.call("read", {}, name, token=key).status == 200
    refused(hub.call("write", {}, name, token=key), 403, "AUTHORIZATION_ERROR")


def test_a_call_that_comes_back_to_its_caller_is_a_loop(hub: HubProcess, agent: PlatformAgent) -> None:
    answer = join(hub, agent)
    error = refused(hub.call("echo", {}, answer["id"], token=answer["token"]), 409, "VALIDATION_ERROR")
    assert error["details"]["chain"] == [answer["id"], answer["id"]]
