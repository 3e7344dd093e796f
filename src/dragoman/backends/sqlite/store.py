"""The store on SQLite: which command goes to the writer, which question to a reader, and what is answered from memory.

    open   ──► held ─────────┐
    append ──► writer queue ─┴─► one thread, one commit per batch ─► callers, then the bus
    load, events, search … ──► readers, after a look at what is held

Everything here runs on the loop. A plain call costs two steps here and no SQL: `open` holds it, `append` queues it.
What is held was never shown as an event: `events` tells only what is on disk.
"""

import asyncio
from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.backends.sqlite import (
    agents,
    audit_check,
    audit_rows,
    audit_trim,
    codec,
    deliveries,
    delivery_lists,
    durations,
    forgetting,
    jobs,
    keys,
    listing,
    mail,
    minutes,
    minutes_kept,
    ratings,
    retention,
    search,
    signatures,
    tasks,
    usage,
)
from dragoman.backends.sqlite.backlog import backlog
from dragoman.backends.sqlite.commands import OPENED, Command, Grow, Open
from dragoman.backends.sqlite.connection import Connect, Connection, connect, number
from dragoman.backends.sqlite.file import StoreFile
from dragoman.backends.sqlite.held import Held, HeldOpenings, belongs
from dragoman.backends.sqlite.lane_figures import LaneFigures
from dragoman.backends.sqlite.once import REQUEST, RecentKeys, name_of
from dragoman.backends.sqlite.space import Disk, RealDisk
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.taken import TakenByTenants
from dragoman.model.agent import Agent, AgentStatus, RateLimits
from dragoman.model.budget import Budget
from dragoman.model.errors import Conflict, RateLimited
from dragoman.model.events import Happened
from dragoman.model.operations import Discover, ListTasks
from dragoman.model.task import Task
from dragoman.model.usage import Sums
from dragoman.ports.audit import Act, AuditList, AuditQuery, Checked, Head, SignedHead, Usage, Window
from dragoman.ports.bus import AGENTS_CHANGED, KEY_REVOKED, Bus, Grown, mail_topic, task_topic
from dragoman.ports.clock import Clock, SteadyClock
from dragoman.ports.deliveries import Delivery, DeliveryList, DeliveryQuery, Outcome, Pending, Receiver
from dragoman.ports.minutes import Measured, Minute, MinuteQuery
from dragoman.ports.retention import Expired, Inspected
from dragoman.ports.store import (
    AgentList,
    Backlog,
    Duplicate,
    Growth,
    Job,
    Lane,
    Mark,
    Opened,
    Opening,
    Owner,
    Raced,
    Rating,
    Registration,
    Scope,
    StoredAgent,
    StoredKey,
    Taken,
    TaskList,
    Took,
)
from dragoman.ports.usage import DayOf, UsageQuery, UsageSum

FRESH_COMMIT_S: Final = 5.0
CHECK_S: Final = 2.0
USE_NOTED_S: Final = 60.0
USES_KNOWN: Final = 10_000
DISK: Final = RealDisk()

_NO_IDS: Final = range(0)


