"""The bare insert loop: what the disk and the writer allow, without a server around them. The yardstick for `accept`.

Runs alone: `python -m benchmarks.inserts FOLDER PRODUCERS SECONDS`. So many producers each insert one call after the
other and wait for its commit; one thread commits what has gathered, as the hub's does. The tables, indexes and
statements are the hub's own, the rows as big as those of a call, their trace ids in no order; nothing is read, decoded,
checked or sent.
"""

import asyncio
import json
import queue
import statistics
import sys
import threading
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.calls import new_prefix, numbered
from benchmarks.commit import opened
from benchmarks.rounds import WARM_UP_S
from dragoman.backends.sqlite import codec, schema
from dragoman.backends.sqlite.connection import Connection, connect, number, prepare
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.traced import TracedCalls

BATCH: Final = 256  # as in the hub's writer
LOG_PAGES: Final = 4096  # 16 MiB, where the hub's checkpoints begin, too

_UNDER: Final = (None, b"d" * 32, b"s" * 64)  # no parent, a digest, its sums

Waiting = tuple[int, asyncio.Future[None]]


class Inserts:
    """The writer's thread and the way to it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._traced = TracedCalls(connection)
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Waiting | None] = queue.SimpleQueue()
        now = datetime.now(UTC)
        task = opened("a2a_call_" + "0" * 32, now, "0" * 32)
        self._doc, self._event = codec.pack(task), codec.pack_event(codec.first_event(task))
        self._at = codec.to_micros(now)
        self._prefix = new_prefix().removeprefix("trace_")
        self._last = 0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    async def insert(self) -> None:
        """Insert one call; returns when it is on disk."""
        self._last += 1
        written: asyncio.Future[None] = self._loop.create_future()
        self._queue.put((self._last, written))
        await written

    def stop(self) -> None:
        """Write what was taken and end the thread."""
        self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (first := self._queue.get()) is not None:
            batch = [first]
            for _ in range(min(self._queue.qsize(), BATCH - 1)):
                more = self._queue.get()
                if more is None:
                    self._queue.put(None)
                    break
                batch.append(more)
            try:
                self._commit([place for place, _ in batch])
            except Exception as error:  # noqa: BLE001 - whatever it was, those who wait for it hear of it
                self._loop.call_soon_threadsafe(_fail, batch, error)
                return
            self._loop.call_soon_threadsafe(_settle, batch)

    def _commit(self, numbers: Sequence[int]) -> None:
        doc, event, at = self._doc, self._event, self._at
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        of, found = ("default", "key_bench"), ("agt_bench", "echo", "platform")
        tasks = [
            (
                place,
                f"a2a_call_{place:032x}",
                *of,
                f"ctx-{place:032x}",
                0,
                at,
                1,
                doc,
                *found,
                numbered(self._prefix, place),
                *_UNDER,
                1,
            )
            for place in numbers
        ]
        connection.executemany(SQL["add_task"], tasks)
        connection.executemany(SQL["add_event"], [(place << codec.SEQ_BITS | 1, event) for place in numbers])
        jobs = [(place, place, "call", 0.0, None, b"", None, None) for place in numbers]
        connection.executemany(SQL["add_job"], jobs)
        traced = [(place, numbered(self._prefix, place)) for place in numbers]
        self._traced.write(connection, traced, ())
        connection.execute("COMMIT")
        self._traced.committed(traced, ())


def _settle(batch: Sequence[Waiting]) -> None:
    for _, written in batch:
        written.set_result(None)


def _fail(batch: Sequence[Waiting], error: Exception) -> None:
    for _, written in batch:
        written.set_exception(error)


async def load(file: Path, producers: int, seconds: float) -> dict[str, Any]:
    """Insert for so long after a warm-up; ValueError when a row is missing at the end."""
    connection = connect(file)
    prepare(connection, reads_only=False)
    connection.execute(f"PRAGMA wal_autocheckpoint={LOG_PAGES}").fetchall()
    schema.migrate(connection, schema.migrations(), 0)
    inserts = Inserts(connection)
    inserted, times = 0, list[float]()
    begins = time.perf_counter() + WARM_UP_S
    ends = begins + seconds

    async def produce() -> None:
        nonlocal inserted
        while (began := time.perf_counter()) < ends:
            await inserts.insert()
            inserted += 1
            if began >= begins:
                times.append((time.perf_counter() - began) * 1e3)

    async def cpu_from_the_beginning() -> float:
        await asyncio.sleep(WARM_UP_S)
        return time.process_time()

    measuring = asyncio.ensure_future(cpu_from_the_beginning())
    await asyncio.gather(*(produce() for _ in range(producers)))
    cpu_s = time.process_time() - await measuring
    inserts.stop()
    rows = [number(connection, f"SELECT count(*) FROM {table}") for table in ("task", "event", "job")]
    connection.close()
    if set(rows) != {inserted}:
        raise ValueError(f"{rows} rows for {inserted} inserts")
    cuts = statistics.quantiles(times, n=100)
    return {"inserts": len(times), "seconds": seconds, "cpu_s": cpu_s, "p50_ms": cuts[49], "p99_ms": cuts[98]}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        place = Path(sys.argv[1]) / "inserts.db"
        print(json.dumps(runner.run(load(place, int(sys.argv[2]), float(sys.argv[3])))))
