"""The open file: its lock, its connections, the writer and the readers on them. Knows nothing of what is stored."""

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TypeVar, final

from dragoman.backends.sqlite import audit, schema
from dragoman.backends.sqlite.audit import Noted
from dragoman.backends.sqlite.checkpoint import MIB, Checkpoints
from dragoman.backends.sqlite.commands import Command, Step
from dragoman.backends.sqlite.connection import Connect, Connection, prepare
from dragoman.backends.sqlite.inspect_file import Inspector
from dragoman.backends.sqlite.lane_figures import LaneFigures
from dragoman.backends.sqlite.lock import FileLock
from dragoman.backends.sqlite.lookups import Lookups
from dragoman.backends.sqlite.readers import Readers
from dragoman.backends.sqlite.seen import SeenIds
from dragoman.backends.sqlite.space import Disk, Space
from dragoman.backends.sqlite.traced import TracedCalls
from dragoman.backends.sqlite.writer import Writer
from dragoman.ports.audit import Act
from dragoman.ports.retention import Inspected

T = TypeVar("T")


@final
class StoreFile:
    """A file that this process, and no other, has open."""

    __slots__ = (
        "_checkpoints",
        "_inspector",
        "_lock",
        "_loop",
        "_readers",
        "connection",
        "left_open",
        "log_bytes",
        "lookups",
        "seen",
        "space",
        "traced",
        "writer",
    )

    def __init__(
        self,
        path: Path,
        *,
        connect: Connect,
        now: Callable[[], int],
        steady: Callable[[], int],
        monotonic: Callable[[], float],
        settle: Callable[[Sequence[Command]], None],
        held: Callable[[], int],
        taken: Callable[[Noted], None],
        wal_mib: float,
        ballast_mib: float,
        disk: Disk,
        figures: LaneFigures,
        readers: int,
        inline: bool,
    ) -> None:
        """Lock it, open it, bring its schema up to date. Raises StoreInUse, SchemaTooNew."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = FileLock(path)
        self._lock.acquire()
        # Who ends properly takes the log away.
        self.left_open = path.with_name(path.name + "-wal").exists()
        with ExitStack() as undo:
            undo.callback(self._lock.release)

            def opened(at: Path) -> Connection:
                connection = connect(at)
                undo.callback(connection.close)
                return connection

            self.connection = _open(path, opened, now())
            self._checkpoints = Checkpoints(path, wal_mib)
            log_bytes = self._checkpoints.limit_bytes
            self.space = Space(path, log_bytes=log_bytes, ballast_bytes=int(ballast_mib * MIB), disk=disk)
            self.space.begin()
            connections = [self.connection] if inline else [_reader(path, opened) for _ in range(readers)]
            if not inline:
                self._checkpoints.start(path, connect)
            undo.pop_all()
        self._inspector = Inspector(path, limit_bytes=log_bytes, monotonic=monotonic)
        self._loop = asyncio.get_running_loop()
        self._readers = Readers(connections, threads=not inline)
        self.lookups = Lookups(self._readers.ask, steady)
        self.seen = SeenIds(self._readers.ask, steady)
        self.log_bytes = self._checkpoints.log_bytes
        self.traced = TracedCalls(self.connection)
        self.traced.read(self._readers.ask)
        self.writer = Writer(
            self.connection,
            self._checkpoints,
            now,
            steady,
            settle,
            held,
            taken,
            self.space,
            figures,
            self.traced,
            inline=inline,
        )

    async def write(self, run: Callable[[Connection], T], act: Callable[[T], Act | None] | None = None) -> T:
        """What the function returns, once all it wrote is on disk; with the act that it was, by what came of it."""
        return await self.rewrite(lambda connection, _: run(connection), act)

    async def rewrite(self, run: Callable[[Connection, Noted], T], act: Callable[[T], Act | None] | None = None) -> T:
        """The same for a function that changes what is stored of calls, and tells the audit so."""
        self.writer.refuse_if_full()
        future: asyncio.Future[T] = self._loop.create_future()
        self.writer.submit(Step(run, future, act))
        return await future

    async def read(self, run: Callable[[Connection], T]) -> T:
        """What the function finds in the last commit."""
        return await self._readers.read(run)

    async def inspect(self, *, quick: bool) -> Inspected:
        """Look at the whole file, on a thread that nobody waits for."""
        looked: asyncio.Future[Inspected] = self._loop.create_future()

        def tell(found: Inspected) -> None:
            if not looked.done():
                looked.set_result(found)

        def look() -> None:
            self._loop.call_soon_threadsafe(tell, self._inspector.look(quick=quick))

        threading.Thread(target=look, name="store-inspector", daemon=True).start()
        return await looked

    async def close(self) -> None:
        """Write all that was taken, copy the log into the database, let go of the file."""
        await self._loop.run_in_executor(None, self._inspector.stop)
        await self._readers.stop()
        self._checkpoints.stop()
        await self.writer.stop()
        self._lock.release()


def _open(path: Path, connect: Connect, now: int) -> Connection:
    # Made before SQLite does: its log and index files take their mode from it.
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = connect(path)
    prepare(connection, reads_only=False)
    schema.migrate(connection, schema.migrations(), now)
    audit.begin(connection, now)
    return connection


def _reader(path: Path, connect: Connect) -> Connection:
    connection = connect(path)
    prepare(connection, reads_only=True)
    return connection
