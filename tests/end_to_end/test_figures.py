"""What discovery, the series and the metrics tell of the same calls is the same, and outlives the hub."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.rating import rating_of
from tests.cli.terminal import environment, piped
from tests.end_to_end.world import eventually, fresh, holds, join, refused, repeats, skill
from tests.support.hub import HubProcess, Reply, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent

GOOD, BAD, WRONG, CANCELLED = 200, 40, 30, 10
TAKES = {"type": "object", "properties": {"do": {"type": "string"}}, "required": ["do"]}


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("figures") / "data") as running:
        yield running


def moody(body: dict[str, Any]) -> dict[str, Any]:
    """An agent that does what it is told to."""
    match body["input"]["do"]:
        case "fail":
            return {"status": "failed", "error": {"code": "AGENT_ERROR", "message": "It broke."}}
        case _:
            return repeats(body)


def mixed(hub: HubProcess, agent_id: str, name: str) -> None:
    """A few hundred calls that end in different ways."""

    def call(word: str) -> Reply:
        return hub.call(name, {"do": word}, agent_id)

    words = ["work"] * GOOD + ["fail"] * BAD
    with ThreadPoolExecutor(8) as at_once:
        assert sorted({reply.status for reply in at_once.map(call, words)}) == [200, 502]
    for _ in range(WRONG):
        refused(hub.call(name, {}, agent_id), 400, "VALIDATION_ERROR")  # becomes no call at all


def cancelled(hub: HubProcess, agent: PlatformAgent, agent_id: str, name: str) -> None:
    agent.respond = holds(agent)
    for _ in range(CANCELLED):
        agent.arrived.clear()
        body = {"target_agent_id": agent_id, "skill": name, "input": {"do": "wait"}}
        call_id = hub.post("/v1/a2a/call/async", body).json["call_id"]
        assert agent.arrived.wait(10)
        assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {}).status == 200
    agent.release.set()


def discovered(hub: HubProcess, name: str, query: str = "") -> Any:
    agents = hub.get(f"/v1/a2a/discover?skill={name}{query}").json["agents"]
    return agents[0] if agents else None


def series(hub: HubProcess, query: str) -> Any:
    reply = hub.get(f"/v1/calls/series?{query}")
    assert reply.status == 200, reply.body
    return reply.json


def counted(hub: HubProcess, agent_id: str, status: str) -> int:
    """How many calls of an agent ended so, by the metrics."""
    text = hub.get("/metrics").body.decode()
    found = re.findall(rf'^a2a_calls_total{{([^}}]*target_id="{agent_id}"[^}}]*)}} (\S+)', text, re.MULTILINE)
    return round(sum(float(value) for labels, value in found if f'status="{status}"' in labels))


@pytest.mark.req("P-06")
@pytest.mark.req("P-45")
@pytest.mark.req("P-46")
def test_discovery_series_and_metrics_tell_the_same(hub: HubProcess, tmp_path: Path) -> None:
    name = fresh("moody")
    with platform_agent(moody) as agent:
        agent_id = join(hub, agent, skills=[skill(name, input_schema=TAKES)])["id"]
        assert discovered(hub, name, "&min_rating=4.0")["rating"] == 4.5
        mixed(hub, agent_id, name)
        cancelled(hub, agent, agent_id, name)
    eventually(lambda: series(hub, f"agent={agent_id}")["total"]["cancelled"] == CANCELLED, "all have ended")
    told = series(hub, f"agent={agent_id}&skill={name}&by=hour")
    total = told["total"]
    assert (total["calls"], total["completed"], total["failed"]) == (GOOD + BAD + CANCELLED, GOOD, BAD)
    assert sum(each["calls"] for each in told["items"]) == total["calls"]
    assert total["success"] == round(GOOD / (GOOD + BAD), 4)
    found = discovered(hub, name)
    assert found["response_time_p95_ms"] == total["p95_ms"] >= total["p50_ms"]
    assert found["availability"] == total["availability"] == 1.0
    assert found["rating"] == rating_of(0, 0, GOOD + BAD, BAD) < 4.5
    shown = hub.get(f"/v1/agents/{agent_id}").json
    assert (shown["success"], shown["calls"]) == (total["success"], GOOD + BAD)
    assert shown["last_seen_at"] == found["last_seen_at"] is not None
    assert counted(hub, agent_id, "completed") == GOOD
    assert counted(hub, agent_id, "failed") == BAD
    assert counted(hub, agent_id, "cancelled") == CANCELLED
    over, under = found["rating"] + 0.1, found["rating"] - 0.1
    for query in (f"&min_rating={over:.1f}", f"&max_p95_ms={max(found['response_time_p95_ms'] - 1, 0)}"):
        assert discovered(hub, name, query) is None
    query = f"&min_rating={under:.1f}&max_p95_ms={found['response_time_p95_ms']}&min_availability=1"
    assert discovered(hub, name, query)["id"] == agent_id
    listed = hub.get(f"/v1/agents?q={name}&min_rating={over:.1f}").json["items"]
    assert listed == []
    env = environment(tmp_path, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=hub.token or "")
    assert agent_id in piped("discover", name, "--min-rating", f"{under:.1f}", env=env).out
    assert agent_id not in piped("discover", name, "--min-rating", f"{over:.1f}", env=env).out


@pytest.mark.req("P-46")
def test_figures_outlive_the_hub(tmp_path: Path) -> None:
    name = fresh("moody")
    with platform_agent(moody) as agent, running_hub(tmp_path / "data") as hub:
        agent_id = join(hub, agent, skills=[skill(name)])["id"]
        for word in ("work", "work", "work", "fail"):
            hub.call(name, {"do": word}, agent_id)
        assert hub.stop() == 0
        hub.start()
        before = hub.get(f"/v1/agents/{agent_id}").json
        assert (before["calls"], before["success"]) == (4, 0.75)
        assert before["last_seen_at"] is not None
        reply = hub.call(name, {"do": "work"})
        (candidate,) = hub.get(f"/v1/calls/{reply.json['id']}").json["route"]["candidates"]
        assert (candidate["calls"], candidate["success"]) == (4, 0.75)
        assert series(hub, f"agent={agent_id}")["total"]["completed"] == 4
        assert hub.get(f"/v1/agents/{agent_id}").json["calls"] == 5


def test_who_sees_which_series(hub: HubProcess, agent: PlatformAgent) -> None:
    name = fresh("skill")
    agent_id = join(hub, agent, skills=[skill(name)])["id"]
    caller = hub.new_key()
    hub.call(name, {}, agent_id, token=caller)
    for token in (caller, ""):
        reply = hub.get(f"/v1/calls/series?skill={name}", token=token)
        assert reply.json["total"]["completed"] == 1
    refused(hub.get("/v1/calls/series", token=hub.new_key("a2a:register")), 403, "AUTHORIZATION_ERROR")
    refused(hub.get("/v1/calls/series?agent=agt_nobody"), 404, "AGENT_NOT_FOUND")


@pytest.mark.parametrize(
    "query",
    ["by=day", "from=yesterday", "from=2026-01-01T00:00:00Z&to=2025-01-01T00:00:00Z", "from=2020-01-01", "colour=red"],
)
def test_a_series_that_makes_no_sense_is_400(hub: HubProcess, query: str) -> None:
    refused(hub.get(f"/v1/calls/series?{query}"), 400, "VALIDATION_ERROR")
