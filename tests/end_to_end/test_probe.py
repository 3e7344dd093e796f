"""Registering by a URL: the hub finds out what is really spoken there, keeps what it saw, and looks again when told."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from tests.end_to_end.bare_agents import BareAgent, bare_agent, failure, result, task
from tests.end_to_end.world import fresh, refused
from tests.support.hub import HubProcess
from tests.support.quirks import STUBS
from tests.support.speaking import StubAgent, json_answer, serving

Said = tuple[int, Mapping[str, str], bytes]
DONE = task("TASK_STATE_COMPLETED", artifacts=[{"artifactId": "a", "parts": [{"text": "hello"}]}])
DONE_03 = {**task("completed"), "kind": "task", "artifacts": [{"parts": [{"kind": "text", "text": "hello"}]}]}
# What each stub is found to speak, best first.
FOUND = {
    "strict10": ["a2a-1.0"],
    "statusonly10": ["a2a-1.0"],
    "historyonly10": ["a2a-1.0"],
    "understated": ["a2a-1.0", "a2a-0.3"],
    "hybrid": ["a2a-1.0"],
    "mixedstream": ["a2a-1.0", "a2a-0.3"],
    "manyparts03": ["a2a-0.3"],
    "statusonly03": ["a2a-0.3"],
    "wholetask03": ["a2a-0.3"],
    "pathmethod": ["a2a-0.3"],
    "agentvault": ["agentvault"],
    "nullpair": ["dotted"],
    "rest03": ["a2a-0.3"],
    "liar": ["a2a-0.3"],
}


def call(hub: HubProcess, agent: str, text: str = "hi") -> Any:
    """A call in words that every agent takes, and the answer's text."""
    message = {"kind": "message", "messageId": "m", "role": "user", "parts": [{"kind": "text", "text": text}]}
    body = {"jsonrpc": "2.0", "id": "1", "method": "message/send", "params": {"message": message}}
    answer = hub.post(f"/agents/{agent}/", body).json
    found = answer["result"]
    assert found["status"]["state"] == "completed", answer
    return "".join(part["text"] for part in found["artifacts"][0]["parts"])


def speaks_10(asked: dict[str, Any]) -> dict[str, Any]:
    """A server of 1.0 without a card."""
    if asked["method"] == "SendMessage":
        return result({"task": DONE})
    return failure(-32001, "no such task") if asked["method"] == "GetTask" else failure(-32601, "no such method")


def speaks_03(asked: dict[str, Any]) -> dict[str, Any]:
    """A server of 0.3 without a card."""
    if asked["method"] == "message/send" and asked["params"]:
        return result(DONE_03)
    codes = {"message/send": -32602, "tasks/get": -32001}
    return failure(codes.get(asked["method"], -32601), "no")


def breaks(_: dict[str, Any]) -> tuple[int, dict[str, str], bytes]:
    """A server that is of no use any more."""
    return 500, {}, b""


def endpoint_of(hub: HubProcess, agent: str) -> str:
    found: str = hub.get(f"/v1/agents/{agent}").json["dialect"]
    return found


@pytest.mark.parametrize("name", STUBS)
def test_an_agent_of_the_field_is_registered_by_its_url_and_answers(hub: HubProcess, name: str) -> None:
    with STUBS[name]() as stub:
        answer = hub.register(None, url=stub.url, id=fresh())
        assert call(hub, answer["id"]) == f"hello from {name}"
        kept = hub.get(f"/v1/agents/{answer['id']}/probe").json
    assert answer["dialect"] == FOUND[name][0]
    assert [each["name"] for each in kept["dialects"] if each["answered"]] == FOUND[name]
    assert (kept["url"], kept["verdict"]) == (stub.url, "usable")


@pytest.mark.parametrize("speaks", [speaks_10, speaks_03])
def test_an_endpoint_without_a_card_is_registered_under_its_host(hub: HubProcess, speaks: Any) -> None:
    with bare_agent(speaks) as bare:
        answer = hub.register(None, url=bare.url)
        assert answer["name"] == bare.url.removeprefix("http://")
        assert answer["dialect"] == ("a2a-1.0" if speaks is speaks_10 else "a2a-0.3")
        assert call(hub, answer["id"]) == "hello"
        item = hub.get(f"/v1/agents/{answer['id']}").json
    assert item["skills"] == ["default"]


def test_a_dialect_that_is_named_is_used_where_it_answers(hub: HubProcess) -> None:
    with STUBS["understated"]() as stub:
        assert hub.register(None, url=stub.url, id=fresh(), dialect="a2a-0.3")["dialect"] == "a2a-0.3"
    error = refused(hub.post("/v1/a2a/registry", {"url": stub.url, "dialect": "klingon"}), 400, "VALIDATION_ERROR")
    assert "klingon" in error["message"]


def test_what_answers_nothing_usable_is_refused_with_every_request(hub: HubProcess) -> None:
    with bare_agent(lambda _: failure(-32601, "no such method")) as bare:
        error = refused(hub.post("/v1/a2a/registry", {"url": bare.url}), 400, "VALIDATION_ERROR")
    seen = error["details"]["seen"]
    assert any(line.startswith("card, GET ") for line in seen)
    assert f"GetTask, POST {bare.url}: -32601" in seen
    assert len(seen) <= 24
    assert error["details"]["errors"][0]["path"] == "url"


