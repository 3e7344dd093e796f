"""What a hub refuses that is hard pressed, and what it never does: here its memory is over its limit from the start."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.world import eventually, join, refused
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

SETTINGS = {"DRAGOMAN_PRESSURE_MEMORY_MIB": "1"}


@pytest.fixture(scope="module")
def pressed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("pressed") / "data").start(SETTINGS)
    try:
        eventually(lambda: hub.get("/readyz").json["checks"]["pressure"] == 2, "the hub is hard pressed")
        yield hub
    finally:
        hub.stop()


def test_a_new_call_is_refused_in_any_dialect_with_a_time_to_come_back(
    pressed: HubProcess, agent: PlatformAgent
) -> None:
    name = join(pressed, agent)["id"]  # An agent is welcome, even now.
    waits: set[int] = set()
    for _ in range(40):
        reply = pressed.call("echo", {}, name)
        error = refused(reply, 503, "AGENT_UNAVAILABLE")
        assert error["details"]["reason"] == "overloaded" and error["retryable"] is True
        waits.add(int(reply.headers["retry-after"]))
    assert waits <= {1, 2, 3, 4, 5} and len(waits) > 1
    sent = {"message": {"role": "user", "messageId": "m", "parts": [{"kind": "text", "text": "hello"}]}}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "message/send", "params": sent}
    reply = pressed.post(f"/agents/{name}", asked)
    assert reply.status == 503 and reply.json["id"] == 7 and 1 <= int(reply.headers["retry-after"]) <= 5
    assert agent.requests == []


@pytest.mark.parametrize("path", ["/v1/calls", "/v1/agents", "/v1/deliveries", "/v1/audit", "/v1/a2a/discover"])
def test_a_listing_is_refused(pressed: HubProcess, path: str) -> None:
    reply = pressed.get(path)
    assert reply.status == 503, reply.body
    assert reply.json["error"]["details"]["reason"] == "listing" and "retry-after" in reply.headers


def test_what_makes_the_load_smaller_is_answered_as_ever(pressed: HubProcess) -> None:
    assert pressed.get("/v1/a2a/call/a2a_call_unknown/status").status == 404
    assert pressed.post("/v1/a2a/call/a2a_call_unknown/cancel", {}).status == 404
    assert pressed.get("/healthz").status == 200
    ready = pressed.get("/readyz")
    assert (ready.status, ready.json["status"]) == (200, "degraded")
