"""Agents that connect out, and their hubs, killed in the midst of calls and started again."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.connected_agent import AGENT, AgentProcess
from tests.support.hub import HubProcess

PATIENCE_S = 20.0
STEP_S = 0.01
SHORT_LEASE = {"DRAGOMAN_CONNECT_LEASE_S": "1"}
WORDS = "0 1 2 3 "


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub") / "data").start(SHORT_LEASE)
    yield hub
    hub.kill()


@pytest.fixture
def agent(hub: HubProcess, tmp_path: Path) -> Iterator[AgentProcess]:
    agent = AgentProcess(hub, tmp_path / "marks").start()
    yield agent
    assert agent.stop() == 0


def until(holds: Callable[[], Any], within_s: float = PATIENCE_S) -> None:
    """Wait for what other processes do."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(STEP_S)


def accepted(hub: HubProcess, skill: str, **input: Any) -> str:
    body = {"target_agent_id": AGENT, "skill": skill, "input": input}
    return hub.post("/v1/a2a/call/async", body).json["call_id"]


def told(hub: HubProcess, call_id: str) -> dict[str, Any]:
    return hub.get(f"/v1/a2a/call/{call_id}/status").json


def answered(hub: HubProcess, call_id: str) -> dict[str, Any]:
    until(lambda: told(hub, call_id)["status"] in ("completed", "failed"))
    said = told(hub, call_id)
    assert said["status"] == "completed", said
    return said["result"]


def begun(agent: AgentProcess) -> list[tuple[int, str]]:
    return [(mark.pid, mark.call_id) for mark in agent.marks() if mark.what == "begin"]


@pytest.mark.req("X-21")
def test_a_call_whose_agent_is_killed_is_begun_again_by_its_next_process_under_the_same_id(
    hub: HubProcess, agent: AgentProcess, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    call_id = accepted(hub, "count", to=4, hold_at=2, release=str(release))
    until(lambda: told(hub, call_id).get("message") == "holds")
    first = agent.pid
    agent.kill()
    release.touch()
    agent.start()
    assert answered(hub, call_id) == {"text": WORDS}, "what the first one had said is not said twice"
    assert begun(agent) == [(first, call_id), (agent.pid, call_id)]


def test_a_call_whose_hub_is_killed_goes_on_where_it_is(hub: HubProcess, agent: AgentProcess, tmp_path: Path) -> None:
    release = tmp_path / "release"
    call_id = accepted(hub, "count", to=4, hold_at=2, release=str(release))
    until(lambda: told(hub, call_id).get("message") == "holds")
    hub.kill()
    release.touch()
    until(lambda: len(agent.marks()) == 2)  # It ends while there is no hub to tell it to.
    hub.start(SHORT_LEASE)
    assert answered(hub, call_id) == {"text": WORDS}
    assert begun(agent) == [(agent.pid, call_id)]


def test_what_was_answered_before_a_kill_is_not_asked_again(hub: HubProcess, agent: AgentProcess) -> None:
    call_id = accepted(hub, "question")
    until(lambda: told(hub, call_id).get("awaiting") == "input")
    assert _answer(hub, call_id, "this") == "What else?"
    agent.kill()
    agent.start()
    assert _answer(hub, call_id, "that") is None
    assert answered(hub, call_id) == {"text": "this and that"}
    assert len(begun(agent)) == 2


def _answer(hub: HubProcess, call_id: str, text: str) -> str | None:
    """Answer what the agent asked; what it asks next."""
    body = {
        "target_agent_id": AGENT,
        "skill": "question",
        "input": {"text": text},
        "context": {"continue_call_id": call_id},
    }
    said = hub.post("/v1/a2a/call", body).json
    return said["error"]["message"] if said["status"] != "completed" else None
