"""The store on SQLite: which command goes to the writer, which question to a reader, and what is answered from memory.

    open   ──► held ─────────┐
    append ──► writer queue ─┴─► one thread, one commit per batch ─► callers, then the bus
    load, events, search … ──► readers, after a look at what is held

Everything here runs on the loop. A plain call costs two steps here and no SQL: `open` holds it, `append` queues it.
What is held was never shown as an event: `events` tells only what is on disk.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.backends.sqlite import (
    codec,
    deliveries,
    delivery_lists,
    jobs,
    listing,
    retention,
    tasks,
    usage,
)
from dragoman.backends.sqlite.agent_shelf import AgentShelf
from dragoman.backends.sqlite.backlog import backlog
from dragoman.backends.sqlite.commands import OPENED, Command, Grow, Open
from dragoman.backends.sqlite.connection import Connect, connect, number
from dragoman.backends.sqlite.file import StoreFile
from dragoman.backends.sqlite.held import Held, HeldOpenings, belongs
from dragoman.backends.sqlite.key_shelf import KeyShelf
from dragoman.backends.sqlite.lane_figures import LaneFigures
from dragoman.backends.sqlite.once import REQUEST, RecentKeys, name_of
from dragoman.backends.sqlite.record_shelf import RecordShelf
from dragoman.backends.sqlite.space import Disk, RealDisk
from dragoman.backends.sqlite.sql import SQL
from dragoman.model.errors import Conflict
from dragoman.model.events import Happened
from dragoman.model.operations import ListTasks
from dragoman.model.task import Task
from dragoman.ports.audit import Act
from dragoman.ports.bus import Bus, Grown, task_topic
from dragoman.ports.clock import Clock, SteadyClock
from dragoman.ports.deliveries import Delivery, DeliveryList, DeliveryQuery, Outcome, Pending, Receiver
from dragoman.ports.store import (
    Backlog,
    Duplicate,
    Growth,
    Job,
    Lane,
    Opened,
    Opening,
    Owner,
    Raced,
    Scope,
    TaskList,
)

FRESH_COMMIT_S: Final = 5.0
CHECK_S: Final = 2.0
DISK: Final = RealDisk()

_NO_IDS: Final = range(0)


@final
class SqliteStore(AgentShelf, KeyShelf, RecordShelf):
    """Everything durable, in one file that one process has open."""

    _loop: asyncio.AbstractEventLoop

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock,
        bus: Bus,
        hold_s: float = 0.1,
        wal_mib: float = 64,
        ballast_mib: float = 0,
        disk: Disk = DISK,
        readers: int = 2,
        connect: Connect = connect,
        inline: bool = False,
    ) -> None:
        super().__init__(clock=clock, bus=bus)
        self._steady = SteadyClock(clock)  # for what expires or falls due
        self._held = HeldOpenings(clock, hold_s, self._write_opening)
        self._recent = RecentKeys(self._steady.now)
        self.lane_figures: Final = LaneFigures(clock.monotonic)
        self._next_task = 1
        self._next_job = jobs.OTHER_JOBS
        self._last_commit: float | None = None
        self._open_file = partial(
            StoreFile,
            path,
            connect=connect,
            now=self._now,
            steady=self._steady_now,
            monotonic=clock.monotonic,
            settle=self._settle,
            held=self._held.__len__,
            taken=self._taken.add,
            wal_mib=wal_mib,
            ballast_mib=ballast_mib,
            disk=disk,
            figures=self.lane_figures,
            readers=readers,
            inline=inline,
        )

    # Life

    async def start(self) -> None:
        """Open the file and bring its schema up to date. Raises StoreInUse when another process has it open."""
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[Opened | Duplicate] = self._loop.create_future()
        self._opened.set_result(OPENED)  # for every opening that is only held: nothing is awaited for it
        self._file = self._open_file()
        connection = self._file.connection
        removed_task, removed_delivery = retention.highest_removed(connection)
        self._next_task = max(number(connection, SQL["last_task_number"]) or 0, removed_task) + 1
        self._taken.begin(connection, self._next_task - 1)
        last_job = max(number(connection, SQL[name]) or 0 for name in ("last_job_id", "last_delivery_id"))
        last_job = max(last_job, removed_delivery)
        self._next_job = max(last_job + 1, jobs.OTHER_JOBS)
        await self._file.seen.read()

    async def check(self) -> bool:
        """Whether a commit went through within the last seconds; tries one where none was due."""
        if self._last_commit is not None and self._clock.monotonic() - self._last_commit < FRESH_COMMIT_S:
            return True
        now = self._now()
        try:
            async with asyncio.timeout(CHECK_S):
                await self._file.write(lambda connection: connection.execute(SQL["pulse"], (now,)).fetchall())
        except Exception:  # noqa: BLE001 - whatever it is, the store does not write
            return False
        return True

    def lane(self) -> Lane:
        """What waits to be written, and whether there is room for new things."""
        writer = self._file.writer
        return Lane(waiting=writer.pending, submitted=writer.submitted, full=self._file.space.full)

    def log_bytes(self) -> int:
        """How large the write-ahead log is."""
        return self._file.log_bytes()

    async def backlog(self) -> Backlog:
        """What waits in the store."""
        now = self._now()
        return await self._file.read(lambda connection: backlog(connection, now))

    async def close(self) -> None:
        """Write what is held and queued, leave the file tidy."""
        try:
            await self._write_held(None)
        finally:
            self._held.stop()
            await self._file.close()

    # Tasks

    def open(self, opening: Opening) -> asyncio.Future[Opened | Duplicate]:
        """Open a task, or find the one its key names. A plain opening is held, not written.

        A request id is matched with recent ones only, so that nothing is awaited for it; `find_once` knows the others.
        """
        once, task = opening.once, opening.task
        if once is not None:
            known = self._recent.find(name_of(task.tenant, once))
            if known is not None and known[0] != task.id:
                found: asyncio.Future[Opened | Duplicate] = self._loop.create_future()
                found.set_result(Duplicate(task_id=known[0], same=known[1] == once.digest))
                return found
        self._file.space.refuse_new()
        self._file.writer.refuse_if_full()
        task_number = self._next_task
        self._next_task = task_number + 1
        if once is not None and once.scope == REQUEST:
            # At once, not after the commit: a repeat that comes meanwhile is joined to this call.
            name = name_of(task.tenant, once)
            self._recent.remember(name, once, task.id)
            self._file.seen.add(name, once.expires_at)
        if opening.alias is not None:
            self._recent.remember(name_of(task.tenant, opening.alias), opening.alias, task.id)
        if opening.durable or (once is not None and once.scope != REQUEST):
            future: asyncio.Future[Opened | Duplicate] = self._loop.create_future()
            self._file.writer.submit(Open(Held(opening, task_number, 0.0, True), future))
            return future
        self._held.hold(opening, task_number)
        return self._opened

    def append(self, growth: Growth) -> asyncio.Future[Raced | None]:
        """Write a step of a task; returns when it is on disk (None), or what came first.

        Raises TaskNotFound for an unknown task, Conflict beyond 1,048,575 events.
        """
        if growth.after + len(growth.events) > codec.MAX_SEQ:
            raise Conflict(f"A task has at most {codec.MAX_SEQ} events.", task_id=growth.task.id)
        writer = self._file.writer
        writer.refuse_if_full()
        future: asyncio.Future[Raced | None] = self._loop.create_future()
        held = self._held.take(growth.task.id)
        if held is not None and growth.after != held.opening.task.last_seq:
            held.writing = False
            future.set_result(Raced(task=held.opening.task))
            return future
        job_ids = self._job_ids(len(growth.jobs)) if growth.jobs else _NO_IDS
        writer.submit(Grow(growth, held, job_ids, future))
        return future

    async def load(self, scope: Scope, task_id: str) -> Task | None:
        """One task of that scope; what is held is found in memory, as it was opened."""
        held = self._held.find(task_id)
        if held is not None:
            return held.opening.task if belongs(held.opening.task, scope) else None
        return await self._file.read(lambda connection: tasks.load(connection, scope, task_id))

    async def events(self, task_id: str, after: int, limit: int) -> Sequence[Happened]:
        """Events after a number that are on disk, in order."""
        return await self._file.read(lambda connection: tasks.events(connection, task_id, after, limit))

    async def find_once(self, tenant: str, principal: str, scope: str, key: str) -> tuple[str, bytes] | None:
        """The task id and digest behind a key, if it has not expired."""
        name = (tenant, principal, scope, key)
        known = self._recent.find(name)
        if known is not None or (scope == REQUEST and self._file.seen.is_new(name)):
            return known
        return await self._file.lookups.find(name)

    async def context_owner(self, tenant: str, context_id: str) -> str | None:
        """Who was the first to name a conversation so; one that is held counts where none is written."""
        owner = await self._file.read(lambda connection: tasks.context_owner(connection, tenant, context_id))
        if owner is not None:
            return owner
        for held in self._held.waiting():
            task = held.opening.task
            if task.tenant == tenant and task.context_id == context_id:
                return task.caller_id
        return None

    async def last_turn(self, scope: Scope, context_id: str, agent_id: str) -> Task | None:
        """The last task of a conversation that an agent had from a caller."""
        return await self._file.read(lambda connection: tasks.last_turn(connection, scope, context_id, agent_id))

    async def list_tasks(self, scope: Scope, query: ListTasks) -> TaskList:
        """A page of the scope's tasks; those that are held are written first, so that none is missing."""
        await self._write_held(scope)
        traced = self._file.traced
        if query.trace_id is not None:
            await traced.wait()
        return await self._file.read(lambda connection: listing.list_tasks(connection, scope, query, traced.unwritten))

    async def calls_in(
        self, tenant: str, context_id: str, *, caller: str | None, since: datetime | None, most: int
    ) -> int:
        """How many calls a conversation has had, those included that are held."""
        begun = 0 if since is None else codec.to_micros(since)
        scope = Scope(tenant=tenant, principal=caller)
        held = sum(each.opening.task.context_id == context_id for each in self._held.waiting(scope))
        return held + await self._file.read(
            lambda connection: usage.calls_in(connection, tenant, context_id, caller, begun, most)
        )

    # Jobs

    async def lease(self, queues: Sequence[str], limit: int, owner: Owner) -> Sequence[Job]:
        """Claim due jobs that nobody of a live epoch holds, by rank; each claim is attempt + 1."""
        now = self._steady_now()
        return await self._file.write(lambda connection: jobs.lease(connection, queues, limit, owner, now))

    async def finish(self, job: Job) -> bool:
        """The job is done and gone; False if it was no longer ours."""
        return await self._file.write(lambda connection: jobs.finish(connection, job))

    async def retry(self, job: Job, run_at: datetime) -> bool:
        """Give the job back for later; False if it was no longer ours."""
        due = codec.to_micros(run_at)
        return await self._file.write(lambda connection: jobs.retry(connection, job, due))

    async def next_due(self, queue: str) -> datetime | None:
        """When the next sleeping job of this queue falls due, if one sleeps."""
        due = await self._file.read(lambda connection: number(connection, SQL["next_due"], (queue,)))
        return None if due is None else codec.from_micros(due)

    async def begin_epoch(self, replica: str) -> Owner:
        """A new life of a replica: what its earlier lives held may be claimed."""
        return await self._file.write(lambda connection: jobs.begin_epoch(connection, replica))

    # Deliveries

    async def pending(self, job: Job) -> Pending | None:
        """The notice that a job is to deliver; None if it is none."""
        return await self._file.read(lambda connection: delivery_lists.pending(connection, job))

    async def receiver(self, tenant: str, url: str) -> Receiver | None:
        """What is held against an address, if anything."""
        return await self._file.read(lambda connection: delivery_lists.receiver(connection, tenant, url))

    async def attempted(self, job: Job, outcome: Outcome | None) -> bool:
        """Note what a notice has come to and let its line go on; False if the job was no longer ours."""
        return await self._file.write(lambda connection: deliveries.attempted(connection, job, outcome))

    async def list_deliveries(self, scope: Scope, query: DeliveryQuery) -> DeliveryList:
        """A page of the scope's deliveries. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: delivery_lists.list_deliveries(connection, scope, query))

    async def replay(self, scope: Scope, ids: Sequence[str], act: Act | None = None) -> Sequence[Delivery]:
        """Have these sent once more; the ones of this scope, as they stand now."""

        def noted(found: Sequence[Delivery]) -> Act | None:
            ids = " ".join(one.id for one in found)
            return None if act is None or not found else msgspec.structs.replace(act, object=ids)

        return await self._file.write(lambda connection: deliveries.replay(connection, scope, ids), noted)

    async def switch_receiver(
        self, scope: Scope, delivery_id: str, reason: str | None, at: datetime, act: Act | None = None
    ) -> Delivery | None:
        """Disable a delivery's address for a reason, or enable it; None if there is no such delivery."""
        micros = codec.to_micros(at)
        return await self._file.write(
            lambda connection: deliveries.switch(connection, scope, delivery_id, reason, micros),
            lambda found: None if found is None else act,
        )

    # After a commit

    def _settle(self, batch: Sequence[Command]) -> None:
        """Tell everyone who waited for a batch, then whoever listens."""
        committed = False
        for command in batch:
            committed = committed or command.error is None
            if isinstance(command, Grow):
                self._settle_growth(command)
            elif isinstance(command, Open):
                self._settle_opening(command)
            else:
                command.settle()
        if committed:
            self._last_commit = self._clock.monotonic()

    def _settle_growth(self, command: Grow) -> None:
        held = command.held
        future = command.future
        if command.error is not None:
            if held is not None:
                self._held.failed(held)
            if not future.done():
                future.set_exception(command.error)
            return
        if held is not None:
            self._held.written(held)
        if not future.done():
            future.set_result(command.outcome)
        if command.outcome is None:
            growth = command.growth
            topic = task_topic(growth.task.id)
            if self._bus.wants(topic):
                happened = codec.numbered(growth.events, growth.after)
                self._tell_events(topic, growth.task, happened, first=held is not None)

    def _settle_opening(self, command: Open) -> None:
        held, future = command.held, command.future
        task, once = held.opening.task, held.opening.once
        if command.error is not None:
            if self._held.find(task.id) is held:
                self._held.failed(held)
            else:
                for key in (once, held.opening.alias):
                    if key is not None:
                        self._recent.forget(name_of(task.tenant, key), task.id)
            if future is not None and not future.done():
                future.set_exception(command.error)
            return
        self._held.written(held)
        if command.outcome is OPENED:
            if once is not None:
                self._recent.remember(name_of(task.tenant, once), once, task.id)
            topic = task_topic(task.id)
            if self._bus.wants(topic):
                self._tell_events(topic, task, [], first=True)
        if future is not None and not future.done():
            future.set_result(command.outcome)

    def _tell_events(self, topic: str, task: Task, happened: list[Happened], *, first: bool) -> None:
        if first:
            happened.insert(0, Happened(seq=1, event=codec.first_event(task)))
        self._bus.publish(topic, Grown(task=task, happened=happened))

    # What is held

    def _write_opening(self, held: Held) -> None:
        self._file.writer.submit(Open(held))

    async def _write_held(self, scope: Scope | None) -> None:
        waiting: list[asyncio.Future[Opened | Duplicate]] = []
        for held in self._held.waiting(scope):
            held.writing = True
            future: asyncio.Future[Opened | Duplicate] = self._loop.create_future()
            self._file.writer.submit(Open(held, future))
            waiting.append(future)
        for future in waiting:
            await future

    def _job_ids(self, count: int) -> range:
        first = self._next_job
        self._next_job = first + count
        return range(first, self._next_job)

    def _steady_now(self) -> int:
        return codec.to_micros(self._steady.now())
