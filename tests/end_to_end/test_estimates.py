"""How long an accepted call will take is told from what the skill's calls took before."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import fresh, join, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent, platform_agent

SLOW_S = 0.2


@pytest.fixture
def slow() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:

        def respond(body: dict[str, Any]) -> dict[str, Any]:
            if body["input"].get("slow"):
                agent.release.wait(SLOW_S)
            return {"status": "completed", "result": {}}

        agent.respond = respond
        yield agent


def estimate(hub: HubProcess, name: str, **more: Any) -> int:
    """What the hub says of a quick call that it accepts."""
    reply = hub.post("/v1/a2a/call/async", {"skill": name, "input": {}, **more})
    assert reply.status == 202, reply.body
    told: int = reply.json["estimated_duration_ms"]
    return told


@pytest.mark.req("P-23")
def test_an_estimate_is_what_the_skills_calls_took_before(hub: HubProcess, slow: PlatformAgent) -> None:
    known, unknown = fresh("known"), fresh("unknown")
    join(hub, slow, skills=[skill(known), skill(unknown)])
    for _ in range(3):
        assert hub.call(known, {"slow": True}).status == 200
    slow_ms = SLOW_S * 1000
    assert slow_ms <= estimate(hub, known) < 10 * slow_ms
    # Nothing is known of the other: as long as a waiting call may take, or as its caller gives it.
    assert estimate(hub, unknown, options={"timeout_ms": 2_500}) == 2_500
    assert estimate(hub, fresh_skill(hub, slow)) == 30_000


@pytest.mark.req("P-23")
def test_an_estimate_outlives_the_hub(tmp_path: Path, slow: PlatformAgent) -> None:
    name = fresh("known")
    hub = HubProcess(tmp_path / "data").start()
    try:
        join(hub, slow, skills=[skill(name)])
        assert hub.call(name, {"slow": True}).status == 200
        assert hub.stop() == 0
        assert SLOW_S * 1000 <= estimate(hub.start(), name) < 10_000
    finally:
        hub.stop()


def fresh_skill(hub: HubProcess, agent: PlatformAgent) -> str:
    name = fresh("fresh")
    join(hub, agent, skills=[skill(name)])
    return name
