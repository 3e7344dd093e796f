"""Power cuts: a disk that forgets what was not synced, beneath the real store.

kill -9 cannot show a missing sync: the system still writes what it was given. Here every file is remembered as it was
at its last sync, with the writes since. At random moments of writing, a cut: each file gets none, all, half, or half
torn at sectors, of its later writes, and what then lies there must hold everything that was acknowledged before.

    store ── apsw ── VFS ──► the real file (so that the store goes on)
                      └────► Disk: bytes at the last sync + writes since ──cut──► a copy, checked with plain sqlite3

Outside the model: directory entries count as durable at once. The shared-memory index is left out, as a restart would.
"""

import asyncio
import itertools
import random
import shutil
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

import apsw
import msgspec

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore, codec
from dragoman.backends.sqlite.connection import Connection, Parameters, Rows
from dragoman.backends.sqlite.delivery_lists import STATE
from dragoman.model.task import Task
from dragoman.ports.deliveries import DeliveryState, NewNotice, Outcome
from dragoman.ports.store import CALLBACKS, NewJob, Owner, Registration, Store
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import chunk, completed, new_agent, new_task, once, opening, step
from tests.support.torn_disk import Disk, Write

CHANCE: Final = 0.12
CUTS_PER_DATABASE: Final = 200
CALLERS: Final = 4
RECEIVER: Final = "https://caller.example/told"
WAL_MIB: Final = 0.8  # checkpoints begin at a quarter of it: every 50 pages

_names = itertools.count()


class Report(msgspec.Struct, kw_only=True):
    """What a run did and found; `found` describes each cut that broke a promise."""

    seed: int
    cuts: int = 0
    in_checkpoint: int = 0
    acknowledged: int = 0
    streamed: int = 0  # events
    delivered: int = 0  # callbacks
    found: list[str] = msgspec.field(default_factory=list[str])


class PowerCuts:
    """One database under a workload that is cut again and again; every cut is checked at once."""

    def __init__(self, folder: Path, report: Report, cuts: int, synchronous: str) -> None:
        self._folder = folder
        self._report = report
        self._cuts_left = cuts
        self._synchronous = synchronous
        self._chance = random.Random(f"{report.seed} {report.cuts}")
        self.disk = Disk(self._chance)
        self._acknowledged: dict[str, Task] = {}
        self._keyed: set[str] = set()
        self._said: dict[str, list[bytes]] = {}  # of streams: the events from the second on
        self._owed: set[str] = set()
        self._delivered: set[str] = set()
        self._sealed: set[str] = set()

    def maybe_cut(self, name: str) -> None:
        """Perhaps the power fails now."""
        if self._cuts_left <= 0 or self._chance.random() >= CHANCE:
            return
        self._cuts_left -= 1
        self._report.cuts += 1
        self._report.in_checkpoint += name.endswith(".db")
        fault = self._fault()
        if fault is not None:
            self._report.found.append(f"cut {self._report.cuts} of seed {self._report.seed}: {fault}")

    async def work(self) -> None:
        """Drive a store until all cuts are made."""
        name = f"powercut-{next(_names)}"
        vfs = _Vfs(name, self)
        clock = ManualClock()
        store = SqliteStore(
            self._folder / "hub.db",
            clock=clock,
            bus=LocalBus(),
            wal_mib=WAL_MIB,
            inline=True,
            connect=lambda path: _Planted(apsw.Connection(str(path), vfs=name), self._synchronous),
        )
        await store.start()
        owner = await store.begin_epoch("hub")
        async with asyncio.TaskGroup() as group:
            for _ in range(CALLERS):
                group.create_task(self._caller(store, clock, owner))
        await store.close()
        vfs.unregister()

    async def _caller(self, store: Store, clock: ManualClock, owner: Owner) -> None:
        while self._cuts_left > 0:
            match self._chance.randrange(10):
                case 0 | 1:
                    await self._quick_call(store, clock)
                case 2 | 3:
                    await self._long_call(store, clock)
                case 4 | 5:
                    await self._streamed_call(store, clock)
                case 6 | 7:
                    await self._deliver(store, clock, owner)
                case 8:
                    name = clock.new_id("secret_")
                    await store.put_sealed(name, b"sealed")
                    self._sealed.add(name)
                case _:
                    agent = new_agent(clock, f"agent-{self._chance.randrange(20)}", skills=["s"], tags=["t"])
                    await store.register(Registration(agent=agent))

    async def _quick_call(self, store: Store, clock: ManualClock) -> None:
        task = new_task(clock)
        await store.open(opening(task))
        await self._end(store, clock, task)

    async def _long_call(self, store: Store, clock: ManualClock) -> None:
        task = new_task(clock)
        await store.open(opening(task, once=once(clock, task.id)))
        self._keyed.add(task.id)
        self._acknowledged[task.id] = task
        for word in range(self._chance.randrange(3)):
            growth = step(task, chunk(clock, f"word {word}"))
            await store.append(growth)
            task = self._acknowledged[task.id] = growth.task
        await self._end(store, clock, task)

    async def _streamed_call(self, store: Store, clock: ManualClock) -> None:
        """Accepted, for a worker; then told piece by piece, those that gathered together."""
        task = new_task(clock)
        await store.open(opening(task, durable=True))
        self._acknowledged[task.id] = task
        self._said[task.id] = []
        for piece in range(self._chance.randrange(2, 8)):
            chunks = [chunk(clock, f"piece {piece}.{each}") for each in range(self._chance.randrange(1, 5))]
            growth = step(task, *chunks)
            await store.append(growth)
            task = self._acknowledged[task.id] = growth.task
            self._said[task.id] += map(codec.pack_event, chunks)
            self._report.streamed += len(chunks)
        await self._end(store, clock, task)

    async def _deliver(self, store: Store, clock: ManualClock, owner: Owner) -> None:
        for job in await store.lease((CALLBACKS,), 1, owner):
            assert await store.attempted(job, Outcome(state=DeliveryState.DELIVERED, at=clock.now(), url=RECEIVER))
            self._delivered.add(job.task_id)
            self._report.delivered += 1

    async def _end(self, store: Store, clock: ManualClock, task: Task) -> None:
        notice = NewNotice(callback_id="caller", seq=task.last_seq + 1, url=RECEIVER)
        growth = step(task, completed(clock), jobs=[NewJob(queue=CALLBACKS, notice=notice)])
        await store.append(growth)
        self._acknowledged[task.id] = growth.task
        self._owed.add(task.id)
        self._report.acknowledged += 1

    def _fault(self) -> str | None:
        """What is wrong with the files as the cut left them; None if every promise was kept."""
        place = self._folder / "cut"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        self.disk.after_cut(place)
        if not self._acknowledged:
            return None
        try:
            with closing(sqlite3.connect(place / "hub.db")) as found:
                return self._missing(found)
        except sqlite3.DatabaseError as error:
            return f"unreadable: {error}"

    def _missing(self, found: sqlite3.Connection) -> str | None:
        found.execute("PRAGMA synchronous=OFF")  # of the copy, which is looked at once and thrown away
        if found.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            return "corrupt"
        events = dict(found.execute("SELECT key >> 20, count(*) FROM event GROUP BY 1").fetchall())
        rows = {row[1]: row for row in found.execute("SELECT number, id, last_seq, state, log IS NOT NULL FROM task")}
        for task_id, task in self._acknowledged.items():
            if task_id not in rows:
                return f"task {task_id} is lost"
            number, _, last_seq, state, quick = rows[task_id]
            if last_seq < task.last_seq or (task.ended and state < 4):
                return f"a step of {task_id} is lost"
            if not quick and events.get(number) != last_seq:
                return f"{task_id} has {events.get(number)} events of {last_seq}"
        if lost := self._keyed - {row[0] for row in found.execute("SELECT task FROM idem")}:
            return f"the keys of {sorted(lost)} are lost"
        if lost := self._sealed - {row[0] for row in found.execute("SELECT name FROM sealed")}:
            return f"the sealed values {sorted(lost)} are lost"
        numbers = {task_id: row[0] for task_id, row in rows.items()}
        return self._unsaid(found, numbers) or self._undelivered(found, numbers)

    def _unsaid(self, found: sqlite3.Connection, numbers: dict[str, int]) -> str | None:
        """What is wrong with the events of streams, each of which somebody may have seen."""
        written: dict[int, bytes] = dict(found.execute("SELECT key, body FROM event").fetchall())
        for task_id, said in self._said.items():
            first = (numbers[task_id] << codec.SEQ_BITS) + 2
            if any(written.get(key) != body for key, body in enumerate(said, first)):
                return f"events of {task_id} are lost, or are others"
        return None

    def _undelivered(self, found: sqlite3.Connection, numbers: dict[str, int]) -> str | None:
        """What is wrong with the callbacks: each waits, as a job, or was delivered, and stays so."""
        states: dict[int, int] = dict(found.execute("SELECT task, state FROM delivery").fetchall())
        waiting = {row[0] for row in found.execute("SELECT task FROM job WHERE queue = ?", (CALLBACKS,))}
        delivered = STATE[DeliveryState.DELIVERED]
        for task_id in self._owed:
            number = numbers[task_id]
            if number not in states or (states[number] != delivered and number not in waiting):
                return f"the callback of {task_id} is lost"
        if lost := {task_id for task_id in self._delivered if states.get(numbers[task_id]) != delivered}:
            return f"that callbacks of {sorted(lost)} were delivered is lost"
        return None