@final
class SqliteStore:
    """Everything durable, in one file that one process has open."""

    _file: StoreFile
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
        self._clock = clock
        self._steady = SteadyClock(clock)  # for what expires or falls due
        self._bus = bus
        self._held = HeldOpenings(clock, hold_s, self._write_opening)
        self._recent = RecentKeys()
        self._uses: dict[str, datetime] = {}
        self._taken = TakenByTenants()
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
        self._file = self._open_file()
        connection = self._file.connection
        removed_task, removed_delivery = retention.highest_removed(connection)
        self._next_task = max(number(connection, SQL["last_task_number"]) or 0, removed_task) + 1
        self._taken.begin(connection, self._next_task - 1)
        last_job = max(number(connection, SQL[name]) or 0 for name in ("last_job_id", "last_delivery_id"))
        last_job = max(last_job, removed_delivery)
        self._next_job = max(last_job + 1, jobs.OTHER_JOBS)

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

    async def open(self, opening: Opening) -> Opened | Duplicate:
        """Open a task, or find the one its key names. A plain opening is held, not written.

        A request id is matched with recent ones only, so that nothing is awaited for it; `find_once` knows the others.
        """
        once = opening.once
        if once is not None:
            known = self._recent.find(name_of(opening.task.tenant, once), self._steady.now())
            if known is not None and known[0] != opening.task.id:
                return Duplicate(task_id=known[0], same=known[1] == once.digest)
        self._file.space.refuse_new()
        self._file.writer.refuse_if_full()
        task_number = self._next_task
        self._next_task = task_number + 1
        if once is not None and once.scope == REQUEST:
            # At once, not after the commit: a repeat that comes meanwhile is joined to this call.
            self._recent.remember(opening.task.tenant, once, opening.task.id)
        if opening.alias is not None:
            self._recent.remember(opening.task.tenant, opening.alias, opening.task.id)
        if opening.durable or (once is not None and once.scope != REQUEST):
            future: asyncio.Future[Opened | Duplicate] = self._loop.create_future()
            self._file.writer.submit(Open(Held(opening, task_number, 0.0, True), future))
            return await future
        self._held.hold(opening, task_number)
        return OPENED

    async def append(self, growth: Growth) -> Raced | None:
        """Write a step of a task; returns when it is on disk (None), or what came first.

        Raises TaskNotFound for an unknown task, Conflict beyond 1,048,575 events.
        """
        if growth.after + len(growth.events) > codec.MAX_SEQ:
            raise Conflict(f"A task has at most {codec.MAX_SEQ} events.", task_id=growth.task.id)
        writer = self._file.writer
        writer.refuse_if_full()
        held = self._held.take(growth.task.id)
        if held is not None and growth.after != held.opening.task.last_seq:
            held.writing = False
            return Raced(task=held.opening.task)
        future: asyncio.Future[Raced | None] = self._loop.create_future()
        job_ids = self._job_ids(len(growth.jobs)) if growth.jobs else _NO_IDS
        writer.submit(Grow(growth, held, job_ids, future))
        return await future

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
        now = self._steady.now()
        name = (tenant, principal, scope, key)
        known = self._recent.find(name, now)
        if known is not None:
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
        return await self._file.read(lambda connection: listing.list_tasks(connection, scope, query))

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

    async def next_due(self) -> datetime | None:
        """When the next sleeping job falls due, if one sleeps."""
        due = await self._file.read(lambda connection: number(connection, SQL["next_due"]))
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

    # Mail

    async def put_mail(self, tenant: str, box: str, body: bytes) -> None:
        """Keep a message until it has been fetched."""
        now = self._now()
        await self._file.write(lambda connection: mail.put(connection, tenant, box, body, now))
        self._bus.publish(mail_topic(tenant, box), b"")

    async def read_mail(self, tenant: str, box: str, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        """What waits in a box, numbered, oldest first; what came up to `after` has arrived and goes."""
        if after > 0:
            await self._file.write(lambda connection: mail.drop(connection, tenant, box, after))
        return await self._file.read(lambda connection: mail.waiting(connection, tenant, box, limit))

    async def next_mail(self, tenant: str, box: str, after: int) -> tuple[int, bytes] | None:
        """The oldest message of a box beyond a number, with its own."""
        return await self._file.read(lambda connection: mail.beyond(connection, tenant, box, after))

    async def drop_mail(self, tenant: str, box: str, numbers: Collection[int]) -> None:
        """These have arrived and go."""
        await self._file.write(lambda connection: mail.drop_these(connection, tenant, box, numbers))

    # Agents

    async def register(self, registration: Registration) -> StoredAgent | Taken:
        """Put an agent in, or replace its card: the owner's alone. Every card version stays readable.

        Raises RateLimited where its tenant has as many agents as it may.
        """
        self._file.space.refuse_new()
        agent, act = registration.agent, registration.act

        def noted(stored: StoredAgent | Taken | agents.Full) -> Act | None:
            if act is None or not isinstance(stored, StoredAgent):
                return None
            return msgspec.structs.replace(act, outcome="created" if stored.created else "changed")

        stored = await self._file.write(lambda connection: agents.register(connection, agent, registration.most), noted)
        if isinstance(stored, agents.Full):
            raise RateLimited(
                f"The tenant {agent.tenant} has {stored.most} agents, as many as it may.",
                reason="quota",
                quota="agents",
                limit=stored.most,
            )
        if isinstance(stored, StoredAgent):
            self._tell_agent(agent.tenant, agent.id)
        return stored

    async def find_agent(
        self, tenant: str, name: str, version: str | None = None, *, removed: bool = False
    ) -> Agent | None:
        """An agent by id, UUID or alias, with its current card or the one of that version; `removed`: its tombstone."""
        return await self._file.read(lambda connection: agents.find(connection, tenant, name, version, removed=removed))

    async def versions(self, tenant: str, agent_id: str) -> Sequence[str]:
        """The versions its card has had, newest first."""
        return await self._file.read(lambda connection: agents.versions(connection, tenant, agent_id))

    async def search(self, scope: Scope, query: Discover) -> AgentList:
        """Agents that match, best rating first. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: search.search(connection, scope, query))

    async def change_agent(
        self,
        tenant: str,
        agent_id: str,
        status: AgentStatus | None,
        open_: bool | None,
        private: bool | None,
        act: Act | None = None,
        limits: RateLimits | None = None,
    ) -> Agent | None:
        """Change how an agent stands; None if there is none. Empty limits take away those that were set."""

        def change(connection: Connection) -> Agent | None:
            return agents.change(connection, tenant, agent_id, status, open_, private, limits)

        agent = await self._file.write(change, lambda changed: None if changed is None else act)
        if agent is not None:
            self._tell_agent(tenant, agent_id)
        return agent

    async def agents_to_check(self, after: int, limit: int) -> Sequence[tuple[int, Agent]]:
        """Agents of all tenants that may be called, or might again, after a number, each with its own."""
        return await self._file.read(lambda connection: agents.to_check(connection, after, limit))

    # Keys and sealed values

    async def add_key(self, key: StoredKey, act: Act | None = None) -> None:
        """Keep a new key."""
        self._file.space.refuse_new()
        await self._file.write(lambda connection: keys.add_key(connection, key), lambda _: act)

    async def find_key(self, key_id: str) -> StoredKey | None:
        """One key, revoked and expired ones included."""
        return await self._file.read(lambda connection: keys.find_key(connection, key_id))

    async def list_keys(self, tenant: str | None) -> Sequence[StoredKey]:
        """A tenant's keys, or all, newest first."""
        return await self._file.read(lambda connection: keys.list_keys(connection, tenant))

    async def revoke_key(self, key_id: str, at: datetime, act: Act | None = None) -> bool:
        """End a key from that time on; False if there is none."""
        known = await self._file.write(
            lambda connection: keys.revoke_key(connection, key_id, at), lambda known: act if known else None
        )
        if known:
            self._bus.publish(KEY_REVOKED, key_id.encode())
        return known

    async def change_key(
        self, key_id: str, limits: RateLimits | None, budget: Budget | None, act: Act | None = None
    ) -> bool:
        """Set how often a key may call and what it may spend; False if there is none."""
        known = await self._file.write(
            lambda connection: keys.change_key(connection, key_id, limits, budget), lambda known: act if known else None
        )
        if known:
            self._bus.publish(KEY_REVOKED, key_id.encode())  # What is remembered of it holds no longer.
        return known

    async def key_used(self, key_id: str, at: datetime) -> None:
        """Note that a key was used; at most once a minute each."""
        last = self._uses.get(key_id)
        if last is not None and (at - last).total_seconds() < USE_NOTED_S:
            return
        if len(self._uses) >= USES_KNOWN:
            self._uses.clear()
        self._uses[key_id] = at
        await self._file.write(lambda connection: keys.key_used(connection, key_id, at))

    async def put_sealed(self, name: str, sealed: bytes) -> None:
        """Keep a sealed value, replacing what was there."""
        await self._file.write(lambda connection: keys.put_sealed(connection, name, sealed))

    async def get_sealed(self, name: str) -> bytes | None:
        """A sealed value, if there is one."""
        return await self._file.read(lambda connection: keys.get_sealed(connection, name))

    async def see(self, marks: Sequence[Mark]) -> bool:
        """Whether none of these marks was seen before; when that is told, all of them are on disk."""
        now = self._now()
        return await self._file.write(lambda connection: signatures.see(connection, marks, now))

    # Durations

    async def put_took(self, histories: Sequence[Took]) -> None:
        """Keep these histories, each in place of the one that was there."""
        await self._file.write(lambda connection: durations.put(connection, histories))

    async def took(self, tenant: str, agent_id: str, skill: str) -> Sequence[int]:
        """The history of one skill; empty where there is none."""
        return await self._file.read(lambda connection: durations.get(connection, tenant, agent_id, skill))

    # Statistics

    async def add_minutes(self, counted: Sequence[Minute], measured: Sequence[Measured]) -> Sequence[Agent]:
        """Add what was counted, and let agents stand by what was measured; those that stand differently now."""
        return await self._file.write(lambda connection: minutes.add(connection, counted, measured))

    async def minutes(self, query: MinuteQuery) -> Sequence[Minute]:
        """What was counted, added up."""
        return await self._file.read(lambda connection: minutes.read(connection, query))

    # Usage

    async def add_usage(self, days: Sequence[tuple[DayOf, Sums]], at: datetime) -> None:
        """Add to the sums; all calls that ended before are counted with it."""
        await self._file.rewrite(lambda connection, noted: usage.add(connection, noted, days, codec.to_micros(at)))

    async def uncounted(self, before: datetime) -> Sequence[Task] | None:
        """The calls that ended after sums were last added to, and before a time; None where that never was."""
        return await self._file.read(lambda connection: usage.uncounted(connection, codec.to_micros(before)))

    async def spent_on(self, day: int, tenant: str, caller: str) -> Sums:
        """What one caller used up on a day, as far as it was added."""
        return await self._file.read(lambda connection: usage.spent_on(connection, day, tenant, caller))

    async def usage_by(self, query: UsageQuery) -> Sequence[UsageSum]:
        """The sums that were asked for, in no order."""
        return await self._file.read(lambda connection: usage.by(connection, query))

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

    async def spent_in(self, tenant: str, context_id: str, caller: str) -> Sums:
        """What a caller's calls in one conversation used up."""
        return await self._file.read(lambda connection: usage.spent_in(connection, tenant, context_id, caller))

    async def below(self, task_id: str, most: int) -> Sequence[Task]:
        """The calls that belong to one, up to a number."""
        return await self._file.read(lambda connection: usage.children(connection, task_id, most))

    # Ratings

    async def rate(self, rating: Rating) -> Agent | None:
        """Keep a rating in place of the call's earlier one; the agent as it is rated now, None if there is none."""
        found = await self._file.write(lambda connection: ratings.rate(connection, rating))
        if found is None:
            return None
        agent, changed = found
        if changed:
            self._tell_agent(agent.tenant, agent.id)
        return agent

    # Audit and housekeeping

    async def note(self, act: Act) -> None:
        """Note an act that writes nothing else."""
        await self._file.write(lambda _: None, lambda _: act)

    async def list_audit(self, query: AuditQuery) -> AuditList:
        """A page of rows. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: audit_rows.listed(connection, query))

    async def check_audit(self, window: Window) -> Checked:
        """Check the next piece of the chain and of what it covers. Raises BadParams for a malformed cursor."""
        return await self._file.read(lambda connection: audit_check.check(connection, window))

    async def audit_head(self) -> Head:
        """The chain's last row."""
        return await self._file.read(audit_rows.head)

    async def keep_head(self, head: SignedHead) -> None:
        """Keep a signed head."""
        await self._file.write(lambda connection: audit_rows.keep_head(connection, head))

    async def signed_heads(self, limit: int) -> Sequence[tuple[SignedHead, str | None]]:
        """The newest signed heads, each with the hash that its row has now."""
        return await self._file.read(lambda connection: audit_rows.signed_heads(connection, limit))

    async def forget(self, scope: Scope, ids: Sequence[str], act: Act | None = None) -> Sequence[str]:
        """Remove what was written in these calls of the scope; those that are open are left out."""
        now = self._now()

        def noted(forgotten: Sequence[str]) -> Act | None:
            outcome = f"{len(forgotten)} forgotten"
            return None if act is None or not forgotten else msgspec.structs.replace(act, outcome=outcome)

        return await self._file.rewrite(
            lambda connection, audit: forgetting.forget(connection, audit, scope, ids, now), noted
        )

    async def expire_calls(self, before: datetime, after: int) -> Expired:
        """Remove the next calls that ended before that time."""
        micros, now = codec.to_micros(before), self._now()
        step = partial(retention.expire_calls, before=micros, now=now, after=after, monotonic=self._clock.monotonic)
        return await self._file.rewrite(partial(step, counted=self._taken.counts))

    async def expire_audit(self, before: datetime) -> Expired:
        """Remove the next of the oldest rows of the audit, if they are from before that time."""
        micros = codec.to_micros(before)
        return await self._file.rewrite(partial(audit_trim.expire, before=micros, monotonic=self._clock.monotonic))

    async def expire_minutes(self, fold_before: datetime, drop_before: datetime, after: int) -> Expired:
        """Add old statistics up to hours, and drop the oldest."""
        fold, drop = (int(at.timestamp()) // 60 for at in (fold_before, drop_before))
        step = partial(minutes_kept.expire, fold_before=fold, drop_before=drop, monotonic=self._clock.monotonic)
        return await self._file.write(partial(step, after=after))

    async def expire_rest(self, now: datetime, mail_before: datetime | None) -> Expired:
        """Remove some of the keys, marks, messages and left events whose time is over."""
        step = partial(
            retention.expire_rest,
            now=codec.to_micros(now),
            mail_before=None if mail_before is None else codec.to_micros(mail_before),
            monotonic=self._clock.monotonic,
        )
        return await self._file.write(step)

    def left_open(self) -> bool:
        """Whether the process that had the file before ended without closing it."""
        return self._file.left_open

    async def inspect(self, *, quick: bool) -> Inspected:
        """Look at the whole file, beside everything else."""
        return await self._file.inspect(quick=quick)

    async def usage(self) -> Usage:
        """What each tenant takes now; stored bytes are counted piece by piece after the start."""
        while not self._taken.whole:
            await self._file.read(self._taken.count)
        return self._taken.usage()

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
                        self._recent.forget(task.tenant, key, task.id)
            if future is not None and not future.done():
                future.set_exception(command.error)
            return
        self._held.written(held)
        if command.outcome is OPENED:
            if once is not None:
                self._recent.remember(task.tenant, once, task.id)
            topic = task_topic(task.id)
            if self._bus.wants(topic):
                self._tell_events(topic, task, [], first=True)
        if future is not None and not future.done():
            future.set_result(command.outcome)

    def _tell_events(self, topic: str, task: Task, happened: list[Happened], *, first: bool) -> None:
        if first:
            happened.insert(0, Happened(seq=1, event=codec.first_event(task)))
        self._bus.publish(topic, Grown(task=task, happened=happened))

    def _tell_agent(self, tenant: str, agent_id: str) -> None:
        self._bus.publish(AGENTS_CHANGED, f"{tenant}\n{agent_id}".encode())

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

    def _now(self) -> int:
        return codec.to_micros(self._clock.now())

    def _steady_now(self) -> int:
        return codec.to_micros(self._steady.now())
