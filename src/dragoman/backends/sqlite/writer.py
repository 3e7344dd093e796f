"""The one writer: takes what has gathered, commits it together, then tells everyone who waited.

    loop:    submit ──► queue (10,000)          settle ◄── one wake-up per batch
    thread:             collect ≤ 256 ──► BEGIN, commands, COMMIT ──► checkpoint if due

A batch that fails is rolled back and its commands run one by one, so a bad one fails alone. One that finds the disk
full is run again once `Space` has made room. `inline` does the same on the loop, in the order of submission, for tests
that need every run alike.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final, final

from dragoman.backends.sqlite import audit
from dragoman.backends.sqlite.audit import Link, Noted
from dragoman.backends.sqlite.checkpoint import BATCH_BYTES, IDLE_S, Checkpoints
from dragoman.backends.sqlite.commands import Command, carry_out
from dragoman.backends.sqlite.connection import Connection
from dragoman.backends.sqlite.lane_figures import UPKEEP, LaneFigures
from dragoman.backends.sqlite.space import Space, is_full, no_room
from dragoman.backends.sqlite.traced import TracedCalls
from dragoman.model.errors import Overloaded

QUEUE: Final = 10_000
BATCH: Final = 256
GATHER_S: Final = 0.0003
GATHERS: Final = 8
SEVERAL: Final = 3

_LOG: Final = logging.getLogger(__name__)


@final
class Writer:
    """The write lane of one file."""

    __slots__ = (
        "_checkpoints",
        "_connection",
        "_figures",
        "_held",
        "_inline",
        "_last_size",
        "_link",
        "_loop",
        "_now",
        "_pending",
        "_queue",
        "_scheduled",
        "_settle",
        "_space",
        "_steady",
        "_taken",
        "_thread",
        "_traced",
        "submitted",
    )

    def __init__(
        self,
        connection: Connection,
        checkpoints: Checkpoints,
        now: Callable[[], int],
        steady: Callable[[], int],
        settle: Callable[[Sequence[Command]], None],
        held: Callable[[], int],
        taken: Callable[[Noted], None],
        space: Space,
        figures: LaneFigures,
        traced: TracedCalls,
        *,
        inline: bool,
    ) -> None:
        self.submitted = 0  # commands that were ever taken
        self._space = space
        self._figures = figures
        self._traced = traced
        self._link: Link | None = audit.last(connection)  # where the audit stands; not known after a failure
        self._taken = taken  # told what a commit took or gave back
        self._connection = connection
        self._checkpoints = checkpoints
        self._now = now  # as the audit says it
        self._steady = steady  # by which keys expire
        self._settle = settle
        self._held = held  # how many calls are open that are written only when they end
        self._inline = inline
        self._scheduled = False
        self._pending = 0
        self._last_size = 0  # how many commands the batch before had
        # Its own bound is `full`: a queue that blocks would block the loop.
        self._queue: queue.SimpleQueue[Command | None] = queue.SimpleQueue()
        self._loop = asyncio.get_running_loop()
        self._thread: threading.Thread | None = None
        if not inline:
            self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
            self._thread.start()

    @property
    def pending(self) -> int:
        """Commands that were taken and not yet settled."""
        return self._pending

    def refuse_if_full(self) -> None:
        """Raises Overloaded when 10,000 commands wait."""
        if self._pending >= QUEUE:
            raise Overloaded("The store has too much to write.")

    def submit(self, command: Command) -> None:
        """Take a command; never refuses, so that what was accepted can always be written."""
        self._pending += 1
        self.submitted += 1
        self._queue.put(command)
        if self._inline and not self._scheduled:
            self._scheduled = True
            self._loop.call_soon(self._run_inline)

    async def stop(self) -> None:
        """Write all that was taken, copy the log into the database, close it."""
        if self._thread is None:
            while self._pending:
                self._run_inline()
            self._finish()
            return
        self._queue.put(None)
        await self._loop.run_in_executor(None, self._thread.join)

    def _run(self) -> None:
        while True:
            batch = self._collect()
            if batch is None:
                self._finish()
                return
            if not batch:
                self._guarded(lambda: self._checkpoints.passive(self._connection), "A checkpoint failed.")
                self._guarded(self._space.look, "The disk could not be looked at.")
                continue
            size = self._timed(batch)
            self._loop.call_soon_threadsafe(self._settled, batch)
            self._tidy(size)

    def _collect(self) -> list[Command] | None:
        """What has gathered; nothing when a pause is to be used, None at the end."""
        try:
            waits = self._checkpoints.idle_due or self._space.full
            first = self._queue.get(timeout=IDLE_S if waits else None)
        except queue.Empty:
            return []
        if first is None:
            return None
        if not self._inline:
            self._gather()
        batch = [first]
        for _ in range(min(self._queue.qsize(), BATCH - 1)):
            command = self._queue.get()
            if command is None:
                self._queue.put(None)
                break
            batch.append(command)
        self._last_size = len(batch)
        return batch

    def _gather(self) -> None:
        """While other calls are about to end, let them join: a commit costs the same for one or for many.

        A lone call waits for nobody; otherwise it ends with the first pause in which nothing came, or after 2.4 ms.
        Where no call is about to end, but the batch before had several commands, one pause is for those that follow.
        """
        came = 0
        for _ in range(GATHERS):
            if self._held() <= self._pending and (came or self._last_size < SEVERAL):
                return
            time.sleep(GATHER_S)  # noqa: TID251 - the writer's own thread, which has nothing else to do
            before, came = came, self._queue.qsize()
            if came in (before, BATCH):
                return

    def _timed(self, batch: Sequence[Command]) -> int:
        since = self._figures.now()
        size = self._commit(batch)
        self._figures.committed(since, len(batch))
        return size

    def _commit(self, batch: Sequence[Command]) -> int:
        connection = self._connection
        try:
            connection.execute("BEGIN IMMEDIATE")
            noted = Noted(self._link or audit.last(connection))
            size = carry_out(connection, batch, self._steady, noted) + noted.write(connection, self._now)
            size += self._traced.write(connection, noted.traced, noted.removed)
            connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - whatever it was belongs to the command that caused it
            known, self._link = self._link, None
            self._roll_back()
            if known is not None and audit.was_moved(error):
                return self._commit(batch)  # Somebody else wrote into the chain: it goes on after that.
            if is_full(error):
                if self._make_room():
                    return self._commit(batch)
                error = no_room()
            if len(batch) > 1:
                return sum(self._commit((command,)) for command in batch)
            batch[0].error = error
            self._figures.failed(error)
            return 0
        self._link = noted.link
        self._traced.committed(noted.traced, noted.removed)
        self._taken(noted)
        return size

    def _roll_back(self) -> None:
        # A failed COMMIT may have rolled back by itself.
        if self._connection.in_transaction:
            self._guarded(lambda: self._connection.execute("ROLLBACK"), "The store could not roll back.")

    def _make_room(self) -> bool:
        """Give up what was set aside, and cut the log; whether that may have helped."""
        if not self._space.ran_out():
            return False
        complaint = "The log could not be cut."
        self._guarded(lambda: self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), complaint)
        return True

    def _tidy(self, size: int) -> None:
        # What is committed stays in the log; the next batch tries again.
        self._guarded(lambda: self._checkpointed(size), "A checkpoint failed.")
        self._guarded(lambda: self._space.wrote(size + BATCH_BYTES), "The disk could not be looked at.")

    def _checkpointed(self, size: int) -> None:
        try:
            self._checkpoints.after_batch(self._connection, size)
        except Exception as error:
            # Copying the log may have to grow the database: it may be the first to find the disk full.
            if not is_full(error):
                raise
            self._make_room()

    def _guarded(self, action: Callable[[], object], complaint: str) -> None:
        """Do what may fail without failing a command: the writer goes on."""
        try:
            action()
        except Exception:  # noqa: BLE001 - logged, and met again by the next command if it lasts
            self._figures.errors[UPKEEP] += 1
            _LOG.exception(complaint)

    def _settled(self, batch: Sequence[Command]) -> None:
        self._pending -= len(batch)
        self._settle(batch)

    def _run_inline(self) -> None:
        self._scheduled = False
        while self._queue.qsize():
            batch = self._collect()
            if batch:
                size = self._timed(batch)
                self._settled(batch)
                self._tidy(size)

    def _finish(self) -> None:
        complaint = "The store could not be closed tidily; nothing that was acknowledged is lost."
        self._guarded(self._space.end, complaint)
        self._guarded(lambda: self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall(), complaint)
        self._guarded(self._connection.close, complaint)
