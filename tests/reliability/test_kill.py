"""R1: nothing that was acknowledged is lost when the hub is killed, and a key makes one call."""

import random
import sys
from pathlib import Path

import pytest

from tests.support.kill import Report, kill_run, pointed_lives, random_lives
from tests.support.planted import KILL_POINTS

KILLS = 8
FULL_KILLS = 50  # ten times; more at a stretch, and calls pile up faster than a dying hub carries them out
FULL_SETTLE_S = 60.0
FULL_PASSINGS = 20
PLANTED_KILLS = 6
# Planted bugs, and words of the complaint that each must lead to.
FOUND = {
    "ack_before_commit": "is lost",
    "keyed_sent_before_opening": "under several ids",
    "idempotency_ignored": "under several ids",
    "accepted_before_commit": "is lost",
    "published_before_commit": "the reader of",
    "outbox_in_second_transaction": "was never called back",
    "no_lease": "stay open",
    "claimed_twice": "several times in one life",
    "no_recovery": "stay open",
}


def _fresh_seed() -> int:
    return random.randrange(1 << 32)


def _shown(report: Report, capsys: pytest.CaptureFixture[str]) -> Report:
    with capsys.disabled():
        sys.stdout.write(f"\n{report}")
    return report


def _kept_its_word(report: Report) -> None:
    assert not report.complaints, report
    assert report.kills_with_calls >= 0.5, f"too few calls in flight: {report}"
    assert report.callbacks and report.cancelled and report.resumed, f"too little was done: {report}"
    assert report.stored["interrupted"] and report.stored["long"] and report.stored["quick"], report


@pytest.mark.req("P-17", "P-21", "P-26", "O-50")
def test_nothing_acknowledged_is_lost_when_the_hub_is_killed_under_200_calls_a_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = _fresh_seed()
    report = _shown(kill_run(tmp_path, random_lives(KILLS, seed), seed), capsys)
    _kept_its_word(report)
    assert report.kills == KILLS
    assert report.acknowledged >= KILLS * 20 and report.repeated >= KILLS, f"too little was done: {report}"


def test_nothing_acknowledged_is_lost_when_the_hub_dies_at_any_of_its_weak_points(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = _fresh_seed()
    report = _shown(kill_run(tmp_path, pointed_lives(list(KILL_POINTS), seed), seed), capsys)
    _kept_its_word(report)


@pytest.mark.full
@pytest.mark.parametrize("part", range(10))
def test_nothing_acknowledged_is_lost_in_500_kills(
    part: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = _fresh_seed() + part
    lives = random_lives(FULL_KILLS, seed)
    _kept_its_word(_shown(kill_run(tmp_path, lives, seed, settle_s=FULL_SETTLE_S), capsys))


@pytest.mark.full
@pytest.mark.parametrize("point", KILL_POINTS)
def test_nothing_acknowledged_is_lost_when_the_hub_dies_at_one_point_20_times(
    point: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = _fresh_seed()
    _kept_its_word(_shown(kill_run(tmp_path, pointed_lives([point] * FULL_PASSINGS, seed), seed), capsys))


@pytest.mark.planted
@pytest.mark.parametrize("bug", FOUND)
def test_the_harness_finds_a_planted_bug(bug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _finds(bug, tmp_path, capsys)


def _finds(bug: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seed = _fresh_seed()
    report = _shown(kill_run(folder, random_lives(PLANTED_KILLS, seed, bug), seed, settle_s=2.0), capsys)
    assert any(FOUND[bug] in each for each in report.complaints), f"{bug} was not found: {report}"