class _Planted:
    """A connection on which commits are as durable as the test says, whatever the store asks for."""

    def __init__(self, connection: Connection, synchronous: str) -> None:
        self._connection = connection
        self._synchronous = synchronous

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        if sql == "PRAGMA synchronous=FULL":
            sql = f"PRAGMA synchronous={self._synchronous}"
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        return self._connection.executemany(sql, parameters)

    def close(self) -> None:
        self._connection.close()


class _Vfs(apsw.VFS):
    def __init__(self, name: str, cuts: PowerCuts) -> None:
        self._cuts = cuts
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _VfsFile(name, flags, self._cuts)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802 - SQLite's name
        super().xDelete(filename, syncdir)
        self._cuts.disk.deleted(filename)


class _VfsFile(apsw.VFSFile):
    def __init__(self, name: str | apsw.URIFilename | None, flags: list[int], cuts: PowerCuts) -> None:
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        self._cuts = cuts
        super().__init__("", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType] - its Buffer is of Python 3.12
        self._cuts.disk.wrote(self._name, Write(offset, bytes(data)))
        self._cuts.maybe_cut(self._name)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        super().xTruncate(newsize)
        self._cuts.disk.wrote(self._name, Write(newsize, None))

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        # The real disk is not asked: only the remembered one is looked at after a cut.
        self._cuts.maybe_cut(self._name)
        self._cuts.disk.synced(self._name)
        self._cuts.maybe_cut(self._name)


def cut_power(folder: Path, *, cuts: int, seed: int, synchronous: str = "FULL") -> Report:
    """So many cuts, a new database every 200. `synchronous` other than FULL plants the bug this exists to find."""
    report = Report(seed=seed)
    while report.cuts < cuts:
        place = folder / f"from-{report.cuts}"
        place.mkdir(parents=True)
        wanted = min(CUTS_PER_DATABASE, cuts - report.cuts)
        asyncio.run(PowerCuts(place, report, wanted, synchronous).work())
        shutil.rmtree(place)
    return report
