"""Agents that go away are noticed, and taken back when they answer again: a real hub, a real agent, quick checks."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.end_to_end.world import eventually, fresh, join, log_lines, refused, skill, tracebacks
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent

EVERY_S = 0.2


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("health") / "data", auth="none")
    hub.start({"DRAGOMAN_HEALTH_EVERY_S": str(EVERY_S), "DRAGOMAN_HEALTH_LONGEST_S": str(2 * EVERY_S)})
    yield hub
    hub.stop()
    assert tracebacks(hub) == []


def shown(hub: HubProcess, agent_id: str) -> Any:
    return hub.get(f"/v1/agents/{agent_id}").json


def stands(hub: HubProcess, agent_id: str, status: str) -> Any:
    return eventually(lambda: shown(hub, agent_id)["status"] == status and shown(hub, agent_id), f"it is {status}")


def logged(hub: HubProcess, message: str, agent_id: str) -> Any:
    lines = [line for line in log_lines(hub) if line.get("agent_id") == agent_id]
    return next((line for line in lines if line["message"] == message), None)


@pytest.mark.req("P-10")
def test_an_agent_that_goes_away_is_marked_and_is_called_again_when_it_is_back(hub: HubProcess) -> None:
    name, agent_id = fresh("skill"), fresh("agt_leaves")
    with ExitStack() as running:
        agent = running.enter_context(platform_agent())
        port = int(agent.endpoint.split(":")[2].split("/")[0])
        join(hub, agent, id=agent_id, skills=[skill(name)])
        seen = eventually(lambda: shown(hub, agent_id)["last_seen_at"], "it was seen")
        assert hub.call(name, {"a": 1}, agent_id).status == 200
    away = stands(hub, agent_id, "unreachable")
    assert away["last_seen_at"] >= seen
    # At once, without a word to the agent.
    error = refused(hub.call(name, {}, agent_id), 503, "AGENT_UNAVAILABLE")
    assert "unreachable" in error["message"]
    refused(hub.call(name, {}), 503, "AGENT_UNAVAILABLE")
    found = hub.get(f"/v1/a2a/discover?skill={name}").json["agents"]
    assert [(each["id"], each["status"]) for each in found] == [(agent_id, "unreachable")]
    assert eventually(lambda: logged(hub, "an agent is unreachable", agent_id), "it is logged")["level"] == "warning"
    with platform_agent(port=port):
        stands(hub, agent_id, "active")
        assert hub.call(name, {"a": 1}, agent_id).json["result"] == {"a": 1}
        hub.get("/v1/calls/series")  # has the figures written
        assert 0 < shown(hub, agent_id)["availability"] < 1


@pytest.mark.req("P-10")
def test_who_is_paused_is_not_asked(hub: HubProcess, agent: PlatformAgent) -> None:
    asked = join(hub, agent)["id"]
    paused = join(hub, agent)["id"]
    hub.request("PATCH", f"/v1/agents/{paused}", {"status": "paused"})
    before = shown(hub, paused)["last_seen_at"]
    first = eventually(lambda: shown(hub, asked)["last_seen_at"], "the other is asked")
    eventually(lambda: shown(hub, asked)["last_seen_at"] > first, "and asked again")
    assert shown(hub, paused)["last_seen_at"] == before
    assert shown(hub, paused)["status"] == "paused"
