"""One thread that writes lines: nobody who has something to say waits for a slow disk or a stuck pipe.

At most 10,000 lines wait; what comes beyond them is dropped and counted.
"""

import contextlib
import queue
import threading
from collections.abc import Callable
from typing import Final, Protocol

MOST: Final = 10_000
LAST_S: Final = 2.0  # for what still waits when the process ends


class Sink(Protocol):
    """Where lines go."""

    def write(self, data: bytes, /) -> object:
        """Write some whole lines."""
        ...

    def flush(self) -> object:
        """Hand them to the system."""
        ...


class LineWriter:
    """Writes lines to one sink, in the order in which they were handed over; from any thread."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._queue: queue.SimpleQueue[tuple[int, Callable[[], bytes]] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        self._waiting = 0
        self.dropped = 0

    def put(self, count: int, make: Callable[[], bytes]) -> None:
        """Have so many lines written; they are made where they are written."""
        with self._changed:
            if self._waiting + count > MOST:
                self.dropped += count
                return
            self._waiting += count
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
                self._thread.start()
        self._queue.put((count, make))

    def flush(self) -> None:
        """Wait until all is written, but not for long."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0, timeout=LAST_S)

    def close(self) -> None:
        """Write what is left; whatever comes afterwards begins anew."""
        self.flush()
        with self._changed:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            thread.join(timeout=LAST_S)

    def _run(self) -> None:
        while (given := self._queue.get()) is not None:
            count, make = given
            written = 0
            # A sink that is closed, or whose reader is gone: there is nobody to tell.
            with contextlib.suppress(OSError, ValueError):
                self._sink.write(make())
                self._sink.flush()
                written = count
            with self._changed:
                self._waiting -= count
                self.dropped += count - written
                self._changed.notify_all()
