"""Disks that fail: one whose n-th call breaks, and one that gets full.

    store ── apsw ── VFS ──► counts each read, write, sync and truncation; breaks the n-th, or all from the n-th on
                      └────► or adds up what is written, and has no room beyond its quota

Errors come out as the standard library's, with their code: the store knows no other.
"""

import itertools
import sqlite3
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, final

import apsw

from dragoman.backends.sqlite.connection import Connection, Parameters, Row, Rows

KINDS: Final = ("full", "write", "sync", "memory")

_names = itertools.count()


def _broken(kind: str) -> apsw.Error:
    match kind:
        case "full":
            return apsw.FullError("planned")
        case "memory":
            return apsw.NoMemError("planned")
        case _:
            error = apsw.IOError("planned")
            code = apsw.SQLITE_IOERR_FSYNC if kind == "sync" else apsw.SQLITE_IOERR_WRITE
            setattr(error, "extendedresult", code)  # noqa: B010 - as apsw's own manual says, and its types do not
            return error


class Faults:
    """When a call breaks; nothing does until `arm`."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken = 0
        self._at: int | None = None
        self._kind = ""
        self._lasts = False

    def arm(self, at: int, kind: str, *, lasts: bool = False) -> None:
        """Break the call of that number from now on, once or for ever."""
        self.calls, self.broken = 0, 0
        self._at, self._kind, self._lasts = at, kind, lasts

    def mend(self) -> None:
        """Break nothing any more."""
        self._at = None

    def pass_by(self) -> None:
        """One more call; raises if it is to break."""
        self.calls += 1
        if self._at is not None and (self.calls == self._at or (self._lasts and self.calls > self._at)):
            self.broken += 1
            raise _broken(self._kind)


@final
class QuotaDisk:
    """A disk of so many bytes, which knows what its files take; the store's own disk, and beneath SQLite too."""

    def __init__(self, quota_bytes: int) -> None:
        self.quota_bytes = quota_bytes
        self.refused = 0
        self._taken: dict[str, int] = {}

    @property
    def taken_bytes(self) -> int:
        """What its files take."""
        return sum(self._taken.values())

    def free_bytes(self, folder: Path) -> int:
        """What may still be written."""
        return max(0, self.quota_bytes - self.taken_bytes)

    def reserve(self, file: Path, size_bytes: int) -> None:
        """A file that takes that much."""
        if size_bytes > self.free_bytes(file.parent):
            raise OSError(28, "No space left on device")
        self._taken[file.name] = size_bytes

    def give_back(self, file: Path) -> None:
        """Remove it."""
        self._taken.pop(file.name, None)

    def has(self, name: str) -> bool:
        """Whether there is such a file."""
        return name in self._taken

    def grow(self, name: str, size_bytes: int) -> None:
        """A file is that big now. Raises apsw.FullError where there is no room."""
        more = size_bytes - self._taken.get(name, 0)
        if more > 0 and self.taken_bytes + more > self.quota_bytes:
            self.refused += 1
            raise apsw.FullError("planned")
        self._taken[name] = max(size_bytes, self._taken.get(name, 0))

    def cut(self, name: str, size_bytes: int) -> None:
        """A file was cut to that size."""
        self._taken[name] = size_bytes


class _Vfs(apsw.VFS):
    def __init__(self, name: str, faults: Faults, disk: QuotaDisk | None) -> None:
        self._faults = faults
        self._disk = disk
        super().__init__(name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:  # noqa: N802 - SQLite's name
        return _VfsFile(name, flags, self._faults, self._disk)


class _VfsFile(apsw.VFSFile):
    def __init__(
        self, name: str | apsw.URIFilename | None, flags: list[int], faults: Faults, disk: QuotaDisk | None
    ) -> None:
        self._name = Path(name.filename() if isinstance(name, apsw.URIFilename) else str(name)).name
        self._faults = faults
        self._disk = disk
        super().__init__("", name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - SQLite's name
        self._faults.pass_by()
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        self._faults.pass_by()
        if self._disk is not None:
            self._disk.grow(self._name, offset + len(data))
        super().xWrite(data, offset)  # pyright: ignore[reportUnknownMemberType] - its Buffer is of Python 3.12

    def xTruncate(self, newsize: int) -> None:  # noqa: N802 - SQLite's name
        self._faults.pass_by()
        super().xTruncate(newsize)
        if self._disk is not None:
            self._disk.cut(self._name, newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802 - SQLite's name
        self._faults.pass_by()


@final
class FaultyConnection:
    """A connection on such a disk, whose errors are the standard library's; `swallows` plants a bug: it has none."""

    def __init__(self, connection: apsw.Connection, *, swallows: bool) -> None:
        self._connection = connection
        self._translated = _swallowed if swallows else _translated

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self._connection.in_transaction

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        """Run one statement."""
        with self._translated():
            return _Fetched(self._connection.execute(sql, parameters))  # pyright: ignore[reportArgumentType, reportUnknownMemberType] - as sqlite3 takes them
        return _Nothing()

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        """Run one statement for each set of parameters."""
        with self._translated():
            return self._connection.executemany(sql, parameters)  # pyright: ignore[reportArgumentType, reportUnknownMemberType] - as sqlite3 takes them

    def close(self) -> None:
        """Let go of the file."""
        with self._translated():
            self._connection.close()


class _Nothing:
    def fetchall(self) -> list[Row]:
        return []


class _Fetched:
    def __init__(self, cursor: apsw.Cursor) -> None:
        self._cursor = cursor

    def fetchall(self) -> list[Row]:
        with _translated():
            return self._cursor.fetchall()  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - its Buffer is of Python 3.12


@contextmanager
def _swallowed() -> Generator[None]:
    with suppress(apsw.FullError, apsw.IOError, apsw.NoMemError):
        yield


@contextmanager
def _translated() -> Generator[None]:
    try:
        yield
    except apsw.Error as error:
        # One that was raised here comes back as it was, without a code.
        given = apsw.SQLITE_FULL if isinstance(error, apsw.FullError) else 0
        code = given or getattr(error, "extendedresult", 0) or getattr(error, "result", 0)
        told = sqlite3.IntegrityError if isinstance(error, apsw.ConstraintError) else sqlite3.OperationalError
        translated = told(str(error))
        translated.sqlite_errorcode = code
        raise translated from error


class FaultyFiles:
    """Connections to files on a disk that fails; `connect` is what a store is given."""

    def __init__(self, disk: QuotaDisk | None = None, *, swallows: bool = False) -> None:
        self.faults = Faults()
        self._swallows = swallows
        self._name = f"faulty-{next(_names)}"
        self._vfs = _Vfs(self._name, self.faults, disk)

    def connect(self, path: Path) -> Connection:
        """A new connection to that file."""
        return FaultyConnection(apsw.Connection(str(path), vfs=self._name), swallows=self._swallows)

    def put_away(self) -> None:
        """The disk is not needed any more."""
        self._vfs.unregister()
