"""Clients and callers that send rubbish: each gets its clear refusal, and the next good call passes."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.world import failing_paths, join, refused, rss_bytes, tracebacks
from tests.support.hub import ADMIN_TOKEN, HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.rawhttp import CASES, Case, Limits, Target, attempt, converse, good, reset_at_every_offset

MIB = 1024 * 1024
# Not shorter: the server looks at its deadlines once a second, and may be so much too early.
LIMITS = Limits(header_s=2.0, body_s=2.0, reader_s=2.0)
SHRUNK = {"DRAGOMAN_LIMITS_HEADER_S": "2", "DRAGOMAN_LIMITS_BODY_S": "2", "DRAGOMAN_LIMITS_STALLED_READER_S": "2"}
CALL = "/v1/a2a/call"
REGISTRY = "/v1/a2a/registry"
GROWTH = 24 * MIB


@pytest.fixture(scope="module", params=["true", "false"], ids=["by the shortcut", "through ASGI"])
def hub(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    shortcut = {"DRAGOMAN_SERVER_SHORTCUT": request.param}
    hub = HubProcess(tmp_path_factory.mktemp("hub") / "data").start({**SHRUNK, **shortcut})
    yield hub
    hub.stop()
    assert tracebacks(hub) == []


@pytest.fixture(scope="module")
def echo(hub: HubProcess) -> Iterator[str]:
    """The id of an agent that answers as long as the hub runs."""
    with platform_agent() as agent:
        yield join(hub, agent)["id"]


@pytest.fixture
def target(hub: HubProcess, echo: str) -> Target:
    body = json.dumps({"target_agent_id": echo, "skill": "echo", "input": {}}).encode()
    return Target(
        host="127.0.0.1",
        port=hub.port,
        path=CALL,
        headers=("Content-Type: application/json", f"Authorization: Bearer {ADMIN_TOKEN}"),
        body=body,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_bad_client_is_refused_and_a_good_call_passes_after_it(target: Target, case: Case) -> None:
    assert case.fault(target, attempt(target, case, LIMITS), LIMITS) is None
    assert good(target)


def test_a_client_may_leave_after_every_byte_of_a_call(target: Target) -> None:
    assert reset_at_every_offset(target) > 200
    assert good(target)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"skill":"echo"}}',
        b'{"skill":"echo","input":{"n":NaN}}',
        b'{"skill":"echo","input":{"n":Infinity}}',
        b'{"skill":"echo","input":{"n":1e999}}',
        b'{"skill":"echo","input":{"s":"\\ud800"}}',
        b'{"skill":"echo","input":{"s":"\xff"}}',
        b'\xef\xbb\xbf{"skill":"echo"}',
        '{"skill":"echo"}'.encode("utf-16"),
        b'{"skill":"echo","input":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b'{"skill":"echo","input":{"a":' + b"[" * 70 + b"]" * 70 + b"}}",
        b"[" * 100_000,
        b'{"skill":"' + b"\\" * 1_000_001,
        b'{"skill":"echo","input":{"n":' + b"9" * 5000 + b"}}",
        b"\x00" * 100,
    ],
    ids=lambda body: repr(body[:40]),
)
@pytest.mark.parametrize("path", [CALL, REGISTRY, "/v1/keys"])
def test_what_is_no_json_is_a_validation_error(hub: HubProcess, echo: str, path: str, body: bytes) -> None:
    reply = hub.post(path, body)
    refused(reply, 400, "VALIDATION_ERROR")
    assert hub.call("echo", {}, echo).status == 200


@pytest.mark.parametrize("body", [[], "text", 5, None, True, [{}]])
@pytest.mark.parametrize("path", [CALL, REGISTRY, "/v1/keys"])
def test_json_that_is_no_object_is_a_validation_error(hub: HubProcess, path: str, body: object) -> None:
    refused(hub.post(path, json.dumps(body).encode()), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"skill": 5}, "skill"),
        ({"skill": ""}, "skill"),
        ({"skill": None}, "skill"),
        ({"skill": "x" * 257}, "skill"),
        ({"target_agent_id": 7}, "target_agent_id"),
        ({"target_agent_id": ["agt_x"]}, "target_agent_id"),
        ({"target_agent_id": ""}, "target_agent_id"),
        ({"input": []}, "input"),
        ({"input": "text"}, "input"),
        ({"input": 5}, "input"),
        ({"message": "hello"}, "message"),  # beside an input
        ({"message": 5}, "message"),
        ({"message": [], "input": None}, "message"),
        ({"message": [{"kind": "text"}], "input": None}, "message[0]"),
        ({"options": []}, "options"),
        ({"options": {"priority": "yesterday"}}, "options.priority"),
        ({"options": {"priority": 1}}, "options.priority"),
        ({"options": {"callback_url": 5}}, "options.callback_url"),
        ({"options": {"cancel_on_disconnect": "yes"}}, "options.cancel_on_disconnect"),
        ({"options": {"delivery": "perhaps"}}, "options.delivery"),
        ({"context": "conv_1"}, "context"),
        ({"context": {"conversation_id": 5}}, "context.conversation_id"),
        ({"context": {"parent_execution_id": {}}}, "context.parent_execution_id"),
        ({"context": {"continue_call_id": 1}}, "context.continue_call_id"),
        ({"context": {"metadata": [1]}}, "context.metadata"),
        ({"callback": "http://127.0.0.1:9009/"}, "callback"),
        ({"callback": {}}, "callback.url"),
        ({"callback": {"url": "http://127.0.0.1:9009/", "headers": {"X-A": 5}}}, "callback.headers"),
        ({"callback": {"url": "http://127.0.0.1:9009/", "headers": {"Host": "x"}}}, "callback.headers.Host"),
        ({"callback": {"url": "http://127.0.0.1:9009/", "headers": {"X-A": "a\r\nb"}}}, "callback.headers.X-A"),
        (
            {"callback": {"url": "http://127.0.0.1:9009/", "headers": {"webhook-id": "x"}}},
            "callback.headers.webhook-id",
        ),
        (
            {"callback": {"url": "http://127.0.0.1:9009/", "headers": {f"X-{n}": "v" for n in range(17)}}},
            "callback.headers",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_by_its_path(
    hub: HubProcess, echo: str, changes: dict[str, Any], path: str
) -> None:
    reply = hub.post(CALL, {"target_agent_id": echo, "skill": "echo", "input": {}, **changes})
    error = refused(reply, 400, "VALIDATION_ERROR")
    (named,) = failing_paths(error)
    assert named == path or named.startswith(f"{path}[")
    assert hub.call("echo", {}, echo).status == 200


def test_null_fields_are_as_good_as_absent(hub: HubProcess, echo: str) -> None:
    nothing = {"input": None, "options": None, "context": None, "callback": None}
    assert hub.post(CALL, {"target_agent_id": echo, "skill": "echo", **nothing}).status == 200
    options = {"timeout_ms": None, "priority": None, "callback_url": None, "delivery": None}
    assert hub.call("echo", {}, echo, options=options, context={"metadata": None}, unknown=[1]).status == 200


@pytest.mark.parametrize("path", [CALL, REGISTRY, "/v1/keys"])
@pytest.mark.parametrize("kind", ["text/plain", "", "application/x-www-form-urlencoded", "application/jsonp"])
def test_another_media_type_is_415(hub: HubProcess, path: str, kind: str) -> None:
    reply = hub.post(path, b'{"name":"x","scopes":["a2a:call"],"skill":"x"}', headers={"Content-Type": kind})
    refused(reply, 415, "VALIDATION_ERROR")


def test_the_media_type_may_have_parameters(hub: HubProcess, echo: str) -> None:
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert hub.call("echo", {}, echo, headers=headers).status == 200


@pytest.mark.req("X-24")
def test_each_body_has_its_cap(hub: HubProcess, echo: str, target: Target) -> None:
    two = "x" * (2 * MIB)
    assert hub.call("echo", {"text": two}, echo).status == 200
    for path, size in (("/v1/keys", 2 * MIB), (REGISTRY, 2 * MIB), (CALL, 11 * MIB), ("/v1/agents/agt_x", 2 * MIB)):
        body = json.dumps({"name": "x" * size}).encode()
        method = "PATCH" if path.endswith("agt_x") else "POST"
        head = target.head(f"Content-Length: {len(body)}", method=method, path=path)
        (reply,) = converse(target, head + b"\r\n" + body, timeout_s=10)
        assert reply.status == 413, path
        assert json.loads(reply.body)["error"]["code"] == "VALIDATION_ERROR"
        assert good(target)


@pytest.mark.req("X-24")
def test_a_card_over_256_kib_is_413(hub: HubProcess) -> None:
    card = PlatformAgent(lambda _: {}).card(endpoint="http://127.0.0.1:9009/", pricing={"text": "x" * (300 * 1024)})
    refused(hub.post(REGISTRY, {"agent_card": card}), 413, "VALIDATION_ERROR")


def test_a_header_that_counts_may_stand_only_once(target: Target) -> None:
    for line in ("Authorization: Bearer other", "Content-Type: text/plain"):
        request = target.head(line, f"Content-Length: {len(target.body)}") + b"\r\n" + target.body
        (reply,) = converse(target, request)
        assert reply.status == 400
        assert json.loads(reply.body)["error"]["code"] == "VALIDATION_ERROR"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]", "localhost@x"]
)
def test_a_foreign_host_name_is_421(hub: HubProcess, target: Target, host: str) -> None:
    lines = (f"Host: {host}", f"Authorization: Bearer {ADMIN_TOKEN}")
    request = "\r\n".join(("GET /healthz HTTP/1.1", *lines, "", "")).encode()
    (reply,) = converse(target, request)
    assert reply.status == 421
    assert json.loads(reply.body)["error"]["details"]["reason"] == "wrong_host"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:80"])
def test_the_hubs_own_names_are_served(hub: HubProcess, host: str) -> None:
    assert hub.get("/healthz", headers={"Host": host}).status == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1.evil.example", "http://[::", "x"])
def test_a_web_page_of_another_site_is_refused(hub: HubProcess, echo: str, origin: str) -> None:
    refused(hub.call("echo", {}, echo, headers={"Origin": origin}), 403, "AUTHORIZATION_ERROR")
    assert hub.call("echo", {}, echo, headers={"Origin": f"http://localhost:{hub.port}"}).status == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/nothing/here"),
        ("GET", "/v1/a2a/call"),
        ("PUT", "/v1/keys"),
        ("DELETE", "/"),
        ("POST", "/v1/a2a/agents/x/card"),
        ("OPTIONS", "/v1/a2a/call"),
        ("GET", "/v1/a2a/agents//card"),
        ("GET", "/v1/a2a/agents/a/b/card"),
        ("GET", "/%2e%2e/etc/passwd"),
        ("GET", "/v1/a2a/../keys"),
        ("GET", "//"),
        ("GET", "/%00"),
        ("GET", "/%ff%fe"),
    ],
)
def test_what_is_not_there_is_404_in_the_platforms_form(hub: HubProcess, method: str, path: str) -> None:
    reply = hub.request(method, path, {} if method in ("POST", "PUT") else None)
    if path == "//":
        assert reply.status == 200  # the root, with one slash more
    else:
        refused(reply, 404, "NOT_FOUND")


@pytest.mark.parametrize("name", ["..%2f..%2fetc", "%00", "%ff", "a%20b", "%E2%80%AE", "x" * 5000, "@", "a@b@c", "'--"])
def test_an_agents_name_in_a_path_is_only_a_name(hub: HubProcess, name: str) -> None:
    refused(hub.get(f"/v1/a2a/agents/{name}/card"), 404, "AGENT_NOT_FOUND")
    refused(hub.get(f"/v1/a2a/call/{name}/status"), 404, "CALL_NOT_FOUND")
    refused(hub.get(f"/v1/agents/{name}"), 404, "AGENT_NOT_FOUND")
    refused(hub.request("DELETE", f"/v1/keys/{name}"), 404, "NOT_FOUND")


@pytest.mark.parametrize("query", ["limit=0", "limit=000000001" + "0" * 5000, "limit=x", "status=asleep", "colour=1"])
def test_a_list_asked_for_wrongly_is_400(hub: HubProcess, query: str) -> None:
    refused(hub.get(f"/v1/agents?{query}"), 400, "VALIDATION_ERROR")


@pytest.mark.parametrize(
    "body", [{"status": "removed"}, {"status": 5}, {"open": "yes"}, {"colour": 1}, {"credentials": []}, []]
)
def test_a_change_that_makes_no_sense_is_400(hub: HubProcess, echo: str, body: object) -> None:
    refused(
        hub.request("PATCH", f"/v1/agents/{echo}", json.dumps(body).encode(), {"Content-Type": "application/json"}),
        400,
        "VALIDATION_ERROR",
    )
    assert hub.call("echo", {}, echo).status == 200


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}]},
        {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"},
        {"properties": {"a": {"$ref": "#"}}},
        {"$dynamicRef": "#"},
        {"not": {"$ref": "#"}},
        {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"propertyNames": {"pattern": "(.*)*x"}},
        {"$schema": "http://127.0.0.1:9009/none"},
        {"$ref": "file:///etc/passwd"},
        {"minimum": 10**400},
        {"properties": {"a": True, "b": False}},
        {"properties": []},
        {"default": 5, "properties": {"a": {"default": {"b": [1]}}, "c": {"properties": {"d": {"default": 1}}}}},
    ],
)
def test_a_hostile_schema_is_refused_or_harmless(hub: HubProcess, agent: PlatformAgent, schema: dict[str, Any]) -> None:
    skills = [{"name": "echo", "description": "d", "input_schema": schema, "output_schema": schema}]
    reply = hub.post(REGISTRY, {"agent_card": agent.card(id="agt_hostile", skills=skills)})
    if reply.status not in (200, 201):
        refused(reply, 400, "VALIDATION_ERROR")
        return
    inputs: tuple[dict[str, Any], ...] = ({}, {"a": "a" * 5000 + "b"}, {"a": {"a": {"a": 1}}}, {"c": {}})
    for given in inputs:
        assert hub.call("echo", given, "agt_hostile").status in (200, 400, 502)


def test_rubbish_leaves_no_memory_behind(hub: HubProcess, echo: str, target: Target) -> None:
    bodies = [b"[" * 100_000, b'{"skill":"' + b"x" * MIB + b'"}', b'{"a":' * 1000, b"\xff" * MIB]

    def misbehave() -> None:
        for body in bodies:
            assert hub.post(CALL, body).status == 400
        head = target.head(f"Content-Length: {2 * MIB}", path="/v1/keys")
        assert converse(target, head + b"\r\n" + b"x" * 2 * MIB, timeout_s=10)[0].status == 413
        assert good(target)

    for _ in range(5):
        misbehave()
    before = rss_bytes(hub)
    for _ in range(20):
        misbehave()
    assert rss_bytes(hub) - before < GROWTH
