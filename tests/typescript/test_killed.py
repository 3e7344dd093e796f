"""Agents in TypeScript, and their hubs, killed in the midst of calls and started again."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.world import eventually
from tests.support.hub import HubProcess
from tests.support.marked_calls import SHORT_LEASE, WORDS, answer, answered, asking, held
from tests.typescript.running import AGENT, NodeAgent


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub") / "data").start(SHORT_LEASE)
    yield hub
    hub.kill()


@pytest.fixture
def agent(hub: HubProcess, tmp_path: Path) -> Iterator[NodeAgent]:
    agent = NodeAgent(hub, tmp_path / "marks").start()
    yield agent
    assert agent.stop() == 0


@pytest.mark.req("X-21")
def test_a_call_whose_agent_is_killed_is_begun_again_by_its_next_process_under_the_same_id(
    hub: HubProcess, agent: NodeAgent, tmp_path: Path
) -> None:
    call_id = held(hub, AGENT, tmp_path / "release")
    first = agent.pid
    agent.kill()
    (tmp_path / "release").touch()
    agent.start()
    assert answered(hub, call_id) == {"text": WORDS}, "what the first one had said is not said twice"
    assert [(mark.pid, mark.call_id) for mark in agent.marks()] == [(first, call_id), (agent.pid, call_id)]
    assert agent.marks()[1].attempt > 1


def test_a_call_whose_hub_is_killed_goes_on_where_it_is(hub: HubProcess, agent: NodeAgent, tmp_path: Path) -> None:
    call_id = held(hub, AGENT, tmp_path / "release")
    hub.kill()
    (tmp_path / "release").touch()
    eventually(lambda: agent.marks("end"), "it ends while there is no hub to tell it to")
    hub.start(SHORT_LEASE)
    assert answered(hub, call_id) == {"text": WORDS}
    assert [mark.call_id for mark in agent.marks()] == [call_id], "it ran once"


def test_a_process_that_is_told_to_stop_finishes_what_it_does_and_a_second_signal_ends_it_at_once(
    hub: HubProcess, agent: NodeAgent, tmp_path: Path
) -> None:
    call_id = held(hub, AGENT, tmp_path / "release")
    agent.signal()
    (tmp_path / "release").touch()
    assert agent.ended() == 0
    assert answered(hub, call_id) == {"text": WORDS}
    agent.start()
    left = held(hub, AGENT, tmp_path / "never")
    agent.signal()
    agent.signal(signal.SIGINT)
    assert agent.ended() in (128 + signal.SIGINT, 128 + signal.SIGTERM)  # Either may come first.
    assert [mark.call_id for mark in agent.marks("end")] == [call_id]
    hub.post(f"/v1/a2a/call/{left}/cancel", {})


@pytest.mark.full
def test_what_was_answered_before_a_kill_is_not_asked_again(hub: HubProcess, agent: NodeAgent) -> None:
    call_id = asking(hub, AGENT)
    assert answer(hub, AGENT, call_id, "this") == "What else?"
    agent.kill()
    agent.start()
    assert answer(hub, AGENT, call_id, "that") is None
    assert answered(hub, call_id) == {"text": "this and that"}
    assert len(agent.marks()) == 2


@pytest.mark.full
def test_two_processes_share_the_calls_of_one_agent_and_one_of_them_may_go(
    hub: HubProcess, agent: NodeAgent, tmp_path: Path
) -> None:
    other = NodeAgent(hub, tmp_path / "marks", concurrency=10).start()
    calls = [held(hub, AGENT, tmp_path / "release") for _ in range(4)]
    assert {mark.pid for mark in agent.marks()} == {agent.pid, other.pid}
    agent.kill()
    (tmp_path / "release").touch()
    assert [answered(hub, call_id) for call_id in calls] == [{"text": WORDS}] * 4
    assert other.stop() == 0
