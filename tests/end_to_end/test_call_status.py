"""How a call stands that nobody waits for: polled, cancelled, and what waits for a place."""

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import eventually, fresh, join, says
from tests.support.agents import envelope as envelope_stub
from tests.support.hub import HubProcess
from tests.support.platform_agent import platform_agent
from tests.support.streaming_agent import StreamingAgent, streaming_agent


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Generator[HubProcess]:
    """A hub that carries two calls at a time that nobody waits for."""
    hub = HubProcess(tmp_path_factory.mktemp("status") / "data")
    hub.start({"DRAGOMAN_CALLS_QUEUED_AT_ONCE": "2"})
    yield hub
    hub.stop()


@pytest.fixture
def teller(hub: HubProcess) -> Generator[tuple[str, StreamingAgent]]:
    with streaming_agent() as agent:
        name = fresh()
        assert hub.post("/v1/a2a/registry", {"agent_card": agent.card(name)}).status == 201
        yield name, agent


def handed(hub: HubProcess, agent: str, **more: Any) -> str:
    body: dict[str, Any] = {"target_agent_id": agent, "skill": "tell", "input": {}, **more}
    reply = hub.post("/v1/a2a/call/async", body)
    assert (reply.status, reply.json["status"]) == (202, "queued"), reply.body
    return reply.json["call_id"]


def standing(hub: HubProcess, call_id: str) -> Any:
    reply = hub.get(f"/v1/a2a/call/{call_id}/status")
    assert reply.status == 200
    assert reply.json["call_id"] == reply.json["id"] == call_id
    return reply.json


def once(hub: HubProcess, call_id: str, status: str) -> Any:
    def look() -> Any:
        shown = standing(hub, call_id)
        return shown if shown["status"] == status else None

    return eventually(look, f"{call_id} is {status}")


@pytest.mark.req("P-24")
def test_a_poll_tells_how_a_call_stands_and_how_far_it_is(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    name, agent = teller
    call_id = handed(hub, name)
    call = agent.next_call()
    running = once(hub, call_id, "running")
    assert not {"result", "error", "progress"} & set(running)
    call.say("progress", {"progress": 0.25, "message": "Reading"})
    told = eventually(lambda: shown if (shown := standing(hub, call_id)).get("progress") else None, "progress is shown")
    assert (told["status"], told["progress"], told["message"]) == ("running", 0.25, "Reading")
    assert set(told["timing"]) == {"queued_at", "started_at"}
    call.complete({"sea": "calm"}, usage={"tokens": 3})
    done = once(hub, call_id, "completed")
    assert (done["result"], done["usage"]) == ({"sea": "calm"}, {"tokens": 3})
    assert "error" not in done
    assert done["timing"]["duration_ms"] >= 0


@pytest.mark.req("P-24")
def test_a_poll_tells_why_a_call_failed(hub: HubProcess) -> None:
    with platform_agent(says({"status": "failed", "error": {"code": "STORM", "message": "no"}})) as agent:
        call_id = handed(hub, join(hub, agent, skills=[{"name": "tell", "description": "Tells"}])["id"])
        failed = once(hub, call_id, "failed")
    assert (failed["error"]["code"], failed["error"]["details"]["agent_code"]) == ("AGENT_ERROR", "STORM")
    assert "result" not in failed
    assert "failed_at" in failed["timing"]


@pytest.mark.req("P-24")
def test_only_its_caller_and_an_administrator_see_a_call(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    name, agent = teller
    keys = [hub.post("/v1/keys", {"name": one, "scopes": ["a2a:call"]}).json["key"] for one in ("mine", "other")]
    body: dict[str, Any] = {"target_agent_id": name, "skill": "tell", "input": {}}
    call_id = hub.post("/v1/a2a/call/async", body, token=keys[0]).json["call_id"]
    agent.next_call().complete({"a": 1})
    assert hub.get(f"/v1/a2a/call/{call_id}/status", token=keys[0]).status == 200
    assert hub.get(f"/v1/a2a/call/{call_id}/status").status == 200
    stranger = hub.get(f"/v1/a2a/call/{call_id}/status", token=keys[1])
    unknown = hub.get("/v1/a2a/call/a2a_call_none/status", token=keys[1])
    assert stranger.status == unknown.status == 404
    assert stranger.json["error"]["code"] == unknown.json["error"]["code"]


@pytest.mark.req("P-27")
def test_a_queued_and_a_running_call_are_cancelled_and_a_finished_one_is_not(
    hub: HubProcess, teller: tuple[str, StreamingAgent]
) -> None:
    name, agent = teller
    running = [handed(hub, name) for _ in range(2)]
    calls = {call.body["call_id"]: call for call in (agent.next_call() for _ in running)}
    queued = handed(hub, name)
    assert standing(hub, queued)["status"] == "queued"
    cancelled = hub.post(f"/v1/a2a/call/{queued}/cancel", {})
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert not agent.cancelled.is_set()  # It never heard of that one.
    cancelled = hub.post(f"/v1/a2a/call/{running[0]}/cancel", {})
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert agent.cancelled.wait(10)
    calls[running[1]].complete({"a": 1})
    once(hub, running[1], "completed")
    for ended in (*running, queued):
        again = hub.post(f"/v1/a2a/call/{ended}/cancel", {})
        assert (again.status, again.json["error"]["code"]) == (409, "VALIDATION_ERROR")
    assert agent.calls.empty()
    assert hub.post("/v1/a2a/call/a2a_call_none/cancel", {}).status == 404


def test_calls_that_only_wait_for_a_report_take_no_place(hub: HubProcess, teller: tuple[str, StreamingAgent]) -> None:
    name, agent = teller
    with envelope_stub.agent(fresh("silent")) as silent:
        silent.silent = True
        joined = hub.register(silent.card)
        for _ in range(6):  # three times as many as there are places
            body = {"target_agent_id": joined["id"], "skill": "echo", "input": {"text": "hello"}}
            assert hub.post("/v1/a2a/call/async", body).status == 202
        eventually(lambda: len(silent.assignments) == 6, "all of them were sent")
        call_id = handed(hub, name)
        agent.next_call().complete({"a": 1})
        once(hub, call_id, "completed")


def test_the_most_urgent_of_those_that_wait_goes_first(tmp_path: Path) -> None:
    hub = HubProcess(tmp_path / "data").start({"DRAGOMAN_CALLS_QUEUED_AT_ONCE": "1"})
    try:
        with streaming_agent() as agent:
            hub.post("/v1/a2a/registry", {"agent_card": agent.card("agt_one")})
            handed(hub, "agt_one")
            first = agent.next_call()
            waiting = {
                word: handed(hub, "agt_one", options={"priority": word}) for word in ("low", "normal", "urgent", "high")
            }
            seen: list[str] = []
            call = first
            for _ in waiting:
                call.complete({"a": 1})
                call = agent.next_call()
                seen.append(call.body["call_id"])
            call.complete({"a": 1})
            assert seen == [waiting[word] for word in ("urgent", "high", "normal", "low")]
    finally:
        hub.stop()
