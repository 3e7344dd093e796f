"""When the hub removes what is old: behind everything else, and never because a clock is wrong."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.inspection import FileState, Inspection
from dragoman.hub.retention import EVERY_S, FIRST_S, LEAST_REST_S, Removed, Retention
from tests.contracts.samples import EVERYONE, completed, new_task, opening, sent, step
from tests.support.run import run

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from dragoman.model.task import Task
    from dragoman.ports.clock import Timer

DAY: Final = 86_400.0


class WrongClock:
    """A clock whose wall time can be moved alone; sleeping moves both, and is noted."""

    def __init__(self) -> None:
        self.wall = datetime(2026, 7, 1, 12, 0, tzinfo=UTC)
        self.passed = 0.0
        self.slept: list[float] = []
        self._ids = 0
        self._slept = asyncio.Event()

    def now(self) -> datetime:
        return self.wall

    def monotonic(self) -> float:
        self.passed += 0.0001  # Everything takes a moment.
        return self.passed

    def advance(self, seconds: float) -> None:
        self.wall += timedelta(seconds=seconds)
        self.passed += seconds

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        self._slept.set()
        await asyncio.sleep(0)

    async def until(self, reached: Callable[[], bool]) -> None:
        """Return when it was slept long or often enough."""
        async with asyncio.timeout(5):
            while not reached():
                self._slept.clear()
                await self._slept.wait()

    def call_at(self, when: float, function: Callable[[], object]) -> "Timer":
        return asyncio.get_running_loop().call_later(max(when - self.passed, 0), function)

    def new_id(self, prefix: str) -> str:
        self._ids += 1
        return f"{prefix}{self._ids:036}"

    def jitter(self, seconds: float, share: float) -> float:
        return seconds


@pytest.fixture
def clock() -> WrongClock:
    return WrongClock()


@asynccontextmanager
async def store_on(folder: Path, clock: WrongClock) -> "AsyncGenerator[SqliteStore]":
    store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
    await store.start()
    try:
        yield store
    finally:
        await store.close()


def keeping(store: SqliteStore, clock: WrongClock, days: int | None = 30) -> Retention:
    kept = None if days is None else timedelta(days=days)
    return Retention(store=store, clock=clock, calls_for=kept, audit_for=timedelta(days=400))


async def made(store: SqliteStore, clock: WrongClock) -> "Task":
    task = new_task(clock)
    await store.open(opening(task, durable=True))
    await store.append(step(task, sent(clock), completed(clock)))
    return task


def test_what_is_old_goes_in_small_steps_with_rests_of_19_times_their_length(tmp_path: Path, clock: WrongClock) -> None:
    async def scenario() -> None:
        async with store_on(tmp_path, clock) as store:
            retention = keeping(store, clock)
            for _ in range(120):
                await made(store, clock)
            clock.advance(40 * DAY)
            young = await made(store, clock)
            clock.slept.clear()
            removed = await retention.once()
            assert removed.calls == 120
            assert removed.took_s > 0
            assert min(clock.slept) >= LEAST_REST_S
            assert removed.took_s <= 0.051 * (sum(clock.slept) + removed.took_s)
            assert await store.load(EVERYONE, young.id) is not None
            assert msgspec.structs.replace(await retention.once(), took_s=0.0) == Removed()

    run(scenario())


@pytest.mark.parametrize("days", [-40, 40, 4000])
def test_a_wall_clock_that_jumps_removes_nothing(tmp_path: Path, clock: WrongClock, days: int) -> None:
    async def scenario() -> None:
        async with store_on(tmp_path, clock) as store:
            retention = keeping(store, clock)
            task = await made(store, clock)
            clock.wall += timedelta(days=days)
            late = await made(store, clock)
            assert (await retention.once()).calls == 0
            for each in (task, late):
                assert await store.load(EVERYONE, each.id) is not None

    run(scenario())


def test_for_ever_is_for_ever(tmp_path: Path, clock: WrongClock) -> None:
    async def scenario() -> None:
        async with store_on(tmp_path, clock) as store:
            retention = keeping(store, clock, None)
            task = await made(store, clock)
            clock.advance(3000 * DAY)
            assert (await retention.once()).calls == 0
            assert await store.load(EVERYONE, task.id) is not None

    run(scenario())


def test_a_hub_that_slept_for_long_waits_a_day_before_it_believes_the_clock(tmp_path: Path, clock: WrongClock) -> None:
    async def scenario() -> None:
        async with store_on(tmp_path, clock) as store:
            await made(store, clock)
        clock.advance(40 * DAY)
        async with store_on(tmp_path, clock) as store:
            clock.slept.clear()
            running = asyncio.create_task(keeping(store, clock).run())
            await clock.until(lambda: EVERY_S in clock.slept)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert clock.slept[:2] == [FIRST_S, DAY]

    run(scenario())


def test_a_file_that_was_left_open_is_looked_at_and_then_every_night(tmp_path: Path, clock: WrongClock) -> None:
    async def scenario() -> None:
        (tmp_path / "hub.db-wal").touch()  # What a killed process leaves.
        async with store_on(tmp_path, clock) as store:
            inspection = Inspection(store=store, clock=clock)
            assert inspection.state is FileState.UNKNOWN
            running = asyncio.create_task(inspection.run())
            await clock.until(lambda: len(clock.slept) >= 3)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            assert inspection.state is FileState.WHOLE
            assert inspection.looked_at is not None
            assert clock.slept[0] == 5.0
            assert all(60 <= each <= DAY for each in clock.slept[1:3])

    run(scenario())


def test_a_damaged_file_is_reported(tmp_path: Path, clock: WrongClock) -> None:
    async def scenario() -> None:
        async with store_on(tmp_path, clock) as store:
            for _ in range(50):
                await made(store, clock)
        file = tmp_path / "hub.db"
        whole = bytearray(file.read_bytes())
        for page in range(4096 * 30, len(whole) - 4096, 4096 * 3):
            whole[page : page + 2048] = b"\xff" * 2048
        file.write_bytes(bytes(whole))
        async with store_on(tmp_path, clock) as store:
            inspection = Inspection(store=store, clock=clock)
            assert await inspection.look(quick=False)
            assert inspection.state is FileState.DAMAGED

    run(scenario())
