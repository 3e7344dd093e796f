"""The hub calls agents built with the published SDK of A2A 1.0, registered by nothing but their URL."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.end_to_end.world import fresh, refused
from tests.support.hub import HubProcess
from tests.support.peers import PeerProcess, echo_agent


@pytest.fixture(scope="module")
def echoing() -> Iterator[PeerProcess]:
    with echo_agent("echo") as peer:
        yield peer


@pytest.fixture(scope="module")
def asking() -> Iterator[PeerProcess]:
    with echo_agent("ask") as peer:
        yield peer


def _registered(hub: HubProcess, peer: PeerProcess) -> dict[str, Any]:
    return hub.register(None, url=peer.url, id=fresh("agt_official"))


def test_a_url_is_enough_to_register_an_official_agent(hub: HubProcess, echoing: PeerProcess) -> None:
    answer = _registered(hub, echoing)
    assert (answer["dialect"], answer["name"], answer["version"]) == ("a2a-1.0", "Echo", "1.0.0")
    card = hub.get(f"/v1/a2a/agents/{answer['id']}/card").json
    assert card["endpoint"] == answer["endpoint"]
    assert card["capabilities"] == {"streaming": True, "a2a": True, "memory": False}
    assert [skill["name"] for skill in card["skills"]] == ["echo"]
    assert set(card["skills"][0]) >= {"description", "input_schema", "output_schema"}
    shown = hub.get(f"/v1/agents/{answer['id']}").json
    assert shown["registered_endpoint"] == echoing.url


@pytest.mark.parametrize("path", ["", "/", "/.well-known/agent-card.json"])
def test_the_url_may_be_that_of_the_agent_or_of_its_card(hub: HubProcess, echoing: PeerProcess, path: str) -> None:
    name = hub.register(None, url=echoing.url.rstrip("/") + path, id=fresh())["id"]
    assert hub.call("echo", {"text": "hi"}, name).json["result"] == {"text": "hi"}


@pytest.mark.parametrize(
    "given",
    [
        {"text": "hi"},
        {"nested": {"a": [1, 2.5, None, True, "ü"]}},
        {"whole": 7, "large": 2**52, "negative": -3},
        {},
    ],
)
def test_an_official_agent_gives_back_what_it_was_sent(
    hub: HubProcess, echoing: PeerProcess, given: dict[str, Any]
) -> None:
    reply = hub.call("echo", given, _registered(hub, echoing)["id"])
    assert reply.status == 200, reply.body
    assert reply.json["result"] == given
    assert reply.json["status"] == "completed"
    assert set(reply.json["timing"]) == {"queued_at", "started_at", "completed_at", "duration_ms"}
    shown = hub.get(f"/v1/a2a/call/{reply.json['id']}/status").json
    assert shown["result"] == given


def test_calls_follow_each_other_on_one_agent(hub: HubProcess, echoing: PeerProcess) -> None:
    name = _registered(hub, echoing)["id"]
    for number in range(20):
        assert hub.call("echo", {"n": number}, name).json["result"] == {"n": number}


def test_an_official_agent_that_fails_is_an_agents_error_in_its_own_words(hub: HubProcess) -> None:
    with echo_agent("fail") as peer:
        reply = hub.call("echo", {"text": "hi"}, _registered(hub, peer)["id"])
        error = refused(reply, 502, "AGENT_ERROR")
        assert error["message"] == "This agent always fails."
        assert error["retryable"] is False
        assert hub.get(f"/v1/a2a/call/{reply.json['id']}/status").json == reply.json


@pytest.mark.req("P-51")
def test_an_agent_that_needs_input_asks_and_the_call_is_continued(hub: HubProcess, asking: PeerProcess) -> None:
    name = _registered(hub, asking)["id"]
    reply = hub.call("echo", {"text": "first"}, name)
    error = refused(reply, 502, "AGENT_ERROR")
    call_id = reply.json["id"]
    assert error["details"]["reason"] == "input_required"
    assert error["details"]["question"] == error["message"] == "What should I echo?"
    shown = hub.get(f"/v1/a2a/call/{call_id}/status").json
    assert (shown["status"], shown["awaiting"], shown["message"]) == ("running", "input", "What should I echo?")
    assert "error" not in shown
    follow = {"input": {"text": "second"}, "context": {"continue_call_id": call_id}}
    answer = hub.post("/v1/a2a/call", follow)
    assert answer.status == 200, answer.body
    assert answer.json["id"] == call_id
    assert answer.json["result"] == {"text": "second"}
    refused(hub.post("/v1/a2a/call", follow), 409, "VALIDATION_ERROR")
    assert hub.get(f"/v1/a2a/call/{call_id}/status").json["status"] == "completed"


@pytest.mark.req("P-51")
def test_only_its_caller_continues_a_call(hub: HubProcess, asking: PeerProcess) -> None:
    name = _registered(hub, asking)["id"]
    mine, yours = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    call_id = hub.call("echo", {"text": "first"}, name, token=mine).json["id"]
    follow = {"skill": "echo", "input": {"text": "mine"}, "context": {"continue_call_id": call_id}}
    refused(hub.post("/v1/a2a/call", follow, token=yours), 404, "CALL_NOT_FOUND")
    assert hub.post("/v1/a2a/call", follow, token=mine).json["result"] == {"text": "mine"}


def test_a_slow_agent_is_waited_for_and_given_up_in_time(hub: HubProcess) -> None:
    with echo_agent("slow", delay_s=1.0) as peer:
        name = _registered(hub, peer)["id"]
        assert hub.call("echo", {"text": "hi"}, name).json["result"] == {"text": "hi"}
        error = refused(hub.call("echo", {}, name, options={"timeout_ms": 300}), 504, "AGENT_TIMEOUT")
        assert error["details"] == {"timeout_ms": 300, "agent_id": name}


def test_an_agent_that_has_gone_is_unavailable(hub: HubProcess) -> None:
    with echo_agent("echo") as peer:
        name = _registered(hub, peer)["id"]
        assert hub.call("echo", {"text": "hi"}, name).status == 200
    refused(hub.call("echo", {"text": "hi"}, name), 503, "AGENT_UNAVAILABLE")
