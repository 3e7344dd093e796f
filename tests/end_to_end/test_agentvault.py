"""AgentVault over the wire: its callers at a real hub, and agents of several dialects behind it."""

import base64
import http.client
import json
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.end_to_end.agentvault_world import (
    called,
    error,
    example,
    get,
    last_words,
    mount,
    result,
    rpc,
    send,
    settled,
    taken_in,
    text,
)
from tests.end_to_end.world import RFC_3339, eventually, fresh
from tests.support.agents import a2a_v10, agentvault
from tests.support.hub import HubProcess
from tests.support.speaking import FAILURE, QUESTION, StubAgent, json_answer, serving

METHOD_URLS = ["/agents/{}/agentvault", "/agents/{}/agentvault/", "/agents/{}", "/agents/{}/", "/v1/agents/{}/a2a"]


@pytest.fixture
def stub() -> Iterator[StubAgent]:
    with agentvault.agent(fresh("echo")) as stub:
        yield stub


@pytest.fixture
def echo(hub: HubProcess, stub: StubAgent) -> str:
    return taken_in(hub, stub)


@pytest.fixture
def official(hub: HubProcess) -> Iterator[str]:
    with a2a_v10.agent() as stub:
        yield taken_in(hub, stub, id=fresh("agt_official"))


# -- the frame


@pytest.mark.req("V-01")
@pytest.mark.parametrize("url", METHOD_URLS)
def test_one_url_takes_every_method_with_and_without_its_slash(hub: HubProcess, echo: str, url: str) -> None:
    path = url.format(echo)
    task_id = result(hub, path, "tasks/send", {"message": text("hi")})["id"]
    assert task_id.startswith("av-")
    assert result(hub, path, "tasks/get", {"id": task_id})["id"] == task_id
    assert error(hub, path, "tasks/cancel", {"id": "av-nobody"})["code"] == -32001
    settled(hub, echo, task_id)


@pytest.mark.req("V-01")
@pytest.mark.parametrize("url", ["/a2a", "/a2a/", "/"])
def test_the_hubs_own_urls_take_the_agent_from_a_hint(hub: HubProcess, echo: str, url: str) -> None:
    message = text("hi", metadata={"dragoman": {"agent": echo}})
    task_id = result(hub, url, "tasks/send", {"message": message})["id"]
    assert result(hub, url, "tasks/get", {"id": task_id})["messages"][0]["parts"] == text("hi")["parts"]
    settled(hub, echo, task_id)


@pytest.mark.req("V-01")
@pytest.mark.parametrize("request_id", ["x", "", 7, 12345678901234567890, None])
def test_an_answer_has_the_requests_id(hub: HubProcess, echo: str, request_id: object) -> None:
    for method in ("tasks/get", "nonsense"):
        body = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": {"id": "av-x"}}
        answer = hub.post(mount(echo), body).json
        assert answer["id"] == request_id
        assert type(answer["id"]) is type(request_id)
        assert "result" not in answer


@pytest.mark.req("V-14")
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", ""])
def test_another_content_type_is_415(hub: HubProcess, echo: str, kind: str) -> None:
    body = json.dumps(example("tasks-send-request")).encode()
    reply = hub.post(mount(echo), body, {"Content-Type": kind})
    assert (reply.status, reply.json["error"]["code"]) == (415, -32600)


@pytest.mark.req("V-15", "V-12")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "av-x"}}]', -32600),
        (b'"text"', -32600),
        (b'{"id": 1, "method": "tasks/get"}', -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "tasks/get"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600),
    ],
)
def test_what_is_no_request_is_refused_with_http_200(hub: HubProcess, echo: str, body: bytes, code: int) -> None:
    reply = hub.post(mount(echo), body)
    assert (reply.status, reply.json["error"]["code"]) == (200, code)
    assert "result" not in reply.json


