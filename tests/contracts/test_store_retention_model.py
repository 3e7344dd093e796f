"""Retention against a model: whatever calls there are and whenever it runs, nothing open, owed or young is removed."""

import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore, codec, retention
from dragoman.ports.deliveries import NewNotice
from dragoman.ports.store import CALLBACKS, NewJob, Store
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import EVERYONE, completed, new_task, opening, sent, step
from tests.contracts.test_store_retention import DAY, expire_calls, verified
from tests.support.run import run

if TYPE_CHECKING:
    from dragoman.model.task import Task

KEEP_D: Final = 30


class Made(msgspec.Struct, kw_only=True):
    """A call of the model: None as its end is one that is open."""

    id: str
    context: str
    ended: datetime | None
    owed: bool


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call to be made."""

    quick: bool
    ends: bool
    owed: bool
    context: int


class Wait(msgspec.Struct, frozen=True):
    """Days go by."""

    days: int


class Expire(msgspec.Struct, frozen=True):
    """Retention runs."""


class EndOne(msgspec.Struct, frozen=True):
    """The oldest open call ends."""


CALLS = st.builds(Call, quick=st.booleans(), ends=st.booleans(), owed=st.booleans(), context=st.integers(0, 3))
STEPS = st.lists(
    st.one_of(CALLS, CALLS, CALLS, st.builds(Wait, st.integers(1, 40)), st.just(Expire()), st.just(EndOne())),
    min_size=1,
    max_size=30,
)


class World:
    """The store, and beside it what the model says that it holds."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.made: list[Made] = []
        self.open: list[Task] = []

    async def call(self, asked: Call) -> None:
        task = new_task(self.clock, context=f"ctx{asked.context}")
        await self.store.open(opening(task, durable=not asked.quick or not asked.ends))
        born = [NewJob(queue=CALLBACKS, notice=NewNotice(callback_id="cb", seq=3, url="https://a.example/"))]
        owed = asked.owed and asked.ends
        ended = self.clock.now() if asked.ends else None
        self.made.append(Made(id=task.id, context=task.context_id, ended=ended, owed=owed))
        if asked.ends:
            await self.store.append(step(task, sent(self.clock), completed(self.clock), jobs=born if owed else []))
        else:
            self.open.append(task)

    async def end_one(self) -> None:
        if self.open:
            task = self.open.pop(0)
            await self.store.append(step(task, sent(self.clock), completed(self.clock)))
            next(each for each in self.made if each.id == task.id).ended = self.clock.now()

    async def expire(self) -> None:
        """What the model says that may go, and must: in the order of openings, the first of a conversation last."""
        before = self.clock.now() - timedelta(days=KEEP_D)
        removed = await expire_calls(self.store, self.clock, KEEP_D)
        kept: list[Made] = []
        for each in self.made:
            old = each.ended is not None and each.ended < before and not each.owed
            of_context = [other for other in self.made if other.context == each.context]
            if not old or (each is of_context[0] and len(of_context) > 1):
                kept.append(each)
        assert removed == len(self.made) - len(kept)
        self.made = kept

    async def look(self) -> None:
        for each in self.made:
            task = await self.store.load(EVERYONE, each.id)
            assert task is not None, f"{each} was removed"
            assert len(await self.store.events(each.id, 0, 10)) == task.last_seq
        assert (await verified(self.store)).broken is None


@settings(deadline=None, max_examples=15)
@given(STEPS)
def test_retention_removes_what_the_model_says_and_nothing_that_is_open_owed_or_young(steps: list[object]) -> None:
    async def scenario(folder: Path) -> None:
        clock = ManualClock()
        store = SqliteStore(folder / "hub.db", clock=clock, bus=LocalBus(), inline=True)
        await store.start()
        try:
            world = World(store, clock)
            for each in [*steps, Expire()]:
                match each:
                    case Call():
                        await world.call(each)
                    case Wait(days):
                        clock.advance(days * DAY)
                    case EndOne():
                        await world.end_one()
                    case _:
                        await world.expire()
            await world.look()
        finally:
            await store.close()

    with tempfile.TemporaryDirectory() as folder:
        run(scenario(Path(folder)))


@pytest.mark.planted
def test_a_retention_that_removes_open_calls_is_found_out() -> None:
    with (
        mock.patch.object(codec, "FIRST_FINAL", 0),
        mock.patch.object(retention, "_OWED", "SELECT 0, 0, 0 WHERE ?1 IS NOT NULL"),
        mock.patch.object(retention, "_REMOVE", "DELETE FROM task WHERE number = ?1"),
        pytest.raises(AssertionError),
    ):
        test_retention_removes_what_the_model_says_and_nothing_that_is_open_owed_or_young()
