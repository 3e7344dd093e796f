"""The worker: takes jobs of one queue as they fall due and has them carried out, so many at a time.

Nothing is lost if it stops: a job that was not finished is claimed again by the next life of the hub.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Final

from dragoman.hub.carry import Spawn
from dragoman.ports.clock import Clock
from dragoman.ports.store import Job, Jobs, Owner

LOG: Final = logging.getLogger("dragoman.hub")
BATCH: Final = 100
LONGEST_NAP_S: Final = 60.0
MOST_RESTING: Final = 10_000  # jobs that only wait to be told something, and take no slot


class Worker:
    """Carries out the jobs of one queue."""

    def __init__(
        self,
        queue: str,
        *,
        store: Jobs,
        owner: Owner,
        clock: Clock,
        spawn: Spawn,
        slots: int,
        work: Callable[[Job], Awaitable[None]],
    ) -> None:
        self._queue = queue
        self._store = store
        self._owner = owner
        self._clock = clock
        self._spawn = spawn
        self._free = slots
        self._work = work
        self._resting = 0
        self._slotted: set[asyncio.Task[None]] = set()
        self._drained = False  # nothing waits in the queue, as far as is known here
        self._woken = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()

    def wake(self) -> None:
        """There is, or will be, something to do."""
        self._drained = False
        self._woken.set()

    def slot(self) -> "Slot | None":
        """A slot for work that need not go through the queue; none where something waits there, or all are taken."""
        if not self._drained or self._free <= 0:
            return None
        self._free -= 1
        return Slot(self)

    def adopt(self, work: Coroutine[None, None, None]) -> None:
        """Let this run beside the jobs, and end with them."""
        task = self._spawn(work)
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    @contextlib.contextmanager
    def resting(self) -> Generator[None]:
        """While a job only waits to be told something, another may have its slot: many such jobs stop no other."""
        task = asyncio.current_task()
        if task not in self._slotted or self._resting >= MOST_RESTING:
            yield
            return
        self._resting += 1
        self._free += 1
        self._woken.set()
        try:
            yield
        finally:
            self._resting -= 1
            self._free -= 1  # Perhaps more run now than there are slots: none is taken until some have ended.

    async def run(self) -> None:
        """Take jobs until cancelled; what runs then is let go, and taken up by the next life of the hub."""
        try:
            while True:
                self._woken.clear()
                free = max(0, min(self._free, BATCH))
                jobs = await self._store.lease((self._queue,), free, self._owner) if free else ()
                self._drained = len(jobs) < free and not self._woken.is_set()
                for job in jobs:
                    self._free -= 1
                    self.adopt(self.in_slot(self._work(job), job.task_id))
                if not jobs:
                    await self._nap()
        finally:
            for task in self._running:
                task.cancel()

    async def _nap(self) -> None:
        """Wait until there is something to do, or until the next job falls due; without a slot, until one is free."""
        if self._free <= 0:
            await self._woken.wait()
            return
        due = await self._store.next_due(self._queue)
        nap_s = LONGEST_NAP_S
        if due is not None:
            nap_s = min(max(0.0, (due - self._clock.now()).total_seconds()), LONGEST_NAP_S)
        try:
            async with asyncio.timeout(nap_s):
                await self._woken.wait()
        except TimeoutError:
            pass

    def give_back(self) -> None:
        """A slot is free again."""
        self._free += 1
        self._woken.set()

    async def in_slot(self, work: Awaitable[None], call_id: str = "") -> None:
        """Do the work of a slot that was taken for it, and give the slot back."""
        task = asyncio.current_task()
        try:
            if task is not None:
                self._slotted.add(task)
            await work
        except Exception:
            LOG.exception("a job broke", extra={"fields": {"queue": self._queue, "call_id": call_id}})
        finally:
            if task is not None:
                self._slotted.discard(task)
            self.give_back()


class Slot:
    """A place among the jobs that run; used once, or given back."""

    __slots__ = ("_worker",)

    def __init__(self, worker: Worker) -> None:
        self._worker = worker

    def use(self, work: Coroutine[None, None, None]) -> None:
        """Have this done in it."""
        self._worker.adopt(self._worker.in_slot(work))

    def give_back(self) -> None:
        """It is not needed."""
        self._worker.give_back()
