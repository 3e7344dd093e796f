import hashlib
import hmac
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet
from standardwebhooks import Webhook

from tests.end_to_end.world import (
    RFC_3339,
    eventually,
    failing_paths,
    fresh,
    holds,
    join,
    refused,
    repeats,
    says,
    skill,
)
from tests.support.hub import ADMIN_TOKEN, HubProcess, Reply
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.rawhttp import Target, converse

NESTED = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "max_results": {"type": "integer", "default": 10},
        "where": {
            "type": "object",
            "properties": {"country": {"type": "string", "default": "any"}, "zip": {"type": "string"}},
            "required": ["zip"],
        },
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["query"],
}


@pytest.mark.req("P-11")
def test_a_call_is_answered_with_result_usage_timing_and_trace(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    options = {"timeout_ms": 5000, "priority": "normal"}
    reply = hub.call("echo", {"text": "hi"}, name, options=options, context={"conversation_id": "conv_1"})
    answer = reply.json
    assert reply.status == 200
    assert list(answer) == ["id", "call_id", "status", "result", "usage", "timing", "trace"]
    assert answer["id"] == answer["call_id"]
    assert answer["id"].startswith("a2a_call_")
    assert answer["status"] == "completed"
    assert answer["result"] == {"text": "hi"}
    assert answer["usage"] == {"tokens": 3, "cost_usd": 0.001}
    timing = answer["timing"]
    assert list(timing) == ["queued_at", "started_at", "completed_at", "duration_ms"]
    assert all(RFC_3339.fullmatch(timing[end]) for end in ("queued_at", "started_at", "completed_at"))
    assert timing["queued_at"] <= timing["started_at"] <= timing["completed_at"]
    assert timing["duration_ms"] >= 0
    assert set(answer["trace"]) == {"trace_id", "span_id"}
    status = hub.get(f"/v1/a2a/call/{answer['id']}/status")
    assert status.status == 200
    assert status.json == {**answer, "progress": 1.0}


@pytest.mark.req("P-66")
def test_every_path_is_served_below_api_too(hub: HubProcess, agent: PlatformAgent) -> None:
    card = agent.card(id=fresh())
    assert hub.post("/api/v1/a2a/registry", {"agent_card": card}).status == 201
    name = card["id"]
    answer = hub.post("/api/v1/a2a/call", {"target_agent_id": name, "skill": "echo", "input": {"a": 1}})
    assert (answer.status, answer.json["result"]) == (200, {"a": 1})
    for path in (
        "/v1/a2a/discover?limit=100",
        f"/v1/a2a/agents/{name}/card",
        f"/v1/a2a/call/{answer.json['id']}/status",
    ):
        assert hub.get("/api" + path).json == hub.get(path).json
    refused(hub.post("/api/v1/a2a/call", {"skill": "echo", "target_agent_id": "agt_nobody"}), 404, "AGENT_NOT_FOUND")


def test_every_path_answers_with_and_without_its_final_slash(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    body = {"target_agent_id": name, "skill": "echo"}
    assert hub.post("/v1/a2a/call/", body).status == 200
    assert hub.get(f"/v1/a2a/agents/{name}/card/").json["id"] == name
    assert hub.get("/v1/a2a/discover/?limit=1").status == 200


def test_without_a_target_the_hub_picks_an_agent_that_has_the_skill(hub: HubProcess, agent: PlatformAgent) -> None:
    wanted = fresh("picked")
    name = join(hub, agent, skills=[skill(wanted)])["id"]
    with platform_agent() as other:
        paused = join(hub, other, skills=[skill(wanted)], id=fresh("agt_aaa"))["id"]
        hub.request("PATCH", f"/v1/agents/{paused}", {"status": "paused"})
        assert hub.call(wanted, {"a": 1}).json["result"] == {"a": 1}
        assert other.requests == []
    assert agent.requests[0][2]["target_agent_id"] == name
    refused(hub.call("nobody-has-this", {}), 404, "AGENT_NOT_FOUND")


@pytest.mark.req("P-13")
def test_input_is_checked_against_the_schema_and_each_failing_path_named(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent, skills=[skill("search", input_schema=NESTED)])["id"]
    cases: list[tuple[dict[str, Any], set[str]]] = [
        ({}, {"query"}),
        ({"query": 5}, {"query"}),
        ({"query": "x", "max_results": "many"}, {"max_results"}),
        ({"query": "x", "where": {}}, {"where.zip"}),
        ({"query": 5, "max_results": 1.5, "tags": ["a", 2, 3]}, {"query", "max_results", "tags.1", "tags.2"}),
    ]
    for given, paths in cases:
        error = refused(hub.call("search", given, name), 400, "VALIDATION_ERROR")
        assert failing_paths(error) == paths
        assert error["retryable"] is False
    assert agent.requests == []


@pytest.mark.req("P-13")
def test_defaults_are_filled_in_and_what_was_given_is_kept(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent, skills=[skill("search", input_schema=NESTED)])["id"]
    given = {"query": "x", "where": {"zip": "8001"}, "more": [None, 1.5, 2**70]}
    assert hub.call("search", given, name).status == 200
    sent = agent.requests[0][2]["input"]
    assert sent == {**given, "max_results": 10, "where": {"zip": "8001", "country": "any"}}
    assert hub.call("search", {"query": "x", "max_results": 3}, name).status == 200
    assert agent.requests[1][2]["input"] == {"query": "x", "max_results": 3}


@pytest.mark.req("P-47")
def test_a_result_that_breaks_its_output_schema_is_the_agents_error(hub: HubProcess, agent: PlatformAgent) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    name = join(hub, agent, skills=[skill("count", output_schema=schema)])["id"]
    assert hub.call("count", {"n": 1}, name).json["result"] == {"n": 1}
    for wrong, path in (({"n": "one"}, "n"), ({}, "n")):
        reply = hub.call("count", wrong, name)
        error = refused(reply, 502, "AGENT_ERROR")
        assert error["details"]["reason"] == "output_schema"
        assert failing_paths(error) == {path}
        assert error["retryable"] is False
        assert hub.get(f"/v1/a2a/call/{reply.json['id']}/status").json["status"] == "failed"


@pytest.mark.req("P-50", "P-52")
def test_a_platform_agent_is_sent_the_call_with_its_context(hub: HubProcess, agent: PlatformAgent) -> None:
    with platform_agent() as calling:
        caller = join(hub, calling)
    name = join(hub, agent)["id"]
    metadata = {"user_id": "usr_abc", "deep": {"a": [1, None, 2**70]}}
    context = {"conversation_id": "conv_xyz", "parent_execution_id": "exec_123", "metadata": metadata}
    options = {"timeout_ms": 9000, "priority": "high"}
    reply = hub.call("echo", {"q": 1}, name, token=caller["token"], options=options, context=context)
    path, headers, body = agent.requests[0]
    assert path == "/a2a"
    left = body["options"].pop("timeout_ms")
    assert 8000 < left <= 9000
    assert body == {
        "call_id": reply.json["id"],
        "caller_agent_id": caller["id"],
        "target_agent_id": name,
        "skill": "echo",
        "input": {"q": 1},
        "options": {"priority": "high", "stream": False},
        "context": {**context, "call_chain": [caller["id"]]},
    }
    assert headers["content-type"] == "application/json"
    assert headers["accept"] == "application/json"
    assert headers["idempotency-key"] == reply.json["id"]
    for each in ("x-request-id", "x-trace-id", "x-span-id", "traceparent", "authorization"):
        assert headers[each]


@pytest.mark.req("P-52")
def test_the_signatures_verify_with_the_secret_given_at_registration(hub: HubProcess, agent: PlatformAgent) -> None:
    answer = join(hub, agent)
    call_id = hub.call("echo", {"text": "ünïcode"}, answer["id"]).json["id"]
    _, headers, _ = agent.requests[0]
    raw = headers["raw-body"].encode()
    expected = hmac.new(answer["signing_secret"].encode(), raw, hashlib.sha256).hexdigest()
    assert headers["x-signature"] == f"sha256={expected}"
    assert abs(int(headers["x-timestamp"]) - time.time()) < 60
    assert headers["webhook-id"] == call_id
    assert headers["webhook-timestamp"] == headers["x-timestamp"]
    Webhook(answer["signing_secret"]).verify(raw, headers)


def test_after_a_rotation_the_hub_signs_with_the_new_secret(hub: HubProcess, agent: PlatformAgent) -> None:
    answer = join(hub, agent)
    assert hub.call("echo", {}, answer["id"]).status == 200
    key_id = answer["token"].split("_")[1]
    rotated = hub.post(f"/v1/keys/{key_id}/rotate", {}).json
    assert hub.call("echo", {}, answer["id"]).status == 200
    headers = agent.requests[-1][1]
    Webhook(rotated["signing_secret"]).verify(headers["raw-body"].encode(), headers)


@pytest.mark.req("P-57", "X-14")
def test_the_agent_gets_a_short_token_of_the_hub_and_never_the_callers_key(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    caller = hub.new_key("a2a:call")
    name = join(hub, agent)["id"]
    for headers in ({}, {"Authorization": "", "X-Api-Key": caller}):
        assert hub.call("echo", {}, name, token=caller, headers=headers).status == 200
    keys = KeySet.import_key_set(hub.get("/.well-known/jwks.json", headers={"Authorization": ""}).json)
    for _, headers, body in agent.requests:
        assert caller not in str(headers) + str(body)
        assert "x-api-key" not in headers
        token = jwt.decode(headers["authorization"].removeprefix("Bearer "), keys, algorithms=["ES256"])
        assert token.claims["iss"] == f"http://localhost:{hub.port}"
        assert token.claims["sub"] == body["caller_agent_id"]
        assert token.claims["aud"] == name
        assert token.claims["exp"] - token.claims["iat"] == 60
        assert token.claims["scope"]


@pytest.mark.req("P-57")
@pytest.mark.parametrize(
    ("credentials", "header", "value"),
    [
        ({"type": "bearer", "token": "owner-stored-this"}, "authorization", "Bearer owner-stored-this"),
        ({"type": "apiKey", "token": "k-1", "header": "X-Agent-Key"}, "x-agent-key", "k-1"),
        ({"type": "basic", "username": "u", "password": "p"}, "authorization", "Basic dTpw"),
    ],
)
def test_the_agent_gets_the_credential_its_owner_stored(
    hub: HubProcess, agent: PlatformAgent, credentials: dict[str, str], header: str, value: str
) -> None:
    answer = join(hub, agent, credentials=credentials)
    assert hub.call("echo", {}, answer["id"]).status == 200
    assert agent.requests[0][1][header] == value
    # It is bound to its origin: an agent that moves does not take it along.
    with platform_agent() as elsewhere:
        hub.register(elsewhere.card(id=answer["id"]))
        refused(hub.call("echo", {}, answer["id"]), 503, "AGENT_UNAVAILABLE")
        assert elsewhere.requests == []


@pytest.mark.req("P-53")
@pytest.mark.parametrize(
    ("said", "result", "usage"),
    [
        ({"status": "completed", "result": {"a": 1}, "usage": {"tokens": 5}}, {"a": 1}, {"tokens": 5}),
        ({"result": {"a": 1}}, {"a": 1}, None),
        ({"result": {}, "error": None, "usage": None}, {}, None),
        ({"status": "completed"}, {}, None),
        ({"status": "completed", "result": None}, {}, None),
        ({"result": "just text"}, {"text": "just text"}, None),
        ({"result": {"a": 1}, "usage": {"tokens": -1, "cost_usd": "much", "gpu_s": 2}}, {"a": 1}, {"gpu_s": 2}),
    ],
)
def test_an_agents_json_answer_completes_the_call(
    hub: HubProcess, agent: PlatformAgent, said: dict[str, Any], result: object, usage: object
) -> None:
    agent.respond = says(said)
    answer = hub.call("echo", {}, join(hub, agent)["id"]).json
    assert (answer["status"], answer["result"], answer.get("usage")) == ("completed", result, usage)


@pytest.mark.req("P-53")
@pytest.mark.parametrize(
    "said", [b"{}", b'{"usage":{}}', b'{"status":"running"}', b'{"status":7}', b"[]", b"null", b"", b"<html>", b"\xff"]
)
def test_an_answer_that_says_nothing_is_an_invalid_response(hub: HubProcess, agent: PlatformAgent, said: bytes) -> None:
    agent.respond = says((200, {}, said))
    error = refused(hub.call("echo", {}, join(hub, agent)["id"]), 502, "AGENT_ERROR")
    assert error["details"]["reason"] == "invalid_response"
    assert "JSON-RPC" not in error["message"]


@pytest.mark.req("X-15")
def test_another_callers_call_looks_unknown(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    mine, yours = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    call_id = hub.call("echo", {}, name, token=mine).json["id"]
    path = f"/v1/a2a/call/{call_id}/status"
    assert hub.get(path, token=mine).status == 200
    assert hub.get(path).status == 200
    foreign = hub.get(path, token=yours)
    unknown = hub.get("/v1/a2a/call/a2a_call_never/status", token=yours)
    assert refused(foreign, 404, "CALL_NOT_FOUND")["message"] == (
        refused(unknown, 404, "CALL_NOT_FOUND")["message"].replace("a2a_call_never", call_id)
    )
    follow = {"skill": "echo", "input": {}, "context": {"continue_call_id": call_id}}
    refused(hub.post("/v1/a2a/call", follow, token=yours), 404, "CALL_NOT_FOUND")
    refused(hub.post("/v1/a2a/call", follow, token=mine), 409, "VALIDATION_ERROR")


def test_the_same_conversation_of_two_callers_is_two(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    for _ in range(2):
        context = {"conversation_id": "conv_shared"}
        assert hub.call("echo", {}, name, token=hub.new_key("a2a:call"), context=context).status == 200
    first, second = (body["caller_agent_id"] for _, _, body in agent.requests)
    assert first != second


def test_a_running_call_is_shown_as_running(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = join(hub, agent)["id"]
    answers: list[Any] = []
    calling = threading.Thread(target=lambda: answers.append(hub.call("echo", {"a": 1}, name).json))
    calling.start()
    assert agent.arrived.wait(5)
    call_id = agent.requests[0][2]["call_id"]
    shown = hub.get(f"/v1/a2a/call/{call_id}/status").json
    assert shown["status"] in ("queued", "running")
    assert "result" not in shown
    assert "error" not in shown
    agent.release.set()
    calling.join(5)
    assert answers[0]["result"] == {"a": 1}


@pytest.mark.req("X-24")
def test_a_call_of_nearly_ten_mebibytes_passes_and_a_larger_one_is_413(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    text = "x" * (10 * 1024 * 1024 - 1000)
    assert hub.call("echo", {"text": text}, name).json["result"] == {"text": text}
    agent.respond = says({"result": {"text": text + "x" * 2000}})
    error = refused(hub.call("echo", {}, name), 502, "AGENT_ERROR")
    assert error["details"]["reason"] == "too_large"
    agent.respond = repeats
    assert hub.call("echo", {}, name).status == 200


def test_a_caller_that_leaves_does_not_end_its_call(hub: HubProcess, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    name = join(hub, agent)["id"]
    body = json.dumps({"target_agent_id": name, "skill": "echo", "input": {"a": 1}}).encode()
    lines = (f"Authorization: Bearer {ADMIN_TOKEN}", "Content-Type: application/json", f"Content-Length: {len(body)}")
    target = Target.at(hub.url, path="/v1/a2a/call", headers=lines)
    with target.connect() as caller:
        caller.sendall(target.head() + b"\r\n" + body)
        assert agent.arrived.wait(5)
    agent.release.set()
    path = f"/v1/a2a/call/{agent.requests[0][2]['call_id']}/status"
    eventually(lambda: hub.get(path).json["status"] == "completed", "the call has ended")
    assert hub.get(path).json["result"] == {"a": 1}


def test_many_calls_at_once_each_get_their_own_answer(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]

    def call(number: int) -> Reply:
        return hub.call("echo", {"n": number}, name)

    with ThreadPoolExecutor(32) as at_once:
        replies = list(at_once.map(call, range(300)))
    assert [reply.json["result"]["n"] for reply in replies] == list(range(300))
    assert len({reply.json["id"] for reply in replies}) == 300
    assert len(agent.requests) == 300


def test_calls_on_one_connection_are_answered_in_their_order(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    requests = b""
    for number in range(20):
        body = json.dumps({"target_agent_id": name, "skill": "echo", "input": {"n": number}}).encode()
        lines = (f"Authorization: Bearer {ADMIN_TOKEN}", "Content-Type: application/json")
        last = ("Connection: close",) if number == 19 else ()
        head = Target.at(hub.url, path="/v1/a2a/call", headers=lines).head(f"Content-Length: {len(body)}", *last)
        requests += head + b"\r\n" + body
    answers = converse(Target.at(hub.url), requests, until_closed=True, timeout_s=20)
    assert [json.loads(answer.body)["result"]["n"] for answer in answers] == list(range(20))


def test_a_chain_of_calls_is_told_to_each_agent_and_never_closed(hub: HubProcess, agent: PlatformAgent) -> None:
    with platform_agent() as middle, platform_agent() as last:
        first, second, third = join(hub, agent), join(hub, middle), join(hub, last)
        seen: list[Any] = []

        def nested(to: dict[str, Any], token: str, body: dict[str, Any]) -> Reply:
            context = {"parent_execution_id": body["call_id"]}
            reply = hub.call("echo", {}, to["id"], token=token, context=context)
            seen.append(reply)
            return reply

        def from_first(body: dict[str, Any]) -> dict[str, Any]:
            return {"result": nested(second, first["token"], body).json["result"]}

        def from_second(body: dict[str, Any]) -> dict[str, Any]:
            nested(first, second["token"], body)
            return {"result": nested(third, second["token"], body).json["result"]}

        agent.respond, middle.respond = from_first, from_second
        assert hub.call("echo", {}, first["id"]).status == 200
        error = refused(seen[0], 409, "VALIDATION_ERROR")
        assert error["details"]["chain"] == [first["id"], second["id"], first["id"]]
        assert middle.requests[0][2]["context"]["call_chain"] == [first["id"]]
        assert last.requests[0][2]["context"]["call_chain"] == [first["id"], second["id"]]
        assert last.requests[0][2]["caller_agent_id"] == second["id"]