@pytest.mark.req("V-16")
def test_a_request_without_id_is_carried_out_and_answered_204(hub: HubProcess, echo: str, stub: StubAgent) -> None:
    body = {"jsonrpc": "2.0", "method": "tasks/send", "params": {"message": text("quietly")}}
    reply = hub.post(mount(echo), body)
    assert (reply.status, reply.body) == (204, b"")
    assert stub.arrived.wait(10)
    assert hub.post(mount(echo), {"jsonrpc": "2.0", "method": "nonsense"}).status == 204


@pytest.mark.req("V-12")
def test_errors_are_http_200_with_their_code_and_details(hub: HubProcess, echo: str, stub: StubAgent) -> None:
    assert error(hub, mount(echo), "message/send", {})["code"] == -32601
    assert error(hub, mount(echo), "tasks/get", {})["data"]["path"] == "id"
    assert error(hub, mount(echo), "tasks/get", {"id": 7})["code"] == -32602
    unknown = error(hub, mount(echo), "tasks/get", {"id": "av-nobody"})
    assert unknown["data"]["reason"] == "task_not_found"
    hub.request("PATCH", f"/v1/agents/{echo}", {"status": "paused"})
    refused = error(hub, mount(echo), "tasks/send", {"message": text("hi")})
    assert (refused["code"], refused["data"]["reason"]) == (-32000, "agent_unavailable")
    assert error(hub, mount("nobody"), "tasks/send", {"message": text("hi")}, 404)["code"] == -32000


@pytest.mark.req("V-27", "V-26")
@pytest.mark.parametrize("method", ["tasks/send", "tasks/get", "tasks/cancel", "tasks/sendSubscribe"])
def test_without_credential_401_without_scope_403(hub: HubProcess, echo: str, method: str) -> None:
    params = {"id": "av-x", "message": text("hi")}
    for headers in ({"Authorization": ""}, {"Authorization": "Bearer wrong"}):
        reply = rpc(hub, mount(echo), method, params, headers=headers)
        assert (reply.status, reply.json["error"]["code"]) == (401, -32002)
        assert reply.headers["www-authenticate"].startswith("Bearer")
    reply = rpc(hub, mount(echo), method, params, token=hub.new_key("a2a:receive"))
    assert (reply.status, reply.json["error"]["code"]) == (403, -32003)


@pytest.mark.req("V-26")
def test_a_subscription_to_an_unknown_task_is_404(hub: HubProcess, echo: str) -> None:
    assert error(hub, mount(echo), "tasks/sendSubscribe", {"id": "av-nobody"}, 404)["code"] == -32001


@pytest.mark.req("X-09")
@pytest.mark.parametrize("method", ["message/send", "message.send", "SendMessage", "a2a/task", "tasks/resubscribe"])
def test_the_mount_speaks_nothing_else(hub: HubProcess, echo: str, method: str) -> None:
    assert error(hub, mount(echo), method, {})["code"] == -32601


# -- tasks


@pytest.mark.req("V-03")
@pytest.mark.parametrize("absent", [{}, {"id": None}])
def test_a_message_makes_a_task(hub: HubProcess, echo: str, absent: dict[str, Any]) -> None:
    first, second = (send(hub, echo, text("hi"), **absent) for _ in range(2))
    assert first != second
    assert settled(hub, echo, first)["state"] == "COMPLETED"
    assert settled(hub, echo, second)["state"] == "COMPLETED"


@pytest.mark.req("V-04")
def test_a_task_is_shown_in_full(hub: HubProcess, echo: str) -> None:
    task_id = send(hub, echo, text("hi"))
    shown = settled(hub, echo, task_id)
    assert shown["id"] == task_id
    assert RFC_3339.fullmatch(shown["createdAt"])
    assert RFC_3339.fullmatch(shown["updatedAt"])
    assert shown["messages"] == [text("hi"), text("hi", "assistant")]
    assert shown["artifacts"] == []
    assert "metadata" not in shown


