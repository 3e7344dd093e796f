"""What calls used up, by the day: counted in memory, added to the store's sums every few seconds and at the end.

    a call ends ──► memory ──(every 10 s, and at the end)──► the sums of its day
    begin       ◄── calls that ended after the last adding of an earlier life of the hub

Steps of a workflow count, the workflow itself is their sum. Whatever agents call their models, the sums know so many.
"""

import asyncio
from collections.abc import Callable, Collection, Coroutine
from datetime import date, datetime
from typing import Final, final

import msgspec

from dragoman.model.task import Task
from dragoman.model.usage import NOTHING, Sums, sums_of
from dragoman.ports.clock import Clock, Timer
from dragoman.ports.usage import DayOf, UsageDays

WRITTEN_S: Final = 10.0
MOST_WAITING: Final = 10_000  # sums that wait for their adding; with one more they are added at once
MOST_MODELS: Final = 500  # names that are told apart
OTHER: Final = "other"
DAY_S: Final = 86_400
FIRST_DAY: Final = date(1970, 1, 1).toordinal()


_Of = tuple[int, str, str, str, str, str]  # the fields of DayOf; a struct would cost more for each call


@final
class _Tally:
    """What waits to be added for one day, caller, target, skill and model."""

    __slots__ = ("calls", "told")

    def __init__(self) -> None:
        self.calls = 0
        self.told = NOTHING  # what agents told, of some of the calls

    def sums(self) -> Sums:
        """All of it."""
        return msgspec.structs.replace(self.told, calls=self.calls)


class Ledger:
    """Counts what the calls of this replica use up."""

    def __init__(
        self,
        *,
        store: UsageDays,
        clock: Clock,
        spawn: Callable[[Coroutine[None, None, None]], object],
        catch_up: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._spawn = spawn
        self._catch_up = catch_up  # has this told of every call that has ended
        self._waiting: dict[_Of, _Tally] = {}
        self._models: set[str] = set()
        self._timer: Timer | None = None
        self._adding = asyncio.Lock()  # Who reads the sums must know what of the waiting is in them.

    async def begin(self, started_at: datetime) -> None:
        """Count what an earlier life of the hub had not added when it died; nothing is added before that."""
        async with self._adding:
            left = await self._store.uncounted(started_at)
            for task in left or ():
                if not task.asked.then:
                    self.ended(task)
            if left is None:
                await self._store.add_usage((), started_at)
            await self._add()

    def ended(self, task: Task, calls: int = 1) -> None:
        """Count a call that has ended; or so many that are like this one, and told nothing of what they used."""
        usage = task.usage
        model = "" if usage is None or usage.model is None else self._model(usage.model)
        of = (self.day_of(task), task.tenant, task.caller_id, task.agent_id, task.skill or "", model)
        tally = self._waiting.get(of)
        if tally is None:
            tally = self._waiting[of] = _Tally()
            if len(self._waiting) == MOST_WAITING:
                self._write_soon()
        tally.calls += calls
        if usage is not None:
            tally.told += sums_of(usage)
        if self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + WRITTEN_S, self._write_soon)

    def today(self) -> int:
        """The day that it is, counted from 1970 (UTC)."""
        return int(self._clock.now().timestamp()) // DAY_S

    def day_of(self, task: Task) -> int:
        """The day on which a call ended."""
        return (task.ended_at or task.updated_at).toordinal() - FIRST_DAY

    def left_s(self) -> int:
        """Seconds until the day is over."""
        return DAY_S - int(self._clock.now().timestamp()) % DAY_S

    def waiting(self) -> Collection[DayOf]:
        """Whose sums wait for their adding."""
        self._catch_up()
        return [_day_of(of) for of in self._waiting]

    async def write(self) -> None:
        """Add what waits to the sums of the store."""
        async with self._adding:
            await self._add()

    async def spent(self, tenant: str, caller: str) -> Sums:
        """What a caller has used up today, all of it."""
        day = self.today()
        async with self._adding:
            await self._add()
            spent = await self._store.spent_on(day, tenant, caller)
            for of, tally in self._waiting.items():
                if of[:3] == (day, tenant, caller):
                    spent += tally.sums()
            return spent

    async def _add(self) -> None:
        self._catch_up()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        try:
            await self._store.add_usage(
                [(_day_of(of), tally.sums()) for of, tally in waiting.items()], self._clock.now()
            )
        except BaseException:
            for of, tally in waiting.items():
                since = self._waiting.setdefault(of, _Tally())
                since.calls += tally.calls
                since.told += tally.told
            raise

    def _model(self, name: str) -> str:
        if name not in self._models:
            if len(self._models) >= MOST_MODELS:
                return OTHER
            self._models.add(name)
        return name

    def _write_soon(self) -> None:
        self._timer = None
        self._spawn(self.write())


def _day_of(of: _Of) -> DayOf:
    day, tenant, caller, target, skill, model = of
    return DayOf(day=day, tenant=tenant, caller=caller, target=target, skill=skill, model=model)
