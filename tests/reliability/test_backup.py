"""A backup that is taken while calls run, put back, is complete: every call acknowledged before it began is in it."""

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec
import pytest

from tests.support.hub import ROOT, HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent

CALLERS: Final = 4
BEFORE: Final = 300  # calls that are acknowledged before the backup begins
FULL_BEFORE: Final = 20_000
LIMIT_S: Final = 240.0  # 20,000 calls take two minutes on a machine that runs other tests


class Report(msgspec.Struct, kw_only=True):
    """What was found; `complaints` is empty where the backup is worth its name."""

    before: int = 0
    during: int = 0
    kept: int = 0
    bytes: int = 0
    took_s: float = 0.0
    slowest_ms: float = 0.0
    complaints: list[str] = []

    def __str__(self) -> str:
        return (
            f"backup of {self.bytes / 1e6:.1f} MB in {self.took_s:.2f} s beside {self.during} calls (slowest"
            f" {self.slowest_ms:.0f} ms): {self.before} were acknowledged before, {self.kept} calls in the copy;"
            f" {'; '.join(self.complaints) or 'integrity and audit whole'}"
        )


class Callers:
    """Call an agent all the time, and note what was acknowledged, and how long it took."""

    def __init__(self, hub: HubProcess, agent: PlatformAgent) -> None:
        self._hub = hub
        self._name = hub.register(agent.card())["id"]
        self._stopped = False
        self._news = threading.Condition()
        self.acknowledged: list[str] = []
        self.took_s: list[float] = []
        self._threads = [threading.Thread(target=self._call) for _ in range(CALLERS)]
        for thread in self._threads:
            thread.start()

    def _call(self) -> None:
        while not self._stopped:
            began = time.monotonic()
            reply = self._hub.call("echo", {"said": "x" * 500}, self._name)
            with self._news:
                if reply.status == 200:
                    self.acknowledged.append(reply.json["call_id"])
                    self.took_s.append(time.monotonic() - began)
                self._news.notify_all()

    def until(self, count: int) -> list[str]:
        """The calls that were acknowledged so far, once there are so many."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.acknowledged) >= count, LIMIT_S), len(self.acknowledged)
            return list(self.acknowledged)

    def stop(self) -> None:
        """Call no more."""
        self._stopped = True
        for thread in self._threads:
            thread.join()


def dragoman(*words: str, planted: str = "") -> subprocess.CompletedProcess[str]:
    """The command, with a fault in it where one is named."""
    program = ["-m", "tests.support.planted", planted, "--"] if planted else ["-m", "dragoman"]
    return subprocess.run(
        [sys.executable, *program, *words],
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def backed_up(folder: Path, before: int, planted: str = "") -> Report:
    """Back up a hub under load, put the copy back elsewhere, and compare."""
    report = Report(complaints=[])
    copy = folder / "copy.db"
    if planted:
        # So that the file alone is a database, too: what is missing in it is calls.
        HubProcess(folder / "data", auth="none").start().stop()
    with running_hub(folder / "data", auth="none") as hub, platform_agent() as agent:
        callers = Callers(hub, agent)
        try:
            known = callers.until(before)
            began = time.monotonic()
            ran = dragoman("backup", str(copy), "--data", str(hub.data), planted=planted)
            report.took_s = time.monotonic() - began
            after = callers.until(len(known))
            callers.until(len(after) + CALLERS)
        finally:
            callers.stop()
    assert ran.returncode == 0, ran.stderr
    report.before, report.during, report.bytes = len(known), len(after) - len(known), copy.stat().st_size
    report.slowest_ms = max(callers.took_s) * 1000
    _put_back(folder, copy, known, report)
    return report


def _put_back(folder: Path, copy: Path, known: Sequence[str], report: Report) -> None:
    """The copy, restored where there is nothing but its root key, and looked at."""
    data = folder / "restored"
    data.mkdir(mode=0o700)
    shutil.copy2(folder / "data" / "root.key", data / "root.key")
    ran = dragoman("restore", str(copy), "--yes", "--data", str(data))
    if ran.returncode != 0:
        report.complaints.append(f"it cannot be restored: {ran.stderr.strip()}")
        return
    with closing(sqlite3.connect(data / "hub.db")) as database:
        found = {row[0] for row in database.execute("SELECT id FROM task")}
        integrity = [row[0] for row in database.execute("PRAGMA integrity_check")]
    report.kept = len(found)
    missing = [call for call in known if call not in found]
    if missing:
        report.complaints.append(f"{len(missing)} acknowledged calls are missing")
    if integrity != ["ok"]:
        report.complaints.append(f"the copy is damaged: {integrity[0]}")
    verified = dragoman("audit", "verify", "--json", "--data", str(data))
    if verified.returncode != 0 or not json.loads(verified.stdout)["ok"]:
        report.complaints.append(f"the audit of the copy is broken: {verified.stdout or verified.stderr}")


def _shown(report: Report, capsys: pytest.CaptureFixture[str]) -> Report:
    with capsys.disabled():
        sys.stdout.write(f"\n{report}")
    return report


def test_a_backup_under_load_holds_every_call_acknowledged_before_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = _shown(backed_up(tmp_path, BEFORE), capsys)
    assert not report.complaints
    assert report.kept >= report.before >= BEFORE
    assert report.during, "nothing ran beside it"


@pytest.mark.full
def test_a_large_backup_under_load_is_complete_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = _shown(backed_up(tmp_path, FULL_BEFORE), capsys)
    assert not report.complaints


@pytest.mark.planted
def test_a_backup_without_the_log_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = _shown(backed_up(tmp_path, BEFORE, planted="backup_without_log"), capsys)
    assert any("acknowledged calls are missing" in each for each in report.complaints), report
