"""How agents do: what their calls and health checks came to, over the last hour by skill and over a day in all.

    a call ends ──► a window in memory, and a row that is not written yet
                       │                     │ every 10 s, and at the end: added to the minute's row on disk
    routing, health ◄──┘                     └──► rating, p95, availability of the agents that had calls

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
    took_ms,
)
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

Key = tuple[str, str]  # tenant, agent
_Row = tuple[str, str, str, int, Outcome]  # tenant, agent, skill, minute, outcome


@final
class _Unwritten:
    """What a minute's row grows by at the next writing."""

    __slots__ = ("buckets", "count", "sum_ms")

    def __init__(self) -> None:
        self.count = 0
        self.sum_ms = 0
        self.buckets = [0] * BUCKETS


@final
class _Known:
    """What is at hand of one agent, and whether what is on disk is in it."""

    __slots__ = ("day", "failures", "heard", "is_whole", "seen_at", "skills")

    def __init__(self) -> None:
        self.failures = 0  # since it is at hand
        self.day = Window(DAY, HOUR)
        self.skills: dict[str, Window] = {}
        self.heard: float | None = None  # monotonic: when it last answered a call or a check
        self.seen_at: datetime | None = None
        self.is_whole = False

    def hour(self, skill: str) -> Window | None:
        """The window of one skill; None where too many are counted already."""
        window = self.skills.get(skill)
        if window is None and len(self.skills) < MOST_SKILLS:
            window = self.skills[skill] = Window(HOUR, SLOT)
        return window

    def clear(self) -> None:
        """Forget what was counted."""
        self.day.clear()
        self.skills.clear()


