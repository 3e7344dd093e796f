import time
from typing import Any

import pytest

from tests.end_to_end.bare_agents import Said, bare_agent, result, task
from tests.end_to_end.world import fresh, holds, join, refused
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

SLACK_MS = 250  # on a busy machine, beside the 100 ms that are promised


def _elapsed_ms(ask: Any) -> tuple[Any, float]:
    started = time.monotonic()
    return ask(), (time.monotonic() - started) * 1000


@pytest.mark.req("P-16", "P-56")
@pytest.mark.parametrize("timeout_ms", [1, 300, 700])
def test_a_timeout_is_kept_and_the_agent_told_to_stop_once(
    hub: HubProcess, agent: PlatformAgent, timeout_ms: int
) -> None:
    agent.respond = holds(agent)
    name = join(hub, agent)["id"]
    options = {"timeout_ms": timeout_ms}
    reply, elapsed_ms = _elapsed_ms(lambda: hub.call("echo", {}, name, options=options))
    error = refused(reply, 504, "AGENT_TIMEOUT")
    assert error["details"] == {"timeout_ms": timeout_ms, "agent_id": name}
    assert error["retryable"] is True
    assert elapsed_ms >= timeout_ms
    assert elapsed_ms < timeout_ms + 100 + SLACK_MS
    assert agent.cancelled.wait(5)
    assert hub.call("echo", {}, name, options={"timeout_ms": 50}).status == 504
    cancels = [body for path, _, body in agent.requests if path == "/a2a/cancel" if body["call_id"] == reply.json["id"]]
    assert cancels == [{"call_id": reply.json["id"], "reason": "timeout"}]
    shown = hub.get(f"/v1/a2a/call/{reply.json['id']}/status").json
    assert shown == reply.json


@pytest.mark.req("P-56")
@pytest.mark.parametrize("status", [404, 405, 501])
def test_an_agent_that_knows_no_cancel_is_left_in_peace(hub: HubProcess, agent: PlatformAgent, status: int) -> None:
    def answer(asked: dict[str, Any]) -> Said | None:
        return (status, {}, b"no such thing") if "reason" in asked else None

    with bare_agent(answer) as bare:
        name = join(hub, agent, endpoint=bare.url + "/run/?tenant=7")["id"]
        refused(hub.call("echo", {}, name, options={"timeout_ms": 200}), 504, "AGENT_TIMEOUT")
        assert bare.cancelled.wait(5)
        assert bare.paths == ["/run/?tenant=7", "/run/cancel?tenant=7"]
    assert hub.get("/readyz").status == 200


@pytest.mark.req("P-16")
def test_a_slow_official_agent_is_cancelled_by_the_id_it_gave(hub: HubProcess) -> None:
    def answer(asked: dict[str, Any]) -> dict[str, Any]:
        working = task("TASK_STATE_CANCELED" if asked["method"] == "CancelTask" else "TASK_STATE_WORKING")
        return result({"task": working} if asked["method"] == "SendMessage" else working)

    with bare_agent(answer) as bare:
        name = hub.register(bare.official_card(), id=fresh())["id"]
        options = {"timeout_ms": 900}
        reply, elapsed_ms = _elapsed_ms(lambda: hub.call("talk", {"text": "x"}, name, options=options))
        error = refused(reply, 504, "AGENT_TIMEOUT")
        assert error["details"] == {"timeout_ms": 900, "agent_id": name}
        assert 900 <= elapsed_ms < 1000 + SLACK_MS
        assert bare.cancelled.wait(5)
        methods = [each["method"] for each in bare.asked]
        assert methods[0] == "SendMessage"
        assert set(methods[1:-1]) == {"GetTask"}
        assert methods[-1] == "CancelTask"
        assert bare.asked[-1]["params"]["id"] == "their-task"


@pytest.mark.parametrize("wrong", [0, -1, 3_600_001, 1.5, "1000", True, 2**70])
def test_a_timeout_out_of_range_is_refused(hub: HubProcess, agent: PlatformAgent, wrong: object) -> None:
    reply = hub.call("echo", {}, join(hub, agent)["id"], options={"timeout_ms": wrong})
    error = refused(reply, 400, "VALIDATION_ERROR")
    assert "options.timeout_ms" in error["message"]
