"""A connection to the file, as little of it as the store needs, and how a plain one is made.

Tests hand in a factory of their own, to put a failing disk beneath. Transactions are always explicit.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol, TypeVar

import msgspec

T = TypeVar("T")

Value = None | int | float | str | bytes
Parameters = Sequence[Value] | Mapping[str, Value]
Row = tuple[Value, ...]

PAGE_BYTES: Final = 4096
USUAL_PATIENCE: Final = "PRAGMA busy_timeout=1000"
_PRAGMAS: Final = (
    "PRAGMA page_size=4096",
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",
    "PRAGMA wal_autocheckpoint=0",
    "PRAGMA cache_size=-16384",  # KiB
    "PRAGMA mmap_size=0",
    USUAL_PATIENCE,
    "PRAGMA secure_delete=ON",  # What was forgotten, delivered or replaced is not left in the file's unused places.
)


class Rows(Protocol):
    """What a statement found."""

    def fetchall(self) -> list[Row]:
        """All of it; a statement that changes rows is done only then."""
        ...


class Connection(Protocol):
    """One connection; used by one thread at a time."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open; a failed COMMIT may have ended it already."""
        ...

    def execute(self, sql: str, parameters: Parameters = ..., /) -> Rows:
        """Run one statement."""
        ...

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        """Run one statement for each set of parameters."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class Connect(Protocol):
    """Makes connections to a file."""

    def __call__(self, path: Path, /) -> Connection:
        """A new connection to that file."""
        ...


def connect(path: Path) -> Connection:
    """A connection of the standard library, without its implicit transactions."""
    # Where a type has no adapter the module finds so by an error it raises and drops, for each blob and each NULL.
    sqlite3.register_adapter(bytes, _as_it_is)
    sqlite3.register_adapter(type(None), _as_it_is)
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, cached_statements=256)


def _as_it_is(value: T) -> T:
    return value


def prepare(connection: Connection, *, reads_only: bool) -> None:
    """The settings every connection has: durable commits, checkpoints only when the store says so."""
    for pragma in _PRAGMAS:
        connection.execute(pragma).fetchall()
    if reads_only:
        connection.execute("PRAGMA query_only=1").fetchall()


class _Number(msgspec.Struct, frozen=True, array_like=True):
    value: int | None


def number(connection: Connection, sql: str, parameters: Parameters = ()) -> int | None:
    """The one whole number a statement finds."""
    rows = connection.execute(sql, parameters).fetchall()
    return msgspec.convert(rows[0], _Number).value if rows else None