class Figures:
    """Counts what calls come to, for one hub."""

    def __init__(
        self,
        *,
        store: Minutes,
        clock: Clock,
        spawn: Spawn,
        changed: Callable[[Sequence[Agent]], None],
        most_agents: int = MOST_AGENTS,
    ) -> None:
        self._store = store
        self._clock = clock
        self._spawn = spawn
        self._changed = changed  # told of agents whose stored figures are others now
        self._most_agents = most_agents
        self._known: OrderedDict[Key, _Known] = OrderedDict()
        self._unwritten: dict[_Row, _Unwritten] = {}
        self._moved: set[Key] = set()  # agents with something new since the last writing
        # Reading and writing take turns: what is read has everything that was written, and nothing of what was not.
        self._turn = asyncio.Lock()
        self._timer: Timer | None = None
        self._minute = 0
        self._minute_until = float("-inf")

    def ended(self, task: Task) -> Outcome:
        """Count one call that has ended; what it counts as."""
        outcome = outcome_of(task)
        if outcome is Outcome.TIMED_OUT and self._was_hurried(task):
            outcome = Outcome.REFUSED
        self._count(task, outcome, took_ms(task))
        return outcome

    def missed(self, task: Task) -> None:
        """Count a call whose agent could not be reached, though another one has it now."""
        self._count(task, Outcome.UNREACHABLE, 0)

    def checked(self, tenant: str, agent_id: str, *, answered: bool) -> None:
        """Count one health check. Checks are added up by the hour: there is one every few seconds of every agent."""
        known, now = self._at_hand((tenant, agent_id)), self._clock.now()
        outcome = Outcome.UP if answered else Outcome.DOWN
        minute = _minute(now)
        known.day.at(minute).count(outcome)
        if answered:
            known.heard, known.seen_at = self._clock.monotonic(), now
        self._note((tenant, agent_id, "", minute // HOUR * HOUR, outcome), 0)

    def heard(self, tenant: str, agent_id: str) -> float | None:
        """When an agent last answered a call or a check, by the clock that never jumps; None where that is unknown."""
        known = self._known.get((tenant, agent_id))
        return None if known is None else known.heard

    def seen_at(self, tenant: str, agent_id: str) -> datetime | None:
        """The same in wall time, for people."""
        known = self._known.get((tenant, agent_id))
        return None if known is None else known.seen_at

    def of_skill(self, tenant: str, agent_id: str, skill: str) -> SkillFigures:
        """How an agent did lately with one skill, by what is at hand (`have` sees to that)."""
        known = self._known.get((tenant, agent_id))
        window = None if known is None else known.skills.get(skill)
        return UNKNOWN if window is None else figures_of(window.total(_minute(self._clock.now())))

    def failures(self, tenant: str, agent_id: str) -> int:
        """A number that grows with each call of an agent that did not complete."""
        known = self._known.get((tenant, agent_id))
        return 0 if known is None else known.failures

    def p95_ms(self, tenant: str, agent_id: str, skill: str) -> int | None:
        """What 95 of 100 calls of a skill took at most within the last hour; None where fewer than 20 completed."""
        known = self._known.get((tenant, agent_id))
        window = None if known is None else known.skills.get(skill)
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
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        async with self._turn:
            moved, self._moved = self._moved, set()
            if not moved:
                return
            measured = [await self._measured(key) for key in moved]
            rows, self._unwritten = self._unwritten, {}
            try:
                agents = await self._store.add_minutes([_row(key, each) for key, each in rows.items()], measured)
            except BaseException:
                # The store takes nothing now: what is new meanwhile goes to the same rows.
                self._moved |= moved
                for key, each in rows.items():
                    self._merge(key, each)
                self._write_later()
                raise
        if agents:
            self._changed(agents)

    async def _measured(self, key: Key) -> Measured:
        """How an agent stands by its last day."""
        known = self._known.get(key)
        if known is None or not known.is_whole:
            known = await self._read(key)
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
        known.clear()
        unwritten = [_row(row, each) for row, each in self._unwritten.items() if row[:2] == key]
        for row in (*rows, *unwritten):
            known.day.at(row.minute).add(row.counted)
            if row.minute >= minute - HOUR and row.counted.outcome not in (Outcome.UP, Outcome.DOWN):
                window = known.hour(row.skill)
                if window is not None:
                    window.at(row.minute).add(row.counted)
        known.is_whole = True
        return known

    def _count(self, task: Task, outcome: Outcome, ms: int) -> None:
        key, skill = (task.tenant, task.agent_id), task.skill or ""
        known, now = self._at_hand(key), self._clock.monotonic()
        minute = self._minute if now < self._minute_until else self._look(now)
        known.day.at(minute).count(outcome, ms)
        window = known.hour(skill)
        if window is not None:
            window.at(minute).count(outcome, ms)
        if outcome is not Outcome.COMPLETED:
            known.failures += 1
        if outcome is Outcome.COMPLETED or outcome is Outcome.FAILED:
            known.heard, known.seen_at = now, task.ended_at
        self._note((*key, skill, minute, outcome), ms)

    def _look(self, now: float) -> int:
        """The minute that it is, looked up once a second."""
        self._minute, self._minute_until = _minute(self._clock.now()), now + LOOKED_S
        return self._minute

    def _at_hand(self, key: Key) -> _Known:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _Known()
            if len(self._known) > self._most_agents:
                self._known.popitem(last=False)
        else:
            self._known.move_to_end(key)
        return known

    def _was_hurried(self, task: Task) -> bool:
        """Whether a call that ran out of time had less of it than the agent is known to need."""
        given = given_ms(task)
        usual = self.p95_ms(task.tenant, task.agent_id, task.skill or "")
        return given is not None and usual is not None and given < usual

    def _note(self, row: _Row, ms: int) -> None:
        self._moved.add(row[:2])
        unwritten = self._unwritten.get(row)
        if unwritten is None:
            if len(self._unwritten) >= MOST_UNWRITTEN:
                return
            unwritten = self._unwritten[row] = _Unwritten()
        unwritten.count += 1
        unwritten.sum_ms += ms
        unwritten.buckets[bucket_of(ms)] += 1
        self._write_later()

    def _merge(self, row: _Row, earlier: _Unwritten) -> None:
        now = self._unwritten.setdefault(row, earlier)
        if now is not earlier:
            now.count += earlier.count
            now.sum_ms += earlier.sum_ms
            now.buckets = [one + other for one, other in zip(now.buckets, earlier.buckets, strict=True)]

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + WRITTEN_S, self._write_soon)

    def _write_soon(self) -> None:
        self._timer = None
        self._spawn(self.write())


def _row(row: _Row, unwritten: _Unwritten) -> Minute:
    tenant, agent_id, skill, minute, outcome = row
    counted = Counted(outcome=outcome, count=unwritten.count, sum_ms=unwritten.sum_ms, buckets=tuple(unwritten.buckets))
    return Minute(tenant=tenant, agent_id=agent_id, skill=skill, minute=minute, counted=counted)


def _minute(at: datetime) -> int:
    return int(at.timestamp()) // 60
