"""Room on the disk: watched, kept in reserve, and given up when nothing else is left.

    free < the log's limit        nothing new is taken; what ends, cancels or removes something is written
    SQLite finds no room          the ballast goes, the log is copied and cut: room for what was accepted
    free > 3 x the log's limit    the ballast is made again, new things are taken

A full disk takes no delete either: only what was set aside before helps. The ballast is at least as big as the log,
because copying the log may have to grow the database by that much. Nothing here is SQLite's: the writer says what
happened and asks what to do. All methods belong to the writer's thread; `full` may be read by any.
"""

import contextlib
import errno
import logging
import os
import sqlite3
from pathlib import Path
from typing import Final, Protocol, final

from dragoman.model.errors import Overloaded

LOOK_BYTES: Final = 1024 * 1024  # about so much is written between two looks at the disk
ENOUGH: Final = 3  # times the log's limit
RETRY_S: Final = 5
_FULL: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)

_LOG: Final = logging.getLogger(__name__)


class Disk(Protocol):
    """The disk that a database is on; tests have one that is full."""

    def free_bytes(self, folder: Path) -> int:
        """How much may still be written there."""
        ...

    def reserve(self, file: Path, size_bytes: int) -> None:
        """Make a file that really takes that much. Raises OSError, and leaves nothing."""
        ...

    def give_back(self, file: Path) -> None:
        """Remove it."""
        ...


@final
class RealDisk:
    """The disk of this machine."""

    def free_bytes(self, folder: Path) -> int:
        """What a user who is not root may still write."""
        found = os.statvfs(folder)
        return found.f_bavail * found.f_frsize

    def reserve(self, file: Path, size_bytes: int) -> None:
        """Allocated, not only named: a sparse file would hold nothing back."""
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, size_bytes)
        except OSError:
            file.unlink(missing_ok=True)
            raise
        finally:
            os.close(handle)

    def give_back(self, file: Path) -> None:
        """Remove it, if it is there."""
        file.unlink(missing_ok=True)


@final
class Space:
    """How the disk of one database stands."""

    __slots__ = ("_ballast", "_ballast_bytes", "_disk", "_enough", "_folder", "_least", "_out", "_unlooked", "full")

    def __init__(self, path: Path, *, log_bytes: int, ballast_bytes: int, disk: Disk) -> None:
        self.full = False  # nothing new is taken
        self._out = False  # SQLite found no room, and nothing is left to give up
        self._folder = path.parent
        self._ballast = path.with_name("ballast")
        self._ballast_bytes = ballast_bytes
        self._disk = disk
        self._least = log_bytes
        self._enough = ENOUGH * log_bytes
        self._unlooked = 0

    def begin(self) -> None:
        """Set the ballast aside where there is room for it; one that a killed process left is made anew."""
        self._disk.give_back(self._ballast)
        free = self._disk.free_bytes(self._folder)
        if free < self._least:
            self._fill(free)
        elif free >= self._ballast_bytes + self._least:
            self._set_aside()

    def wrote(self, size_bytes: int) -> None:
        """A batch was written: look at the disk, where that is due."""
        self._unlooked += size_bytes
        if self.full or self._unlooked >= LOOK_BYTES:
            self.look()

    def look(self) -> None:
        """See how much is free, and draw the consequences."""
        self._unlooked = 0
        free = self._disk.free_bytes(self._folder)
        if not self.full and free < self._least:
            self._fill(free)
        elif self.full and free > self._enough:
            self._disk.give_back(self._ballast)  # Perhaps it was never given up; made anew it is whole in any case.
            self._set_aside()
            self.full = self._out = False
            _LOG.warning("there is room on the disk again: new calls are taken", extra=_fields(free))

    def ran_out(self) -> bool:
        """SQLite found no room: give up what was set aside. False where nothing is left to give up."""
        if self._out:
            return False
        self._disk.give_back(self._ballast)
        self.full = self._out = True
        free = self._disk.free_bytes(self._folder)
        _LOG.error("the disk is full: new calls are refused until there is room again", extra=_fields(free))
        return True

    def refuse_new(self) -> None:
        """Raises Overloaded while there is no room for new things."""
        if self.full:
            raise no_room()

    def end(self) -> None:
        """The database is about to be closed: nobody needs the ballast."""
        self._disk.give_back(self._ballast)

    def _fill(self, free: int) -> None:
        self.full = True
        _LOG.error("the disk is nearly full: new calls are refused until there is room", extra=_fields(free))

    def _set_aside(self) -> None:
        if not self._ballast_bytes:
            return
        try:
            self._disk.reserve(self._ballast, self._ballast_bytes)
        except OSError as error:
            # Without it the hub works; a full disk then finds it with less to give up.
            reason = errno.errorcode.get(error.errno or 0, "unknown")
            _LOG.warning("no ballast could be set aside", extra={"fields": {"reason": reason}})
            with contextlib.suppress(OSError):
                self._disk.give_back(self._ballast)


def no_room() -> Overloaded:
    """What callers are told while the disk is full."""
    return Overloaded(
        "The hub's disk is full: it takes results, cancels and deletes, but nothing new. Try again later.",
        retry_after_s=RETRY_S,
        reason="storage_full",
    )


def is_full(error: BaseException) -> bool:
    """Whether SQLite says that there is no room."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", None) in _FULL


def _fields(free: int) -> dict[str, object]:
    return {"fields": {"free_mib": free // (1024 * 1024)}}
