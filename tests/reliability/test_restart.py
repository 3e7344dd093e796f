"""R3: a hub that was killed with 10,000 calls open is ready again at once."""

import shutil
import sys
import time
from pathlib import Path

import pytest

from dragoman.server.app import DATABASE
from tests.support.hub import HubProcess
from tests.support.kill_agents import QUICK, KillAgents, kill_agents
from tests.support.kill_checks import open_calls
from tests.support.preload import preload

OPEN_CALLS = 10_000
TAKEN_UP_S = 10.0
READY_S = 1.0  # the 99th percentile; of up to 100 restarts that is the worst


@pytest.mark.serial
def test_a_hub_with_10000_open_calls_is_ready_within_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = _restarts(5, tmp_path, capsys)
    assert max(took) < READY_S, took


@pytest.mark.full
@pytest.mark.serial
def test_a_hub_with_10000_open_calls_is_ready_within_a_second_100_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = _restarts(100, tmp_path, capsys)
    assert max(took) < READY_S, took


@pytest.mark.planted
@pytest.mark.serial
def test_a_hub_that_reads_all_events_at_its_start_is_found_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    took = _restarts(2, tmp_path, capsys, "events_read_at_start")
    assert max(took) >= READY_S, took


def _restarts(count: int, folder: Path, capsys: pytest.CaptureFixture[str], planted: str = "") -> list[float]:
    took: list[float] = []
    with kill_agents(0) as agents:
        left = _left_open(folder, agents)
        for number in range(count):
            # A copy each time: what one life ends is not open in the next.
            hub = HubProcess(folder / f"life-{number}", planted=planted)
            shutil.copytree(left, hub.data)
            began = time.monotonic()
            hub.start()
            took.append(time.monotonic() - began)
            try:
                if number == count - 1:
                    _wait_until_taken_up(hub)
            finally:
                hub.kill()
            assert open_calls(hub.data / DATABASE) > 0, "nothing was open any more: the restart proves nothing"
            shutil.rmtree(hub.data)
    with capsys.disabled():
        sys.stdout.write(f"\n{count} restarts with {OPEN_CALLS} open calls: ready after at most {max(took):.2f} s")
    return took


def _wait_until_taken_up(hub: HubProcess) -> None:
    until = time.monotonic() + TAKEN_UP_S
    while open_calls(hub.data / DATABASE) == OPEN_CALLS:
        assert time.monotonic() < until, "none of the open calls was taken up"
        time.sleep(0.01)  # the only way to wait for what another process writes


def _left_open(folder: Path, agents: KillAgents) -> Path:
    hub = HubProcess(folder / "left").start()
    try:
        for card in agents.cards():
            hub.register(card)
    finally:
        assert hub.stop() == 0
    preload(hub.data, QUICK, OPEN_CALLS)
    return hub.data
