import os
import signal
import threading
from pathlib import Path

from tests.end_to_end.world import eventually, holds, join, refused, tracebacks
from tests.support.hub import HubProcess, Reply
from tests.support.platform_agent import PlatformAgent


def test_a_running_call_ends_well_while_new_ones_are_sent_away(tmp_path: Path, agent: PlatformAgent) -> None:
    agent.respond = holds(agent)
    hub = HubProcess(tmp_path / "data").start()
    try:
        name = join(hub, agent)["id"]
        replies: list[Reply] = []
        running = threading.Thread(target=lambda: replies.append(hub.call("echo", {"a": 1}, name)))
        running.start()
        assert agent.arrived.wait(5)
        os.kill(hub.pid, signal.SIGTERM)
        eventually(lambda: hub.get("/readyz").status == 503, "the hub drains")
        assert hub.get("/readyz").json["checks"]["draining"] is True
        assert hub.get("/healthz").status == 200
        refusal = hub.call("echo", {"a": 2}, name)
        error = refused(refusal, 503, "AGENT_UNAVAILABLE")
        assert error["details"]["reason"] == "draining"
        assert error["retryable"] is True
        assert int(refusal.headers["retry-after"]) > 0
        agent.release.set()
        running.join(10)
        assert replies[0].json["result"] == {"a": 1}
        assert len(agent.requests) == 1
        # A second signal would cut it short: wait for its end before asking how it ended.
        eventually(lambda: "State:\tZ" in Path(f"/proc/{hub.pid}/status").read_text(), "the hub has ended")
        assert hub.stop() == 0
    finally:
        agent.release.set()
        hub.kill()
    assert tracebacks(hub) == []


def test_what_was_registered_made_and_called_is_there_after_a_restart(tmp_path: Path, agent: PlatformAgent) -> None:
    hub = HubProcess(tmp_path / "data").start()
    answer = join(hub, agent, credentials={"type": "bearer", "token": "owner-stored-this"})
    key = hub.new_key("a2a:call")
    call = hub.call("echo", {"a": 1}, answer["id"], token=key).json
    public = hub.get("/.well-known/jwks.json").json
    assert hub.stop() == 0
    hub.start()
    try:
        assert hub.get(f"/v1/a2a/call/{call['id']}/status", token=key).json["result"] == {"a": 1}
        assert hub.call("echo", {"a": 2}, answer["id"], token=key).json["result"] == {"a": 2}
        assert agent.requests[-1][1]["authorization"] == "Bearer owner-stored-this"
        assert hub.get("/.well-known/jwks.json").json == public
        assert hub.get("/v1/a2a/discover", token=answer["token"]).json["total"] == 1
    finally:
        assert hub.stop() == 0
    assert tracebacks(hub) == []