@pytest.mark.req("V-17", "V-22")
def test_a_message_to_a_task_that_asks_continues_it(hub: HubProcess, echo: str) -> None:
    first = called(hub, echo, text("ask"))
    assert (first["state"], last_words(first)) == ("INPUT_REQUIRED", QUESTION)
    assert send(hub, echo, text("this one"), id=first["id"]) == first["id"]
    done = settled(hub, echo, first["id"])
    assert done["state"] == "COMPLETED"
    roles = [message["role"] for message in done["messages"]]
    assert roles == ["user", "assistant", "user", "assistant"]
    assert last_words(done) == "this one"
    refused = error(hub, mount(echo), "tasks/send", {"id": first["id"], "message": text("more")})
    assert refused["code"] == -32004


@pytest.mark.req("V-17")
def test_a_message_to_an_unknown_or_foreign_task_is_refused(hub: HubProcess, echo: str, official: str) -> None:
    assert error(hub, mount(echo), "tasks/send", {"id": "av-nobody", "message": text("x")})["code"] == -32001
    task_id = called(hub, echo, text("ask"))["id"]
    for method in ("tasks/send", "tasks/get", "tasks/cancel"):
        params = {"id": task_id, "message": text("x")}
        assert error(hub, mount(echo), method, params, token=hub.new_key("a2a:call"))["code"] == -32001
        assert error(hub, mount(official), method, params)["code"] == -32001


@pytest.mark.req("V-18")
@pytest.mark.parametrize(
    "message",
    [
        {"role": "agent", "parts": [{"type": "text", "content": "x"}]},
        {"role": "user", "parts": []},
        {"role": "user", "parts": [{"type": "text", "text": "x"}]},
        {"role": "user", "parts": [{"kind": "text", "text": "x"}]},
        {"role": "user", "parts": [{"type": "data", "content": "x"}]},
        {"role": "user", "parts": [{"type": "file", "url": "data:text/plain,x"}]},
        {"role": "user", "parts": [{"type": "file", "url": "file:///etc/passwd"}]},
        {},
    ],
)
def test_another_message_is_refused(hub: HubProcess, echo: str, message: object) -> None:
    assert error(hub, mount(echo), "tasks/send", {"message": message})["code"] == -32602


@pytest.mark.req("V-18")
@pytest.mark.parametrize("role", ["user", "assistant", "system", "tool"])
def test_every_role_is_taken_and_shown(hub: HubProcess, echo: str, stub: StubAgent, role: str) -> None:
    done = called(hub, echo, text("hi", role))
    assert [message["role"] for message in done["messages"]] == [role, "assistant"]
    assert stub.requests[0][3]["params"]["message"]["role"] == role


@pytest.mark.req("V-19")
def test_parts_and_metadata_come_back_and_arrive_unchanged(hub: HubProcess, echo: str, stub: StubAgent) -> None:
    message = example("tasks-send-parts-request")["params"]["message"]
    message["parts"][1]["content"] = {"n": 2**70, "deep": [1.5, None, {"ü": True}]}
    done = called(hub, echo, message)
    assert done["messages"][0] == message
    assert done["messages"][1]["parts"] == message["parts"]
    sent = stub.requests[0][3]["params"]["message"]
    assert sent["parts"] == message["parts"]
    assert sent["metadata"]["mcp_context"] == message["metadata"]["mcp_context"]


@pytest.mark.req("V-20")
def test_every_state_of_an_agent_has_its_word(hub: HubProcess, echo: str, stub: StubAgent) -> None:
    assert called(hub, echo, text("hi"))["state"] == "COMPLETED"
    assert called(hub, echo, text("ask"))["state"] == "INPUT_REQUIRED"
    failed = called(hub, echo, text("fail"))
    assert (failed["state"], last_words(failed)) == ("FAILED", FAILURE)
    slow = send(hub, echo, text("slow"))
    eventually(lambda: get(hub, echo, slow)["state"] == "WORKING", "the task is at work")
    assert result(hub, mount(echo), "tasks/cancel", {"id": slow})["success"] is True
    assert get(hub, echo, slow)["state"] == "CANCELED"


@pytest.mark.req("V-20")
def test_rejected_shows_as_failed(hub: HubProcess, official: str) -> None:
    shown = called(hub, official, text("reject"))
    assert (shown["state"], last_words(shown)) == ("FAILED", FAILURE)
    assert shown["metadata"]["dragoman"]["state"] == "rejected"


