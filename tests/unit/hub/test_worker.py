"""The worker of one queue, on a real store: jobs as slots are free, and no question while none is."""

import asyncio
import contextlib
from pathlib import Path

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.backends.sqlite.sql import SQL
from dragoman.hub.worker import Worker
from dragoman.ports.store import CALLS, Job
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import new_task, opening
from tests.support.run import run
from tests.unit.backends.conftest import Statements


def test_while_all_slots_are_taken_the_store_is_not_asked_for_jobs(tmp_path: Path) -> None:
    async def scenario() -> None:
        clock, statements = ManualClock(), Statements()
        store = SqliteStore(tmp_path / "hub.db", clock=clock, bus=LocalBus(), connect=statements.connect)
        await store.start()
        begun: asyncio.Queue[str] = asyncio.Queue()
        may_end = asyncio.Event()

        async def work(job: Job) -> None:
            begun.put_nowait(job.task_id)
            await may_end.wait()
            await store.finish(job)

        async def accept() -> str:
            task = new_task(clock)
            await store.open(opening(task, durable=True))
            worker.wake()
            return task.id

        loop = asyncio.get_running_loop()
        owner = await store.begin_epoch("replica")
        worker = Worker(CALLS, store=store, owner=owner, clock=clock, spawn=loop.create_task, slots=1, work=work)
        running = loop.create_task(worker.run())
        first = await accept()
        assert await begun.get() == first
        await accept()  # With it the worker has looked and found no slot.
        statements.clear()
        waiting = [await accept() for _ in range(5)]
        assert SQL["next_due"] not in statements.run
        may_end.set()
        done = [await begun.get() for _ in range(6)]
        assert done[1:] == waiting
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await store.close()

    run(scenario())
