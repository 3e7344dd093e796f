"""A database file from outside: copied beside a running hub, checked, put back, brought up to date.

A copy is taken from one snapshot, so a hub that goes on writing neither waits for it nor makes it begin again.
"""

import os
import sqlite3
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

import msgspec

from dragoman.backends.sqlite import schema
from dragoman.backends.sqlite.connection import Connection, number, prepare
from dragoman.backends.sqlite.lock import FileLock
from dragoman.backends.sqlite.schema import Migration, SchemaTooNew
from dragoman.backends.sqlite.sql import SQL

PAGES: Final = 256  # copied between two reports of how far it is
BEFORE: Final = ".before-restore"

Progress = Callable[[int, int], None]  # done, of how many


class NoDatabase(Exception):
    """The file is none of a hub, or is broken; its text says what is wrong."""


def copy_out(source: Path, target: Path, progress: Progress) -> None:
    """Write a whole and checked copy of a database that may be in use. Raises NoDatabase, FileExistsError, OSError."""
    with closing(_opened(source)) as database:
        partial = target.with_name(f".{target.name}.partial")
        partial.unlink(missing_ok=True)
        try:
            os.close(os.open(partial, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            _copy(database, partial, progress)
            check(partial)
            os.link(partial, target)  # unlike a rename, it replaces nothing
        finally:
            partial.unlink(missing_ok=True)
    _sync(target.parent)


def put_back(copy: Path, database: Path, progress: Progress) -> Path | None:
    """Put a copy in the place of a database that nobody has open; where the old one is kept now.

    Raises StoreInUse, NoDatabase, OSError.
    """
    lock = FileLock(database)
    lock.acquire()
    try:
        fresh = database.with_name(f".{database.name}.restored")
        fresh.unlink(missing_ok=True)
        try:
            os.close(os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
            with closing(_opened(copy)) as opened:
                _copy(opened, fresh, progress)
            check(fresh)
            kept = _set_aside(database)
            fresh.replace(database)
        finally:
            fresh.unlink(missing_ok=True)
        _sync(database.parent)
        return kept
    finally:
        lock.release()


def check(path: Path) -> int:
    """The schema version of a whole file of ours. Raises NoDatabase."""
    with closing(_opened(path)) as database:
        try:
            found = [str(row[0]) for row in database.execute("PRAGMA integrity_check(5)").fetchall()]
            version = number(database, SQL["schema_version"]) or 0
        except sqlite3.DatabaseError as error:
            raise NoDatabase(f"{path} is no database of a hub: {error}") from error
    if found != ["ok"]:
        raise NoDatabase(f"{path} is damaged: {'; '.join(found)}")
    if version > len(schema.migrations()):
        raise NoDatabase(f"{path} was written by a newer version (schema {version})")
    return version


def check_schema(path: Path) -> None:
    """Return where a file has the schema that this version knows. Raises NoDatabase, SchemaTooNew."""
    if not path.is_file():
        raise NoDatabase(f"there is no file {path}")
    lacking = pending(path)
    if lacking:
        raise NoDatabase(f"{path} lacks {lacking[0].name}: start the hub, or run dragoman migrate")


@contextmanager
def reading(path: Path) -> Generator[Connection]:
    """A connection that only reads, beside a hub that may be writing. Raises NoDatabase."""
    with closing(_opened(path)) as database:
        database.execute("PRAGMA query_only=1").fetchall()
        yield database


def sealed_value(path: Path, name: str) -> bytes | None:
    """One sealed value of a file, if it has it. Raises NoDatabase."""
    with closing(_opened(path)) as database:
        try:
            rows = database.execute(SQL["get_sealed"], (name,)).fetchall()
        except sqlite3.DatabaseError as error:
            raise NoDatabase(f"{path} is no database of a hub: {error}") from error
    return msgspec.convert(rows[0], tuple[bytes])[0] if rows else None


def pending(path: Path) -> Sequence[Migration]:
    """The migrations that a file lacks; all of them where there is no file yet. Raises NoDatabase, SchemaTooNew."""
    steps = schema.migrations()
    if not path.exists():
        return steps
    with closing(_opened(path)) as database:
        try:
            have = number(database, SQL["schema_version"]) or 0
        except sqlite3.DatabaseError as error:
            raise NoDatabase(f"{path} is no database of a hub: {error}") from error
    if have > len(steps):
        raise SchemaTooNew(f"The data has schema {have}, this version knows {len(steps)}. Run the newer version.")
    return steps[have:]


def bring_up(path: Path, through: int, now: int) -> None:
    """Apply what a file lacks, through that version. Raises StoreInUse, NoDatabase, SchemaTooNew."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = FileLock(path)
    lock.acquire()
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        with closing(sqlite3.connect(path, isolation_level=None)) as database:
            prepare(database, reads_only=False)
            schema.migrate(database, schema.migrations()[:through], now)
    finally:
        lock.release()


def _opened(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise NoDatabase(f"there is no file {path}")
    # Not read-only: a log that a killed hub left behind has to be read into the snapshot, too.
    return sqlite3.connect(path, isolation_level=None, timeout=5.0)


def _copy(source: sqlite3.Connection, target: Path, progress: Progress) -> None:
    source.execute("BEGIN")  # held all along: one snapshot
    source.execute(SQL["schema_version"]).fetchall()
    with closing(sqlite3.connect(target, isolation_level=None)) as made:

        def told(_status: int, left: int, total: int) -> None:
            progress(total - left, total)

        source.backup(made, pages=PAGES, progress=told, sleep=0)
        made.execute("PRAGMA journal_mode=DELETE").fetchall()  # one file, whole by itself
    with target.open("rb") as written:
        os.fsync(written.fileno())


def _set_aside(database: Path) -> Path | None:
    """Move what was there out of the way, its log with it."""
    if not database.exists():
        return None
    kept = database.with_name(database.name + BEFORE)
    for suffix in ("-wal", "-shm", ""):
        part, place = database.with_name(database.name + suffix), kept.with_name(kept.name + suffix)
        place.unlink(missing_ok=True)
        if part.exists():
            part.replace(place)
    return kept


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
