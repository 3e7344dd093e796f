"""When the log is copied into the database: by size, in two phases, so that neither calls nor the disk suffer.

    16 MiB  a background connection copies beside the writer (PASSIVE)
            then the writer copies the small rest between two batches: SQLite starts the log anew
    64 MiB  the writer copies and truncates before it takes the next batch
    idle    after a second without writes, what is above 1 MiB
    held    while somebody reads for long (a backup), the log grows beyond: nobody waits for the reader

Copying only in the background never catches up with a busy writer; copying only in the writer stops every call. The
log's fill is not visible through the standard library: it is estimated from the bytes written and corrected by what
every checkpoint reports. The hard limit is judged by the file itself, once the estimate is a quarter of it: the log may
go beyond by that quarter and one batch.
"""

import contextlib
import threading
from pathlib import Path
from typing import Final, final

import msgspec

from dragoman.backends.sqlite.connection import PAGE_BYTES, USUAL_PATIENCE, Connect, Connection, prepare

FRAME_BYTES: Final = PAGE_BYTES + 24
MIB: Final = 1024 * 1024
BATCH_BYTES: Final = 6 * FRAME_BYTES  # the pages that even one row touches: its own, and one of each index
IDLE_BYTES: Final = MIB
IDLE_S: Final = 1.0
# How long the writer waits for readers to let go of the log: longer than any of its own, shorter than a caller notices.
_PATIENT: Final = "PRAGMA busy_timeout=100"


class _Report(msgspec.Struct, frozen=True, array_like=True):
    busy: int
    frames: int
    copied: int


@final
class Checkpoints:
    """Decides and carries out checkpoints. All methods but `start` and `stop` belong to the writer's thread."""

    __slots__ = (
        "_asked",
        "_background",
        "_held_back",
        "_log",
        "_next_bytes",
        "_rest_due",
        "_running",
        "_scale",
        "_stopping",
        "_thread",
        "_written",
        "limit_bytes",
        "start_bytes",
    )

    def __init__(self, path: Path, wal_mib: float) -> None:
        self.limit_bytes = int(wal_mib * MIB)
        self.start_bytes = self.limit_bytes // 4
        self._log = path.with_name(path.name + "-wal")
        self._written = 0  # as estimated, since the log began anew
        self._scale = 1.0  # how much bigger the log really was
        self._next_bytes = float(self.start_bytes)
        self._background: Connection | None = None
        self._thread: threading.Thread | None = None
        self._asked = threading.Semaphore(0)
        self._running = False
        self._rest_due = False
        self._held_back = False  # a reader stayed when the log was to be cut: others will not make it go
        self._stopping = False

    def start(self, path: Path, connect: Connect) -> None:
        """Work in two phases from now on; without this the writer does all by itself."""
        self._background = connect(path)
        prepare(self._background, reads_only=False)
        self._thread = threading.Thread(target=self._run, args=(self._background,), name="checkpoints", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the background thread."""
        self._stopping = True
        if self._thread is not None:
            self._asked.release()
            self._thread.join()
            self._thread = None

    @property
    def idle_due(self) -> bool:
        """Whether a pause would be used."""
        return self._written * self._scale > IDLE_BYTES

    def after_batch(self, connection: Connection, size: int) -> None:
        """Account for a batch that was committed, and do what is due before the next."""
        self._written += size + BATCH_BYTES
        if self._rest_due:
            self._rest_due = self._running = False
            self.passive(connection)
        elif self._written * self._scale <= self._next_bytes:
            return  # Far from any limit: the file is not even looked at.
        if not self._held_back and self.log_bytes() > self.limit_bytes:
            self._cut(connection)
        elif not self._running and self._written * self._scale > self._next_bytes:
            if self._thread is None:
                self.passive(connection)
            else:
                self._running = True
                self._asked.release()

    def passive(self, connection: Connection) -> None:
        """Copy what can be copied without waiting for anybody."""
        self._note(_checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)"))

    def _cut(self, connection: Connection) -> None:
        """Copy all and cut the log; where a reader holds it, the background copies what it can until it is gone."""
        connection.execute(_PATIENT).fetchall()
        try:
            report = _checkpoint(connection, "PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            connection.execute(USUAL_PATIENCE).fetchall()
        self._note(report)
        self._held_back = bool(report.busy)

    def _note(self, report: _Report) -> None:
        if self._written and report.frames > 0:
            # Never below 1: a log that began anew unnoticed looks small, and the limit would be looked at too late.
            self._scale = min(8.0, max(1.0, report.frames * FRAME_BYTES / self._written))
        if report.frames == report.copied and not report.busy:
            self._written = 0
            self._next_bytes = self.start_bytes
            self._held_back = False
        else:
            # A reader held it back: not again at once, or every batch would try.
            self._next_bytes = self._written * self._scale + self.start_bytes / 4

    def log_bytes(self) -> int:
        """How large the log's file is; from any thread."""
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0

    def _run(self, connection: Connection) -> None:
        while True:
            self._asked.acquire()
            if self._stopping:
                connection.close()
                return
            # What fails here the writer meets again, at the rest or at the hard limit, and reports it.
            with contextlib.suppress(Exception):
                _checkpoint(connection, "PRAGMA wal_checkpoint(PASSIVE)")
            # The writer clears both together: it never sees the copying ended and its rest not due.
            self._rest_due = True


def _checkpoint(connection: Connection, pragma: str) -> _Report:
    return msgspec.convert(connection.execute(pragma).fetchall()[0], _Report)
