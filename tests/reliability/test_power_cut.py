"""When the power fails, everything that was acknowledged is there afterwards, and nothing is corrupt."""

from pathlib import Path

import pytest

from tests.support.powercut import Report, cut_power


def judge(report: Report, cuts: int) -> None:
    shown = f"seed {report.seed}: {report.cuts} cuts, {report.in_checkpoint} of them in checkpoints, "
    shown += f"{report.acknowledged} calls acknowledged, {report.streamed} events streamed, "
    shown += f"{report.delivered} callbacks delivered, {len(report.found)} broken promises"
    assert not report.found, "\n".join([shown, *report.found[:10]])
    # A run that did too little proves nothing.
    assert report.cuts == cuts, shown
    assert report.in_checkpoint >= cuts // 20, shown
    assert report.acknowledged >= cuts // 8 and report.streamed >= cuts // 4, shown
    assert report.delivered >= cuts // 40, shown


def test_no_acknowledged_call_is_lost_when_the_power_fails(tmp_path: Path) -> None:
    judge(cut_power(tmp_path, cuts=1_000, seed=20260701), cuts=1_000)


@pytest.mark.full
def test_no_acknowledged_call_is_lost_in_a_hundred_thousand_power_cuts(tmp_path: Path) -> None:
    for part in range(100):
        judge(cut_power(tmp_path / str(part), cuts=1_000, seed=part), cuts=1_000)


@pytest.mark.planted
def test_commits_that_are_not_synced_are_found(tmp_path: Path) -> None:
    report = cut_power(tmp_path, cuts=200, seed=1, synchronous="NORMAL")
    with pytest.raises(AssertionError, match="broken promises"):
        judge(report, cuts=200)
    assert sum("lost" in fault for fault in report.found) > 20, report.found
