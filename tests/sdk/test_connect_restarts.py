"""Agents that connect out, and their hubs, killed in the midst of calls and started again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.world import eventually
from tests.support.connected_agent import AGENT, AgentProcess
from tests.support.hub import HubProcess
from tests.support.marked_calls import PATIENCE_S, SHORT_LEASE, WORDS, answer, answered, asking, held


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


def begun(agent: AgentProcess) -> list[tuple[int, str]]:
    return [(mark.pid, mark.call_id) for mark in agent.marks() if mark.what == "begin"]


@pytest.mark.req("X-21")
def test_a_call_whose_agent_is_killed_is_begun_again_by_its_next_process_under_the_same_id(
    hub: HubProcess, agent: AgentProcess, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    call_id = held(hub, AGENT, release)
    first = agent.pid
    agent.kill()
    release.touch()
    agent.start()
    assert answered(hub, call_id) == {"text": WORDS}, "what the first one had said is not said twice"
    assert begun(agent) == [(first, call_id), (agent.pid, call_id)]


def test_a_call_whose_hub_is_killed_goes_on_where_it_is(hub: HubProcess, agent: AgentProcess, tmp_path: Path) -> None:
    release = tmp_path / "release"
    call_id = held(hub, AGENT, release)
    hub.kill()
    release.touch()
    eventually(lambda: len(agent.marks()) == 2, "it ends while there is no hub to tell it to", PATIENCE_S)
    hub.start(SHORT_LEASE)
    assert answered(hub, call_id) == {"text": WORDS}
    assert begun(agent) == [(agent.pid, call_id)]


def test_what_was_answered_before_a_kill_is_not_asked_again(hub: HubProcess, agent: AgentProcess) -> None:
    call_id = asking(hub, AGENT)
    assert answer(hub, AGENT, call_id, "this") == "What else?"
    agent.kill()
    agent.start()
    assert answer(hub, AGENT, call_id, "that") is None
    assert answered(hub, call_id) == {"text": "this and that"}
    assert len(begun(agent)) == 2
