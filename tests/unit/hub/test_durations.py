"""An estimate is the median of what the skill's last calls took, over a restart too."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.durations import ENOUGH, LAST, MOST_SKILLS, WRITTEN_S, Estimates
from dragoman.model.ended import ended_call
from dragoman.model.operations import Step
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.support.run import run
from tests.unit.model.test_lifecycle import AT, TASK

UNKNOWN_MS = 30_000


def took(ms: int, agent: str = "a", skill: str | None = "s", state: TaskState = TaskState.COMPLETED) -> Task:
    ended = AT + timedelta(seconds=1, milliseconds=ms)
    started = AT + timedelta(seconds=1)
    return msgspec.structs.replace(
        TASK, agent_id=agent, skill=skill, state=state, started_at=started, ended_at=ended, updated_at=ended
    )


NEXT = took(0, state=TaskState.SUBMITTED)


class Life:
    """Estimates from one start of a hub to its end, on a real store."""

    def __init__(self, folder: Path, most_skills: int) -> None:
        self.caught_up = 0  # how often the calls that have ended were asked for
        self.clock = ManualClock()
        self.store = SqliteStore(folder / "hub.db", clock=self.clock, bus=LocalBus())
        self.estimates = Estimates(
            store=self.store,
            clock=self.clock,
            spawn=self.spawn,
            unknown_s=UNKNOWN_MS / 1000,
            catch_up=self.catch_up,
            most_skills=most_skills,
        )
        self.spawned: list[asyncio.Task[None]] = []

    def catch_up(self) -> None:
        self.caught_up += 1

    def ended(self, task: Task) -> None:
        self.estimates.ended([ended_call(task)])

    async def estimate_ms(self, task: Task) -> int:
        told = self.estimates.estimate_ms(task)
        return told if isinstance(told, int) else await told

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.spawned.append(task)
        return task


@asynccontextmanager
async def life(folder: Path, *, killed: bool = False, most_skills: int = MOST_SKILLS) -> AsyncGenerator[Life]:
    lived = Life(folder, most_skills)
    await lived.store.start()
    try:
        yield lived
        if not killed:
            await lived.estimates.write()
    finally:
        await lived.store.close()


@pytest.mark.req("P-23")
def test_the_median_of_the_last_hundred_completed_calls_is_told(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path) as now:
            for task in (took(10), took(1_000), took(20), took(99_999, state=TaskState.FAILED), took(5, skill="other")):
                now.ended(task)
            assert await now.estimate_ms(NEXT) == 20
            assert await now.estimate_ms(took(0, skill="other")) == 5
            for _ in range(LAST):
                now.ended(took(700))
            assert await now.estimate_ms(NEXT) == 700

    run(scenario())


def test_where_many_calls_are_known_the_last_ones_are_not_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path) as now:
            for _ in range(ENOUGH - 1):
                now.ended(took(10))
            assert await now.estimate_ms(NEXT) == 10
            assert now.caught_up == 1
            now.ended(took(10))
            assert await now.estimate_ms(NEXT) == 10
            assert now.caught_up == 1
            for _ in range(LAST):
                now.ended(took(30))
            assert await now.estimate_ms(NEXT) == 30, "what is kept is forgotten with the next call that ends"

    run(scenario())


def test_what_was_never_called_counts_as_long_as_a_waiting_call_may_take(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path) as now:
            assert await now.estimate_ms(NEXT) == UNKNOWN_MS
            hurried = msgspec.structs.replace(NEXT, asked=msgspec.structs.replace(NEXT.asked, timeout_s=2.5))
            assert await now.estimate_ms(hurried) == 2_500

    run(scenario())


def test_a_workflow_takes_as_long_as_its_steps(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path) as now:
            for task in (took(10), took(100, agent="b"), took(300, agent="c")):
                now.ended(task)
            steps = (Step(skill="s", agent="b"), (Step(skill="s", agent="b"), Step(skill="s", agent="c")))
            asked = msgspec.structs.replace(NEXT.asked, then=steps)
            assert await now.estimate_ms(msgspec.structs.replace(NEXT, asked=asked)) == 10 + 100 + 300

    run(scenario())


@pytest.mark.req("P-23")
def test_a_history_outlives_the_hub_and_grows_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path) as first:
            for ms in (100, 200, 300):
                first.ended(took(ms))
        async with life(tmp_path) as second:
            # It ends before anybody asked: what is on disk must not be lost for it.
            second.ended(took(400))
            second.ended(took(500))
        async with life(tmp_path) as third:
            assert await third.estimate_ms(NEXT) == 300

    run(scenario())


def test_what_was_learnt_is_written_every_ten_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, killed=True) as first:
            first.ended(took(100))
            first.clock.advance(WRITTEN_S - 1)
            first.ended(took(100))
            assert first.spawned == []
            first.clock.advance(1)
            await asyncio.gather(*first.spawned)
            first.ended(took(9_000))
            first.ended(took(9_000))
            first.ended(took(9_000))
        async with life(tmp_path) as second:
            assert await second.estimate_ms(NEXT) == 100

    run(scenario())


def test_no_more_than_so_many_skills_are_remembered_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, most_skills=2) as now:
            now.ended(took(10, skill="one"))
            await now.estimates.write()
            for skill in ("two", "three"):
                now.ended(took(20, skill=skill))
            assert await now.estimate_ms(took(0, skill="one")) == 10  # read again

    run(scenario())
