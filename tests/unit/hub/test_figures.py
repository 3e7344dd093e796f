"""What calls came to is counted: only what the agent did, over a sliding hour and day, over a restart too."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.figures import DAY, HOUR, WRITTEN_S, Figures
from dragoman.model.agent import Agent, AgentFigures
from dragoman.model.ended import ended_call
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    DragomanError,
    InputRefused,
    Interrupted,
    RateLimited,
)
from dragoman.model.figures import (
    BUCKETS,
    Counted,
    Outcome,
    SkillFigures,
    Tally,
    bucket_of,
    outcome_of,
    quantile_ms,
)
from dragoman.model.rating import rating_of
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.minutes import MinuteQuery
from dragoman.ports.store import Registration
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_agent
from tests.support.run import run
from tests.unit.model.test_lifecycle import AT, TASK


def call(
    error: DragomanError | None = None,
    *,
    ms: int = 100,
    state: TaskState | None = None,
    agent: str = "weather",
    skill: str = "s",
    given_s: float = 30,
) -> Task:
    """A call that has ended."""
    return msgspec.structs.replace(
        TASK,
        tenant="acme",
        agent_id=agent,
        skill=skill,
        state=state or (TaskState.COMPLETED if error is None else TaskState.FAILED),
        failure=None if error is None else error.failure(),
        created_at=AT,
        started_at=AT,
        deadline=AT + timedelta(seconds=given_s),
        ended_at=AT + timedelta(milliseconds=ms),
    )


CANCELED = call(state=TaskState.CANCELED)


class Life:
    """Figures from one start of a hub to its end, on a real store."""

    def __init__(self, folder: Path, clock: ManualClock, most_agents: int) -> None:
        self.clock = clock
        self.store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus())
        self.changed: list[Agent] = []
        self.figures = Figures(
            store=self.store, clock=clock, spawn=self.spawn, changed=self.changed.extend, most_agents=most_agents
        )
        self.spawned: list[asyncio.Task[None]] = []

    def spawn(self, work: Coroutine[None, None, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self.spawned.append(task)
        return task

    def ended(self, *tasks: Task) -> None:
        for task in tasks:
            self.figures.ended([ended_call(task)])

    async def of_skill(self, agent: str = "weather", skill: str = "s") -> SkillFigures:
        await self.figures.have([new_agent(self.clock, agent, tenant="acme")])
        return self.figures.of_skill("acme", agent, skill)

    async def stored(self, agent: str = "weather") -> AgentFigures:
        await self.figures.write()
        found = await self.store.find_agent("acme", agent)
        assert found is not None
        return found.figures


@asynccontextmanager
async def life(folder: Path, clock: ManualClock, *, most_agents: int = 10) -> AsyncGenerator[Life]:
    lived = Life(folder, clock, most_agents)
    await lived.store.start()
    try:
        for agent in ("weather", "other"):
            await lived.store.register(Registration(agent=new_agent(clock, agent, tenant="acme")))
        yield lived
        await lived.figures.write()
    finally:
        await lived.store.close()


@pytest.mark.parametrize(
    ("task", "outcome"),
    [
        (call(), Outcome.COMPLETED),
        (CANCELED, Outcome.CANCELED),
        (call(AgentError("It broke.")), Outcome.FAILED),
        (call(BadAgentReply("What?")), Outcome.FAILED),
        (call(state=TaskState.REJECTED), Outcome.FAILED),
        (call(AgentUnavailable()), Outcome.UNREACHABLE),
        (call(AgentTimeout()), Outcome.TIMED_OUT),
        (call(InputRefused("Not so.")), Outcome.REFUSED),
        (call(RateLimited()), Outcome.REFUSED),
        (call(DragomanError("Our fault.")), Outcome.REFUSED),
        (call(Interrupted(reason="interrupted")), Outcome.REFUSED),
        (call(AgentError("Which one?", reason="input_required")), Outcome.REFUSED),
        (call(AgentUnavailable(reason="closed")), Outcome.REFUSED),
    ],
)
def test_only_what_the_agent_did_counts_against_it(task: Task, outcome: Outcome) -> None:
    assert outcome_of(task) is outcome


@pytest.mark.req("P-46")
def test_cancelled_calls_and_callers_faults_lower_nobodys_success(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as now:
            now.ended(*[call() for _ in range(9)], call(AgentError("It broke.")))
            now.ended(*[CANCELED for _ in range(50)], *[call(InputRefused("Not so.")) for _ in range(50)])
            stored = await now.stored()
            assert (stored.calls, stored.failures, stored.success) == (10, 1, 0.9)
            assert stored.availability == 1.0
            lately = await now.of_skill()
            assert (lately.calls, lately.success) == (10, 0.9)

    run(scenario())


@pytest.mark.req("P-46")
def test_rating_p95_and_availability_are_measured_and_stored(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as now:
            now.ended(*[call(ms=ms) for ms in range(100, 200)], *[call(AgentUnavailable()) for _ in range(25)])
            for answered in (True, True, False):
                now.figures.checked("acme", "weather", answered=answered)
            stored = await now.stored()
            assert 128 <= stored.p95_ms <= 255  # Exact to its bucket.
            assert stored.availability == round(1 - 26 / 128, 4)
            assert stored.rating == rating_of(0, 0, 125, 25) == 4.3
            assert [(agent.id, agent.figures) for agent in now.changed] == [("weather", stored)]
            assert await now.stored("other") == AgentFigures()

    run(scenario())


def test_the_hour_of_a_skill_and_the_day_of_an_agent_slide(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as now:
            now.ended(*[call(AgentError("It broke.")) for _ in range(10)])
            assert (await now.of_skill()).success == 0.0
            now.clock.advance(HOUR * 60)
            assert await now.of_skill() == SkillFigures()
            now.ended(call())
            assert (await now.stored()).failures == 10
            now.clock.advance(DAY * 60)
            now.ended(call())
            stored = await now.stored()
            assert (stored.calls, stored.failures) == (1, 0)

    run(scenario())


@pytest.mark.req("P-46")
def test_figures_outlive_the_hub_and_grow_on(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock = ManualClock()
        async with life(tmp_path, clock) as first:
            first.ended(call(), call(AgentError("It broke.")), CANCELED)
            first.figures.checked("acme", "weather", answered=True)
        async with life(tmp_path, clock) as second:
            # It counts before anybody asked: what is on disk must not be lost for it, nor counted twice.
            second.ended(call(), call(skill="t"))
            assert (await second.of_skill()).calls == 3
            stored = await second.stored()
            assert (stored.calls, stored.failures) == (4, 1)
            second.ended(call())
        clock.advance(2 * HOUR * 60)
        async with life(tmp_path, clock) as third:
            assert await third.of_skill() == SkillFigures()
            third.ended(call())
            assert (await third.stored()).calls == 6

    run(scenario())


def test_what_was_counted_is_written_every_ten_seconds(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as now:
            now.ended(call())
            now.clock.advance(WRITTEN_S - 1)
            now.ended(call(AgentError("It broke.")))
            assert now.spawned == []
            now.clock.advance(1)
            await asyncio.gather(*now.spawned)
            minute = int(now.clock.now().timestamp()) // 60
            rows = await now.store.minutes(MinuteQuery(since=minute - 1, until=minute + 1, by=60, tenant="acme"))
            assert sorted((row.counted.outcome.value, row.counted.count) for row in rows) == [
                ("completed", 1),
                ("failed", 1),
            ]
            assert now.clock.timers == 0  # A hub without calls writes nothing.

    run(scenario())


def test_no_more_than_so_many_agents_are_at_hand_at_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock(), most_agents=1) as now:
            now.ended(call(AgentError("It broke.")), call(agent="other"))
            assert (await now.of_skill("other")).calls == 1
            assert (await now.of_skill()).calls == 1  # read again, though it was not written yet
            assert (await now.stored()).failures == 1

    run(scenario())


def test_a_call_in_more_of_a_hurry_than_the_agent_usually_is_does_not_count(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as now:
            hurried = call(AgentTimeout(), given_s=0.01)
            # Nobody knows yet how long it takes.
            assert now.figures.outcome(hurried) is Outcome.TIMED_OUT
            now.ended(*[call(ms=1000) for _ in range(20)])
            assert now.figures.outcome(hurried) is Outcome.REFUSED
            patient = call(AgentTimeout(), given_s=5)
            assert now.figures.outcome(patient) is Outcome.TIMED_OUT
            assert now.figures.p95_ms("acme", "weather", "s") in range(512, 1024)
            assert now.figures.p95_ms("acme", "weather", "t") is None

    run(scenario())


def test_a_store_that_takes_nothing_loses_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with life(tmp_path, ManualClock()) as now:
            now.ended(call())
            await now.store.close()
            with pytest.raises(Exception, match="closed"):
                await now.figures.write()
            await now.store.start()
            now.ended(call())
            assert (await now.stored()).calls == 2

    run(scenario())


def test_quantiles_are_exact_to_their_bucket() -> None:
    tally = Tally()
    assert (tally.quantile_ms(0.5), tally.success, tally.availability, tally.mean_ms) == (None, None, None, None)
    for ms in (0, 1, 5, 6, 7, 1_000_000_000):
        buckets = tuple(int(bucket == bucket_of(ms)) for bucket in range(BUCKETS))
        tally.add(Counted(outcome=Outcome.COMPLETED, count=1, sum_ms=ms, buckets=buckets))
    assert tally.quantile_ms(0.1) == 0
    assert tally.quantile_ms(0.5) in range(4, 8)
    assert (tally.quantile_ms(1.0) or 0) >= 2**22
    assert quantile_ms([0] * 24, 0.5) is None