@pytest.mark.req("V-20")
def test_an_agent_that_wants_credentials_shows_as_one_that_asks(hub: HubProcess) -> None:
    stub = StubAgent("a2a-1.0")
    words = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Who are you?"}]}
    task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_AUTH_REQUIRED", "message": words}}

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "result": {"task": task}})

    with serving(stub, handle):
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        stub.card = {"name": "Guarded", "supportedInterfaces": [interface], "skills": []}
        shown = called(hub, taken_in(hub, stub, id=fresh()), text("hi"))
    assert (shown["state"], last_words(shown)) == ("INPUT_REQUIRED", "Who are you?")


@pytest.mark.req("V-21")
def test_an_artifact_of_another_dialect_has_id_and_type_and_is_said(hub: HubProcess, official: str) -> None:
    done = called(hub, official, text("hi"))
    (artifact,) = done["artifacts"]
    assert (artifact["type"], artifact["content"]) == ("result", "hi")
    assert last_words(done) == "hi"


@pytest.mark.req("V-21")
def test_a_file_inside_becomes_an_address_of_the_hub(hub: HubProcess) -> None:
    raw = b"\x00\xff file"
    stub = StubAgent("a2a-1.0")
    part = {"raw": base64.b64encode(raw).decode(), "filename": "a.bin", "mediaType": "application/x-thing"}
    task = {
        "id": "t",
        "contextId": "c",
        "status": {"state": "TASK_STATE_COMPLETED"},
        "artifacts": [{"artifactId": "a", "parts": [part]}],
    }

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "result": {"task": task}})

    with serving(stub, handle):
        interface = {"url": f"{stub.url}/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        stub.card = {"name": "Files", "supportedInterfaces": [interface], "skills": []}
        done = called(hub, taken_in(hub, stub, id=fresh()), text("hi"))
    (artifact,) = done["artifacts"]
    assert artifact["mediaType"] == "application/x-thing"
    (said,) = done["messages"][-1]["parts"]
    assert (said["type"], said["filename"]) == ("file", "a.bin")
    for url in (artifact["url"], said["url"]):
        assert _fetched(hub, url) == raw


def _fetched(hub: HubProcess, url: str) -> bytes:
    parts = urlsplit(url)
    assert parts.scheme == "http"
    connection = http.client.HTTPConnection("127.0.0.1", hub.port, timeout=10)
    try:
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read()
    finally:
        connection.close()


@pytest.mark.req("V-05")
def test_a_task_is_cancelled_once(hub: HubProcess, echo: str, stub: StubAgent) -> None:
    task_id = send(hub, echo, text("slow"))
    eventually(lambda: get(hub, echo, task_id)["state"] == "WORKING", "the task is at work")
    answer = result(hub, mount(echo), "tasks/cancel", {"id": task_id})
    assert answer == example("tasks-cancel-response")["result"]
    assert stub.cancelled.wait(10)
    assert get(hub, echo, task_id)["state"] == "CANCELED"
    again = result(hub, mount(echo), "tasks/cancel", {"id": task_id})
    assert again["success"] is False
    assert again["message"]


@pytest.mark.req("V-05")
def test_a_finished_or_unknown_task_is_not_cancelled(hub: HubProcess, echo: str) -> None:
    done = called(hub, echo, text("hi"))
    assert result(hub, mount(echo), "tasks/cancel", {"id": done["id"]})["success"] is False
    assert get(hub, echo, done["id"])["state"] == "COMPLETED"
    assert error(hub, mount(echo), "tasks/cancel", {"id": "av-nobody"})["code"] == -32001


@pytest.mark.req("X-19")
def test_a_repeated_key_is_the_same_task_and_a_repeated_message_another(hub: HubProcess, echo: str) -> None:
    key = {"Idempotency-Key": fresh("key")}
    first, again = (
        result(hub, mount(echo), "tasks/send", {"message": text("hi")}, headers=key)["id"] for _ in range(2)
    )
    assert first == again
    assert send(hub, echo, text("hi")) != first
    other = error(hub, mount(echo), "tasks/send", {"message": text("other")}, headers=key)
    assert other["code"] == -32602
    settled(hub, echo, first)


# -- cards and agents


@pytest.mark.req("V-11", "V-29", "X-11")
def test_a_card_is_served_at_the_mount(hub: HubProcess, echo: str, stub: StubAgent, official: str) -> None:
    card = hub.get(f"{mount(echo)}agent-card.json").json
    assert card == {
        **stub.card,
        "url": f"http://localhost:{hub.port}{mount(echo)}",
        "capabilities": {**stub.card["capabilities"], "supportsPushNotifications": True},
        "authSchemes": [
            {"scheme": "apiKey", "service_identifier": "dragoman"},
            {
                "scheme": "oauth2",
                "tokenUrl": f"http://localhost:{hub.port}/oauth/token",
                "scopes": ["a2a:call"],
                "service_identifier": "dragoman",
            },
            {"scheme": "bearer", "service_identifier": "dragoman"},
        ],
    }
    hub.request("PATCH", f"/v1/agents/{echo}", {"open": True})
    assert hub.get(f"{mount(echo)}agent-card.json").json["authSchemes"] == [{"scheme": "none"}]
    other = hub.get(f"{mount(official)}agent-card.json").json
    assert set(other) >= set(example("agent-card-protected"))
    assert other["capabilities"]["a2aVersion"] == "0.2"
    missing = hub.get(f"{mount('nobody')}agent-card.json")
    assert (missing.status, missing.json) == (404, example("registry-error-response"))


@pytest.mark.req("V-11")
def test_an_agent_of_another_version_is_refused_in_plain_words(hub: HubProcess, stub: StubAgent) -> None:
    card = {**stub.card, "capabilities": {"a2aVersion": "0.7"}}
    reply = hub.post("/v1/a2a/registry", {"agent_card": card})
    assert reply.status == 400
    assert "0.7 is not spoken here, 0.2 is" in reply.json["error"]["message"]


@pytest.mark.req("V-02")
@pytest.mark.parametrize("url", ["http://93.184.216.34/a2a/", "http://10.0.0.1/a2a/", "http://[2606:4700::1]/a2a/"])
def test_a_plain_address_elsewhere_is_refused(hub: HubProcess, stub: StubAgent, url: str) -> None:
    reply = hub.post("/api/v1/agent-cards/", {"card_data": {**stub.card, "url": url}})
    assert reply.status == 422
    assert url in reply.json["detail"]
    assert hub.get(f"/api/v1/agent-cards/by-hri?hri={stub.card['humanReadableId']}").status == 404


@pytest.mark.req("V-38")
def test_an_agent_is_found_by_its_url_and_followed_to_its_slash(hub: HubProcess, stub: StubAgent) -> None:
    stub.card["url"] = f"{stub.url}/a2a"
    agent = hub.register(None, url=stub.url, id=fresh())["id"]
    assert last_words(called(hub, agent, text("hi"))) == "hi"


@pytest.mark.req("V-38")
def test_an_agents_errors_are_its_own_in_every_shape(hub: HubProcess, stub: StubAgent) -> None:
    said: list[tuple[int, Any]] = []

    def handle(method: str, path: str, headers: Mapping[str, str], body: Any) -> tuple[int, Mapping[str, str], bytes]:
        status, answer = said[-1]
        return json_answer(answer, status)

    broken = StubAgent("agentvault")
    with serving(broken, handle):
        agent = hub.register({**stub.card, "url": f"{broken.url}/a2a/"}, id=fresh())["id"]
        for status, answer, words in (
            (200, {"error": {"code": -32000, "message": "Agent error: no"}}, "Agent error: no"),
            (500, {"error": "stream_error", "message": "it fell over"}, "it fell over"),
            (404, {"detail": "Not Found"}, "Not Found"),
        ):
            said.append((status, answer))
            failed = called(hub, agent, text("hi"))
            assert (failed["state"], last_words(failed)) == ("FAILED", words)
            assert failed["metadata"]["dragoman"]["failure"]["code"] == "AGENT_ERROR"
