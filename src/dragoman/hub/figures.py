"""How agents do: what their calls and health checks came to, over the last hour by skill and over a day in all.

    a call ends ──► a count of its minute ──► windows in memory, when somebody looks at them
                       │                           └──► routing, health
                       └── every 10 s, and at the end: added to the minute's row on disk
                                                   └──► rating, p95, availability of the agents that had calls

Memory holds what the store holds, and what is not written yet: an agent that is not at hand is read when it is needed.
A crash loses the last seconds of this. Does not keep single calls, and does not judge: `model/figures.py` does.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final, final

from dragoman.hub.carry import Spawn
from dragoman.model.agent import Agent
from dragoman.model.ended import Alike
from dragoman.model.figures import (
    BUCKETS,
    ENOUGH,
    Counted,
    Outcome,
    SkillFigures,
    bucket_of,
    figures_of,
    given_ms,
    outcome_of,
)
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.window import Window
from dragoman.ports.clock import Clock, Timer
from dragoman.ports.minutes import Measured, Minute, MinuteQuery, Minutes

WRITTEN_S: Final = 10.0
LOOKED_S: Final = 1.0
HOUR: Final = 60  # minutes
SLOT: Final = 5  # minutes of the hour that are counted together
DAY: Final = 24 * HOUR
MOST_AGENTS: Final = 5_000  # at hand at once; the longest unused is read again when it is needed
MOST_SKILLS: Final = 100  # of one agent at hand; of the others no more is known than of fresh ones
MOST_UNWRITTEN: Final = 20_000  # rows; what comes while the disk takes none beyond that is counted in memory alone
UNKNOWN: Final = SkillFigures()
_DONE: Final = TaskState.COMPLETED
_COMPLETED: Final = Outcome.COMPLETED
_FAILED: Final = Outcome.FAILED
_TIMED_OUT: Final = Outcome.TIMED_OUT

Key = tuple[str, str]  # tenant, agent
_Of = tuple[str, int, Outcome]  # skill, minute, outcome: what is counted together
_Row = tuple[Key, _Of]


@final
class _Count:
    """Calls, or checks, of one agent that are counted together."""

    __slots__ = ("buckets", "count", "sum_ms")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ms = 0
        self.buckets = [0] * BUCKETS

    def add(self, other: "_Count") -> None:
        """Add all of another."""
        self.count += other.count
        self.sum_ms += other.sum_ms
        self.buckets = [one + another for one, another in zip(self.buckets, other.buckets, strict=True)]


@final
class _Known:
    """What is at hand of one agent, and whether what is on disk is in it."""

    __slots__ = ("_skills", "day", "failures", "fresh", "heard", "is_whole", "seen_at")

    def __init__(self) -> None:
        self.fresh: dict[_Of, _Count] = {}  # what is in no window yet, nor in a row
        self.failures = 0  # since it is at hand
        self.day = Window(DAY, HOUR)
        self._skills: dict[str, Window] = {}
        self.heard: float | None = None  # monotonic: when it last answered a call or a check
        self.seen_at: datetime | None = None
        self.is_whole = False

    def hour(self, skill: str) -> Window | None:
        """The window of one skill, if it had calls."""
        return self._skills.get(skill)

    def add(self, skill: str, minute: int, counted: Counted, *, lately: bool = True) -> None:
        """Add to the windows; to that of the skill, too, where it is of late, and not one too many."""
        self.day.at(minute).add(counted)
        if lately and counted.outcome is not Outcome.UP and counted.outcome is not Outcome.DOWN:
            window = self._skills.get(skill)
            if window is None and len(self._skills) < MOST_SKILLS:
                window = self._skills[skill] = Window(HOUR, SLOT)
            if window is not None:
                window.at(minute).add(counted)

    def clear(self) -> None:
        """Forget what was counted."""
        self.day.clear()
        self._skills.clear()


class Figures:
    """Counts what calls come to, for one hub."""

    def __init__(
        self,
        *,
        store: Minutes,
        clock: Clock,
        spawn: Spawn,
        changed: Callable[[Sequence[Agent]], None],
        catch_up: Callable[[], None] = lambda: None,
        most_agents: int = MOST_AGENTS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._spawn = spawn
        self._changed = changed  # told of agents whose stored figures are others now
        self._catch_up = catch_up  # has this told of every call that has ended
        self._most_agents = most_agents
        self._known: OrderedDict[Key, _Known] = OrderedDict()
        self._unwritten: dict[_Row, _Count] = {}
        self._moved: set[Key] = set()  # agents with something new since the last writing
        # Reading and writing take turns: what is read has everything that was written, and nothing of what was not.
        self._turn = asyncio.Lock()
        self._timer: Timer | None = None
        self._minute = 0
        self._minute_until = float("-inf")

    def ended(self, alike: Alike) -> None:
        """Count calls that have ended and are alike."""
        task = alike[-1].task
        if task.state is _DONE:
            self._count(task, _COMPLETED, [each.agent_ms for each in alike])
        else:
            for each in alike:
                self._count(each.task, self.outcome(each.task), (each.agent_ms,))

    def outcome(self, task: Task) -> Outcome:
        """What a call that has ended counts as."""
        outcome = outcome_of(task)
        return Outcome.REFUSED if outcome is _TIMED_OUT and self._was_hurried(task) else outcome

    def missed(self, task: Task) -> None:
        """Count a call whose agent could not be reached, though another one has it now."""
        self._count(task, Outcome.UNREACHABLE, (0,))

    def checked(self, tenant: str, agent_id: str, *, answered: bool) -> None:
        """Count one health check. Checks are added up by the hour: there is one every few seconds of every agent."""
        key, now = (tenant, agent_id), self._clock.now()
        known, outcome = self._at_hand(key), Outcome.UP if answered else Outcome.DOWN
        if answered:
            known.heard, known.seen_at = self._clock.monotonic(), now
        self._fresh(key, known, ("", _minute(now) // HOUR * HOUR, outcome)).count += 1

    def heard(self, tenant: str, agent_id: str) -> float | None:
        """When an agent last answered a call or a check, by the clock that never jumps; None where that is unknown."""
        self._catch_up()
        known = self._known.get((tenant, agent_id))
        return None if known is None else known.heard

    def seen_at(self, tenant: str, agent_id: str) -> datetime | None:
        """The same in wall time, for people."""
        self._catch_up()
        known = self._known.get((tenant, agent_id))
        return None if known is None else known.seen_at

    def of_skill(self, tenant: str, agent_id: str, skill: str) -> SkillFigures:
        """How an agent did lately with one skill, by what is at hand (`have` sees to that)."""
        window = self._window(tenant, agent_id, skill)
        return UNKNOWN if window is None else figures_of(window.total(_minute(self._clock.now())))

    def failures(self, tenant: str, agent_id: str) -> int:
        """A number that grows with each call of an agent that did not complete."""
        self._catch_up()
        known = self._known.get((tenant, agent_id))
        return 0 if known is None else known.failures

    def p95_ms(self, tenant: str, agent_id: str, skill: str) -> int | None:
        """What 95 of 100 calls of a skill took at most within the last hour; None where fewer than 20 completed."""
        window = self._window(tenant, agent_id, skill)
        if window is None:
            return None
        tally = window.total(_minute(self._clock.now()))
        return tally.quantile_ms(0.95) if tally.of(Outcome.COMPLETED) >= ENOUGH else None

    async def have(self, agents: Iterable[Agent]) -> None:
        """Have what is on disk of these agents at hand."""
        missing = [(agent.tenant, agent.id) for agent in agents]
        missing = [key for key in missing if (known := self._known.get(key)) is None or not known.is_whole]
        if missing:
            async with self._turn:
                for key in missing:
                    await self._read(key)

    async def write(self) -> None:
        """Add to the store what was counted since the last time, and let agents stand by their figures."""
        self._catch_up()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        async with self._turn:
            moved, self._moved = self._moved, set()
            if not moved:
                return
            rows: dict[_Row, _Count] = {}
            try:
                measured = [await self._measured(key) for key in moved]
                rows, self._unwritten = self._unwritten, {}
                agents = await self._store.add_minutes([_row(key, each) for key, each in rows.items()], measured)
            except BaseException:
                # The store takes nothing now: what is new meanwhile goes to the same rows.
                self._moved |= moved
                for key, each in rows.items():
                    self._note(key, each)
                self._write_later()
                raise
        if agents:
            self._changed(agents)

    async def _measured(self, key: Key) -> Measured:
        """How an agent stands by its last day."""
        known = self._known.get(key)
        if known is None or not known.is_whole:
            known = await self._read(key)
        self._settle(key)
        day = known.day.total(_minute(self._clock.now()))
        available = day.availability
        return Measured(
            tenant=key[0],
            agent_id=key[1],
            calls=day.counted,
            failures=day.failures,
            p95_ms=day.quantile_ms(0.95) or 0,
            availability=1.0 if available is None else round(available, 4),
            seen_at=known.seen_at,
        )

    async def _read(self, key: Key) -> _Known:
        """All of an agent: what is on disk, and what is not yet. Nothing is being written meanwhile."""
        minute = _minute(self._clock.now())
        query = MinuteQuery(tenant=key[0], agent_id=key[1], since=minute - DAY, until=minute - HOUR, by=HOUR)
        earlier = await self._store.minutes(query)
        lately = MinuteQuery(tenant=key[0], agent_id=key[1], since=minute - HOUR, until=minute + 1, by=1)
        rows = [*earlier, *await self._store.minutes(lately)]
        known = self._at_hand(key)
        if known.is_whole:
            return known
        self._settle(key)
        known.clear()
        unwritten = [_row(row, each) for row, each in self._unwritten.items() if row[0] == key]
        for row in (*rows, *unwritten):
            known.add(row.skill, row.minute, row.counted, lately=row.minute >= minute - HOUR)
        known.is_whole = True
        return known

    def _count(self, last: Task, outcome: Outcome, took_ms: Sequence[int]) -> None:
        """Count calls of one agent and skill by how long it had each."""
        key = (last.tenant, last.agent_id)
        known, now = self._known.get(key) or self._at_hand(key), self._clock.monotonic()
        if outcome is not _COMPLETED:
            known.failures += len(took_ms)
        if outcome is _COMPLETED or outcome is _FAILED:
            known.heard, known.seen_at = now, last.ended_at
        of = (last.skill or "", self._minute if now < self._minute_until else self._look(now), outcome)
        count = known.fresh.get(of) or self._fresh(key, known, of)
        count.count += len(took_ms)
        count.sum_ms += sum(took_ms)
        buckets = count.buckets
        for ms in took_ms:
            buckets[bucket_of(ms)] += 1

    def _look(self, now: float) -> int:
        """The minute that it is, looked up once a second."""
        self._minute, self._minute_until = _minute(self._clock.now()), now + LOOKED_S
        return self._minute

    def _at_hand(self, key: Key) -> _Known:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known()
            if len(self._known) > self._most_agents:
                oldest = next(iter(self._known))
                self._settle(oldest)
                del self._known[oldest]
        else:
            self._known.move_to_end(key)
        return known

    def _was_hurried(self, task: Task) -> bool:
        """Whether a call that ran out of time had less of it than the agent is known to need."""
        given = given_ms(task)
        usual = self.p95_ms(task.tenant, task.agent_id, task.skill or "")
        return given is not None and usual is not None and given < usual

    def _fresh(self, key: Key, known: _Known, of: _Of) -> _Count:
        """Where something is counted until it is looked at, or written."""
        count = known.fresh.get(of)
        if count is None:
            count = known.fresh[of] = _Count()
            self._moved.add(key)
            self._at_hand(key)
            self._write_later()
        return count

    def _window(self, tenant: str, agent_id: str, skill: str) -> Window | None:
        """The last hour of a skill, with all that was counted."""
        self._catch_up()
        key = (tenant, agent_id)
        known = self._known.get(key)
        if known is None:
            return None
        if known.fresh:
            self._settle(key)
        return known.hour(skill)

    def _settle(self, key: Key) -> None:
        """Add what is fresh of an agent to its windows, and to the rows that will be written."""
        known = self._known[key]
        fresh, known.fresh = known.fresh, {}
        for of, count in fresh.items():
            skill, minute, _ = of
            known.add(skill, minute, _counted(of, count))
            self._note((key, of), count)

    def _note(self, row: _Row, count: _Count) -> None:
        """Have a row grow by this at the next writing."""
        known = self._unwritten.get(row)
        if known is not None:
            known.add(count)
        elif len(self._unwritten) < MOST_UNWRITTEN:
            self._unwritten[row] = count

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + WRITTEN_S, self._write_soon)

    def _write_soon(self) -> None:
        self._timer = None
        self._spawn(self.write())


def _row(row: _Row, count: _Count) -> Minute:
    (tenant, agent_id), of = row
    skill, minute, _ = of
    return Minute(tenant=tenant, agent_id=agent_id, skill=skill, minute=minute, counted=_counted(of, count))


def _counted(of: _Of, count: _Count) -> Counted:
    return Counted(outcome=of[2], count=count.count, sum_ms=count.sum_ms, buckets=tuple(count.buckets))


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
