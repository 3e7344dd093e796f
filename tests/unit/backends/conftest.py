"""A store on a file that the test may look into, and connections that tell what they were asked."""

import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.backends.sqlite.connection import Connection, Parameters, Row, Rows, connect
from tests.contracts.manual_clock import ManualClock

Told = Callable[[str], object]


class Overheard:
    """A connection that tells each statement, before it runs, to a listener who may raise."""

    def __init__(self, connection: Connection, tell: Told) -> None:
        self._connection = connection
        self._tell = tell

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        self._tell(sql)
        return self._connection.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        self._tell(sql)
        return self._connection.executemany(sql, parameters)

    def close(self) -> None:
        self._connection.close()


class Statements:
    """What was run, and on which thread; `fails` makes the statements fail that contain it."""

    def __init__(self) -> None:
        self.run: list[str] = []
        self.threads: set[str] = set()
        self.checkpoints: list[tuple[str, str]] = []
        self.fails: str | None = None
        self.connections: list[Connection] = []
        self._awaited: dict[str, Told] = {}

    def on(self, part: str, tell: Told) -> None:
        """Call once, when a statement that contains the part is run."""
        self._awaited[part] = tell

    def connect(self, path: Path) -> Connection:
        connection = Overheard(connect(path), self)
        self.connections.append(connection)
        return connection

    def __call__(self, sql: str) -> None:
        self.run.append(sql)
        self.threads.add(threading.current_thread().name)
        if "wal_checkpoint" in sql:
            self.checkpoints.append((threading.current_thread().name, sql))
        for part in [part for part in self._awaited if part in sql]:
            self._awaited.pop(part)(sql)
        if self.fails is not None and self.fails in sql:
            raise sqlite3.OperationalError("disk I/O error")

    def clear(self) -> None:
        self.run.clear()
        self.threads.clear()
        self.checkpoints.clear()

    @property
    def commits(self) -> int:
        return self.run.count("COMMIT")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bus() -> LocalBus:
    return LocalBus()


@pytest.fixture
def statements() -> Statements:
    return Statements()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "hub.db"


Running = Callable[..., AbstractAsyncContextManager[SqliteStore]]


@pytest.fixture
def store(path: Path, clock: ManualClock, bus: LocalBus, statements: Statements) -> Running:
    @asynccontextmanager
    async def running(*, wal_mib: float = 64, inline: bool = False) -> AsyncGenerator[SqliteStore]:
        instance = SqliteStore(
            path,
            clock=clock,
            bus=bus,
            wal_mib=wal_mib,
            inline=inline,
            connect=statements.connect,
        )
        await instance.start()
        statements.clear()
        try:
            yield instance
        finally:
            statements.fails = None
            await instance.close()

    return running


def look(path: Path, sql: str) -> list[Row]:
    """What another reader of the file finds."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()
