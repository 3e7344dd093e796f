"""A store with one task in it that grows as the test says, and readers of it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.hub.reader import Reader
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import chunk, completed, moved, new_task, opening, step


class World:
    """A store, its bus, and one task in it that grows as the test says."""

    def __init__(self, store: SqliteStore, bus: LocalBus, clock: ManualClock) -> None:
        self.store = store
        self.bus = bus
        self.clock = clock
        self.task = new_task(clock)

    async def open(self) -> None:
        await self.store.open(opening(self.task, durable=True))

    async def words(self, *texts: str) -> None:
        for text in texts:
            growth = step(self.task, chunk(self.clock, text))
            await self.store.append(growth)
            self.task = growth.task

    async def end(self) -> None:
        growth = step(self.task, completed(self.clock))
        await self.store.append(growth)
        self.task = growth.task

    async def ask(self, state: TaskState = TaskState.INPUT_REQUIRED) -> None:
        growth = step(self.task, moved(self.clock, state))
        await self.store.append(growth)
        self.task = growth.task

    def reader(self, *, after: int | None = None, past_questions: bool = False, task: Task | None = None) -> Reader:
        return Reader(task or self.task, store=self.store, bus=self.bus, after=after, past_questions=past_questions)


@asynccontextmanager
async def world(folder: Path) -> AsyncGenerator[World]:
    clock, bus = ManualClock(), LocalBus()
    store = SqliteStore(folder / "hub.db", clock=clock, bus=bus)
    await store.start()
    try:
        yield World(store, bus, clock)
    finally:
        await store.close()
