"""R14: a full disk refuses what is new, takes what ends, loses nothing, and is taken up again without a restart."""

import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.model.errors import Overloaded
from dragoman.model.task import Task
from dragoman.ports.store import Registration
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import completed, new_agent, new_task, once, opening, step
from tests.support.faultdisk import FaultyFiles, QuotaDisk
from tests.support.run import run

MIB = 1024 * 1024
LOG_MIB = 1.0  # all limits of a real hub, 64 times smaller
DISK = 12 * MIB
WORDS = "x" * 4_000
OPEN = 20
PATIENCE = 5_000  # calls


class Filling:
    """A store on a disk that gets full, and what it has acknowledged."""

    def __init__(self, folder: Path, *, ballast_mib: float = LOG_MIB, swallows: bool = False) -> None:
        self.clock = ManualClock()
        self.disk = QuotaDisk(DISK)
        self.files = FaultyFiles(self.disk, swallows=swallows)
        self.path = folder / "hub.db"
        self.store = SqliteStore(
            self.path,
            clock=self.clock,
            bus=LocalBus(),
            wal_mib=LOG_MIB,
            ballast_mib=ballast_mib,
            disk=self.disk,
            connect=self.files.connect,
            inline=True,
        )
        self.acknowledged: dict[str, Task] = {}

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None]:
        """From start to end, whatever becomes of it; at the end nothing may be lost."""
        await self.store.start()
        try:
            yield
        finally:
            self.disk.quota_bytes = sys.maxsize  # so that it can be closed
            await self.store.close()
            self.files.put_away()
        assert not self.disk.has("ballast")
        self.look()

    async def accept(self) -> Task:
        """A call that nobody waits for: on disk, with its key, before it is acknowledged."""
        task = new_task(self.clock, said={"words": WORDS})
        await self.store.open(opening(task, durable=True, once=once(self.clock, task.id)))
        self.acknowledged[task.id] = task
        return task

    async def end(self, task: Task) -> None:
        """The result of a call."""
        growth = step(task, completed(self.clock, {"words": WORDS}))
        assert await self.store.append(growth) is None
        self.acknowledged[task.id] = growth.task

    async def fill(self) -> int:
        """Calls until one is refused; how many there were."""
        for count in range(PATIENCE):
            try:
                await self.end(await self.accept())
            except Overloaded as error:
                assert error.details["reason"] == "storage_full" and (error.retry_after_s or 0) > 0
                return count
        raise AssertionError("a full disk refused nothing")

    def look(self) -> None:
        """Nothing that was acknowledged is lost or corrupt, as the file is now."""
        with closing(sqlite3.connect(self.path)) as found:
            assert found.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "the file is corrupt"
            rows = dict(found.execute("SELECT id, state FROM task").fetchall())
            keys = {row[0] for row in found.execute("SELECT task FROM idem")}
        for task_id, task in self.acknowledged.items():
            assert task_id in rows and task_id in keys, f"{task_id} was acknowledged and is lost"
            assert not task.ended or rows[task_id] >= 4, f"the end of {task_id} was acknowledged and is lost"


def test_a_disk_that_fills_up_refuses_new_calls_before_it_is_full_and_takes_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    async def scenario() -> None:
        hub = Filling(tmp_path)
        async with hub.running():
            assert hub.disk.has("ballast")
            running = [await hub.accept() for _ in range(OPEN)]
            calls = await hub.fill()
            assert not hub.disk.refused and hub.disk.has("ballast"), "it was noticed too late"
            for task in running:
                await hub.end(task)
            with pytest.raises(Overloaded):
                await hub.store.register(Registration(agent=new_agent(hub.clock, "new")))
            _shown(capsys, f"{calls} calls filled the disk; {OPEN} results were taken then")
            await _taken_up_again(hub)

    run(scenario())


def test_a_disk_that_somebody_else_fills_costs_no_result_and_is_used_again_without_a_restart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(_suddenly_full(Filling(tmp_path), capsys))


@pytest.mark.planted
def test_a_hub_without_ballast_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Overloaded):
        run(_suddenly_full(Filling(tmp_path, ballast_mib=0), capsys))


@pytest.mark.planted
def test_a_full_disk_that_is_not_told_of_is_found_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError, match=r"is lost|never full|corrupt"):
        run(_suddenly_full(Filling(tmp_path, swallows=True), capsys))


async def _suddenly_full(hub: Filling, capsys: pytest.CaptureFixture[str]) -> None:
    async with hub.running():
        running = [await hub.accept() for _ in range(OPEN)]
        for _ in range(100):
            await hub.end(await hub.accept())
        hub.disk.quota_bytes = hub.disk.taken_bytes  # Not a byte is left, but for what was set aside.
        for task in running:
            await hub.end(task)
        hub.look()
        assert hub.disk.refused and not hub.disk.has("ballast"), "the disk was never full: that proves nothing"
        with pytest.raises(Overloaded, match="disk is full"):
            await hub.accept()
        _shown(capsys, f"full at once: {OPEN} results taken, {len(hub.acknowledged)} calls acknowledged, none lost")
        await _taken_up_again(hub)


async def _taken_up_again(hub: Filling) -> None:
    """There is room again, and the hub finds out by itself: with the next thing that it writes, or after a second."""
    assert hub.store.lane().full
    hub.disk.quota_bytes += DISK
    await hub.store.put_sealed("pulse", b"")
    assert not hub.store.lane().full and hub.disk.has("ballast")
    await hub.end(await hub.accept())


def _shown(capsys: pytest.CaptureFixture[str], text: str) -> None:
    with capsys.disabled():
        sys.stdout.write(f"\n{text}")