def test_where_nobody_listens_that_is_said(hub: HubProcess) -> None:
    with bare_agent(speaks_10) as bare:
        gone = bare.url
    error = refused(hub.post("/v1/a2a/registry", {"url": gone}), 400, "VALIDATION_ERROR")
    assert "nothing answers there" in error["message"]
    assert len(error["details"]["seen"]) == 1


def test_a_card_that_needs_to_know_which_agent_is_meant_says_so(hub: HubProcess) -> None:
    with STUBS["mixedstream"]() as stub:
        origin = stub.url.partition("/a2a/")[0]
        error = refused(hub.post("/v1/a2a/registry", {"url": origin}), 400, "VALIDATION_ERROR")
        assert "assistant_id" in error["message"]
        query = f"{origin}?assistant_id={stub.url.rpartition('/')[2]}"
        assert hub.register(None, url=query, id=fresh())["name"] == "mixedstream"


def test_a_credential_that_comes_with_the_registration_opens_the_door(hub: HubProcess) -> None:
    agent = StubAgent("guarded")

    def guarded(method: str, path: str, headers: Mapping[str, str], body: Any) -> Said:
        if headers.get("authorization") != "Bearer s3cret":
            return 401, {"WWW-Authenticate": "Bearer"}, b"{}"
        if method == "GET":
            return 404, {}, b"{}"
        return json_answer({**speaks_10(body), "id": body["id"]})

    with serving(agent, guarded):
        refusal = refused(hub.post("/v1/a2a/registry", {"url": agent.url}), 400, "VALIDATION_ERROR")
        assert "wants a credential" in refusal["message"]
        credentials = {"type": "bearer", "token": "s3cret"}
        answer = hub.register(None, url=agent.url, id=fresh(), credentials=credentials)
        assert call(hub, answer["id"]) == "hello"
        again = hub.post(f"/v1/agents/{answer['id']}/probe", {})
        assert (again.status, again.json["verdict"]) == (200, "usable")
        assert b"s3cret" not in again.body


def test_an_agent_that_changed_its_dialect_is_understood_after_another_look(hub: HubProcess) -> None:
    with bare_agent(speaks_10) as bare:
        agent = hub.register(None, url=bare.url, id=fresh())["id"]
        bare.answer = speaks_03
        assert hub.call("default", {"text": "hi"}, agent).status == 502
        seen = hub.post(f"/v1/agents/{agent}/probe", {}).json
        assert [each["name"] for each in seen["dialects"] if each["answered"]] == ["a2a-0.3"]
        assert endpoint_of(hub, agent) == "a2a-0.3"
        assert call(hub, agent) == "hello"


def test_another_look_keeps_the_card_that_its_owner_gave(hub: HubProcess) -> None:
    with bare_agent(speaks_10) as bare:
        card = bare.official_card(name="Mine", description="by hand")
        agent = hub.register(card, id=fresh())["id"]
        refused(hub.get(f"/v1/agents/{agent}/probe"), 404, "NOT_FOUND")
        assert hub.post(f"/v1/agents/{agent}/probe", {}).status == 200
        item = hub.get(f"/v1/agents/{agent}").json
    assert (item["name"], item["description"], item["skills"]) == ("Mine", "by hand", ["talk"])


def test_a_look_in_vain_changes_nothing(hub: HubProcess) -> None:
    with bare_agent(speaks_10) as bare:
        agent = hub.register(None, url=bare.url, id=fresh())["id"]
        before = hub.get(f"/v1/agents/{agent}/probe").json
        bare.answer = breaks
        refused(hub.post(f"/v1/agents/{agent}/probe", {}), 400, "VALIDATION_ERROR")
        assert hub.get(f"/v1/agents/{agent}/probe").json == before
        bare.answer = speaks_10
        assert call(hub, agent) == "hello"


def test_what_the_hub_saw_is_for_the_agents_owner_alone(hub: HubProcess) -> None:
    owner, other = hub.new_key("a2a:register", "a2a:call"), hub.new_key("a2a:register", "a2a:call")
    with bare_agent(speaks_10) as bare:
        agent = hub.post("/v1/a2a/registry", {"url": bare.url, "id": fresh()}, token=owner).json["id"]
        path = f"/v1/agents/{agent}/probe"
        assert hub.get(path, token=owner).status == 200
        refused(hub.get(path, token=other), 403, "AUTHORIZATION_ERROR")
        refused(hub.post(path, {}, token=other), 403, "AUTHORIZATION_ERROR")
        asked = len(bare.asked)
        refused(hub.get(path, headers={"Authorization": ""}), 401, "AUTHORIZATION_ERROR")
    assert len(bare.asked) == asked


def test_the_hub_says_who_looks_and_starts_no_work(hub: HubProcess) -> None:
    with bare_agent(speaks_10) as bare:
        hub.register(None, url=bare.url, id=fresh())
        assert {each["user-agent"].partition("/")[0] for each in bare.headers} == {"dragoman-doctor"}
        assert not any("idempotency-key" in each for each in bare.headers)
        assert _sent(bare) == []


def _sent(bare: BareAgent) -> list[str]:
    return [
        json.dumps(each) for each in bare.asked if each["method"].endswith(("SendMessage", "send")) and each["params"]
    ]
