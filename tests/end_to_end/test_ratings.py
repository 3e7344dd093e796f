"""A caller says how good a call was, and searches go by it: over the wire, over a restart."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import fresh, holds, join, refused, skill
from tests.support.hub import ROOT, HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent


def rate(hub: HubProcess, call_id: str, body: Any, token: str = "") -> Reply:
    return hub.post(f"/v1/a2a/call/{call_id}/rating", body, token=token)


def called(hub: HubProcess, agent_id: str, token: str, **more: Any) -> str:
    call_id: str = hub.call("echo", {"a": 1}, agent_id, token=token, **more).json["id"]
    return call_id


def shown(hub: HubProcess, agent_id: str, **filters: str) -> Any:
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    agents = hub.get(f"/v1/a2a/discover?limit=100&{query}").json["agents"]
    return next((agent["rating"] for agent in agents if agent["id"] == agent_id), None)


@pytest.mark.req("P-08")
def test_a_caller_rates_its_finished_call_and_discovery_shows_it(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent)["id"]
    key = hub.new_key()
    assert shown(hub, agent_id) == 4.5
    said = json.loads((ROOT / "tests/examples/platform/rating-request.json").read_text())
    call_id = called(hub, agent_id, key)
    reply = rate(hub, call_id, said, key)
    assert reply.status == 200
    assert reply.json == {
        "id": call_id, "call_id": call_id, "rating": 5, "comment": "Fast and exact",
        "agent": {"id": agent_id, "rating": 4.5},
    }  # fmt: skip
    # A later word takes the place of the earlier: (45 + 1) / 11.
    assert rate(hub, call_id, {"rating": 1}, key).json["agent"]["rating"] == 4.2
    assert shown(hub, agent_id) == 4.2
    assert shown(hub, agent_id, min_rating="4.3") is None
    assert hub.get(f"/v1/agents/{agent_id}").json["rating"] == 4.2


@pytest.mark.req("P-08")
def test_only_its_own_caller_rates_a_call_and_not_the_agents_owner(hub: HubProcess, agent: PlatformAgent) -> None:
    owner = hub.new_key("a2a:call", "a2a:register")
    agent_id = join(hub, agent, token=owner)["id"]
    caller, stranger = hub.new_key(), hub.new_key()
    call_id = called(hub, agent_id, caller)
    refused(rate(hub, call_id, {"rating": 1}, stranger), 404, "CALL_NOT_FOUND")
    refused(rate(hub, call_id, {"rating": 1}), 404, "CALL_NOT_FOUND")  # an administrator sees it, and did not make it
    own = called(hub, agent_id, owner)
    assert refused(rate(hub, own, {"rating": 5}, owner), 403, "AUTHORIZATION_ERROR")["details"]["reason"] == "own_agent"
    refused(rate(hub, "a2a_call_none", {"rating": 5}, caller), 404, "CALL_NOT_FOUND")
    refused(rate(hub, call_id, {"rating": 5}, hub.new_key("a2a:register")), 403, "AUTHORIZATION_ERROR")
    assert shown(hub, agent_id) == 4.5


@pytest.mark.req("P-08")
def test_a_call_is_rated_when_it_has_ended_however_it_did(hub: HubProcess) -> None:
    with platform_agent() as agent:
        agent.respond = holds(agent)
        agent_id = join(hub, agent)["id"]
        key = hub.new_key()
        body: dict[str, Any] = {"target_agent_id": agent_id, "skill": "echo", "input": {}}
        call_id = hub.post("/v1/a2a/call/async", body, token=key).json["call_id"]
        assert (
            refused(rate(hub, call_id, {"rating": 1}, key), 409, "VALIDATION_ERROR")["details"]["reason"] == "not_ended"
        )
        assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {}, token=key).status == 200
        assert rate(hub, call_id, {"rating": 1}, key).status == 200


def test_what_went_to_several_agents_is_rated_step_by_step(hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(hub, agent, skills=[skill("echo")])["id"]
    key = hub.new_key()
    call_id = called(hub, agent_id, key, then=[{"skill": "echo", "agent": agent_id}])
    refused(rate(hub, call_id, {"rating": 5}, key), 400, "VALIDATION_ERROR")
    assert rate(hub, f"{call_id}-0", {"rating": 5}, key).status == 200


@pytest.mark.parametrize(
    ("body", "path"),
    [({}, "rating"), ({"rating": 0}, "rating"), ({"rating": 6}, "rating"), ({"rating": 4.5}, "rating"),
     ({"rating": "5"}, "rating"), ({"rating": 5, "comment": "x" * 1025}, "comment"), ([], "body")],
)  # fmt: skip
def test_anything_but_one_to_five_is_refused(body: Any, path: str, hub: HubProcess, agent: PlatformAgent) -> None:
    key = hub.new_key()
    call_id = called(hub, join(hub, agent)["id"], key)
    error = refused(rate(hub, call_id, body, key), 400, "VALIDATION_ERROR")
    assert path in json.dumps(error)


def test_a_rating_outlives_the_hub(tmp_path: Path, agent: PlatformAgent) -> None:
    with running_hub(tmp_path / "data") as hub:
        agent_id = join(hub, agent, id=fresh())["id"]
        key = hub.new_key()
        rate(hub, called(hub, agent_id, key), {"rating": 1}, key)
        hub.kill()
        hub.start()
        assert shown(hub, agent_id) == 4.2
