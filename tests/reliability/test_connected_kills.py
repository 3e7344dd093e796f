"""R1 for agents that connect out: killed, they lose nothing, and nothing is done twice but under the same id."""

import random
import sys
from pathlib import Path

import pytest

from tests.support.connected_kill import Report, kill_agents, kill_hubs

KILLS = 6
HUB_KILLS = 3
FULL_KILLS = 50
FULL_HUB_KILLS = 20
PLANTED_KILLS = 4
# Planted bugs, and words of the complaint that each must lead to.
AGENT_BUGS = {"lost_calls_not_offered": "acknowledged as", "given_to_two_sessions": "lived"}
HUB_BUGS = {"running_calls_dropped": "was carried out"}


def _fresh_seed() -> int:
    return random.randrange(1 << 32)


def _shown(report: Report, capsys: pytest.CaptureFixture[str]) -> Report:
    with capsys.disabled():
        sys.stdout.write(f"\n{report}")
    return report


def _kept_its_word(report: Report, kills: int) -> None:
    assert not report.complaints, report
    assert report.kills == kills
    assert sum(1 for count in report.in_flight if count) >= kills / 2, f"too little was at work: {report}"
    assert report.acknowledged >= kills * 10, f"too little was done: {report}"


@pytest.mark.req("X-21")
def test_nothing_is_lost_when_a_connected_agent_is_killed_under_100_calls_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _kept_its_word(_shown(kill_agents(tmp_path, KILLS, _fresh_seed()), capsys), KILLS)


def test_nothing_is_lost_or_done_twice_when_the_hub_of_a_connected_agent_is_killed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _shown(kill_hubs(tmp_path, HUB_KILLS, _fresh_seed()), capsys)
    _kept_its_word(report, HUB_KILLS)
    assert not report.repeated, "the agent lived, and knew what it had"


@pytest.mark.full
def test_nothing_is_lost_when_a_connected_agent_is_killed_50_times(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _kept_its_word(_shown(kill_agents(tmp_path, FULL_KILLS, _fresh_seed()), capsys), FULL_KILLS)


@pytest.mark.full
def test_nothing_is_lost_or_done_twice_in_20_kills_of_the_hub(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _kept_its_word(_shown(kill_hubs(tmp_path, FULL_HUB_KILLS, _fresh_seed()), capsys), FULL_HUB_KILLS)


@pytest.mark.planted
@pytest.mark.parametrize("bug", AGENT_BUGS)
def test_the_harness_finds_a_bug_planted_for_killed_agents(
    bug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _shown(kill_agents(tmp_path, PLANTED_KILLS, _fresh_seed(), planted=bug, settle_s=5.0), capsys)
    assert any(AGENT_BUGS[bug] in each for each in report.complaints), f"{bug} was not found: {report}"


@pytest.mark.planted
@pytest.mark.parametrize("bug", HUB_BUGS)
def test_the_harness_finds_a_bug_planted_for_killed_hubs(
    bug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _shown(kill_hubs(tmp_path, PLANTED_KILLS, _fresh_seed(), planted=bug, settle_s=5.0), capsys)
    assert any(HUB_BUGS[bug] in each for each in report.complaints), f"{bug} was not found: {report}"
