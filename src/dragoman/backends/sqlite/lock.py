"""One process per file: a lock beside the database, held as long as the store is open.

The kernel drops it with its holder, also on kill -9, so there is no stale lock to clean up.
"""

import fcntl
import os
from pathlib import Path
from typing import final


class StoreInUse(Exception):
    """Another process has this data open; `pid` is its number where it could be read."""

    def __init__(self, path: Path, pid: int | None) -> None:
        holder = "another process" if pid is None else f"process {pid}"
        super().__init__(f"{path} is open in {holder}. Stop it, or choose another data directory.")
        self.path = path
        self.pid = pid


@final
class FileLock:
    """The lock of one database file."""

    __slots__ = ("_handle", "_path")

    def __init__(self, database: Path) -> None:
        self._path = database.with_name(database.name + ".lock")
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock; raises StoreInUse when somebody holds it."""
        handle = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            written = os.read(handle, 32).strip()
            os.close(handle)
            raise StoreInUse(self._path, int(written) if written.isdigit() else None) from error
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        self._handle = handle

    def release(self) -> None:
        """Let go. The file stays: to delete it would let two processes lock two files of one name."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
