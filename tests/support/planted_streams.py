"""Bugs in how streams are told, and a gauge of what they hold."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import codec
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.delivery.courier import HttpCourier
from dragoman.hub import reader
from dragoman.model.call import OpenedCall
from dragoman.model.events import StatusChanged
from dragoman.model.task import Task
from dragoman.ports.bus import Grown, Lost, Said, task_topic
from dragoman.ports.courier import Delivered
from dragoman.ports.store import Growth, Raced
from dragoman.server import app, protocol
from dragoman.server.answer import Answer
from dragoman.server.run import DrainingServer
from tests.support.planting import put_in_place, serve_on

EARLY_S: Final = 0.05
BEHIND: Final = 8
WAITED_S: Final = 0.1
TASKS: Final = "asyncio tasks:"


def stream_end_swallowed(_: int) -> None:
    """An agent whose stream breaks off is waited for, as if it were silent."""
    stream = HttpCourier.stream

    async def patient(courier: HttpCourier, opened: OpenedCall) -> AsyncGenerator[Delivered]:
        async with aclosing(stream(courier, opened)) as real:
            async for delivered in real:
                if any(isinstance(each, StatusChanged) and each.failure is not None for each in delivered.events):
                    await asyncio.Event().wait()
                yield delivered

    put_in_place(HttpCourier, "stream", patient)


def published_before_commit(_: int) -> None:
    """Readers are shown events a little before these are on disk."""
    made = LocalBus()

    def alter(store: SqliteStore) -> None:
        append = store.append

        async def late(growth: Growth) -> Raced | None:
            happened = codec.numbered(growth.events, growth.after)
            made.publish(task_topic(growth.task.id), Grown(task=growth.task, happened=happened))
            await asyncio.sleep(EARLY_S)
            return await append(growth)

        put_in_place(store, "append", late)

    put_in_place(app, "LocalBus", lambda: made)
    serve_on(alter)


def reader_kept(_: int) -> None:
    """A reader whose client has left is not told."""

    def deaf(_self: Answer) -> None:
        return

    put_in_place(Answer, "end_stream", deaf)


def reader_unbounded(_: int) -> None:
    """What a reader does not take is kept for it, however much it is."""
    put_in_place(reader, "MOST_EVENTS", sys.maxsize)
    put_in_place(reader, "MOST_BYTES", sys.maxsize)


def reader_waited_for(_: int) -> None:
    """Everybody waits a little for a reader that is behind."""
    hear = reader.Reader._hear  # pyright: ignore[reportPrivateUsage] - there is no seam

    def patient(self: reader.Reader, said: Said | Lost) -> None:
        if len(self._heard) > BEHIND:  # pyright: ignore[reportPrivateUsage] - there is no seam
            time.sleep(WAITED_S)
        hear(self, said)

    put_in_place(reader.Reader, "_hear", patient)


def resumed_one_early(_: int) -> None:
    """Who comes back hears the last event a second time."""
    _resume_off_by(-1)


def resumed_one_late(_: int) -> None:
    """Who comes back misses an event."""
    _resume_off_by(1)


def exits_at_once(_: int) -> None:
    """A hub that is told to stop does not finish what runs."""

    def leave(_self: DrainingServer, number: int, _frame: object) -> None:
        os._exit(128 + number)

    put_in_place(DrainingServer, "handle_exit", leave)


def no_keep_alive(_: int) -> None:
    """A stream that has nothing to say says nothing."""

    def mute(_self: Answer) -> None:
        return

    put_in_place(Answer, "keep_alive_stream", mute)


def keeps_alive_each_second(_: int) -> None:
    """After a second of silence, not only after eight, a stream says that it is there."""
    put_in_place(protocol, "SILENT_S", 1.0)


def counts_tasks(_: int) -> None:
    """On SIGUSR1 the hub says how many asyncio tasks it has."""

    def told(_number: int, _frame: object) -> None:
        sys.stderr.write(f"{TASKS} {len(asyncio.all_tasks())}\n")
        sys.stderr.flush()

    signal.signal(signal.SIGUSR1, told)


def _resume_off_by(events: int) -> None:
    made = reader.Reader.__init__

    def off(self: reader.Reader, task: Task, *, after: int | None = None, **more: Any) -> None:
        made(self, task, after=after + events if after else after, **more)

    put_in_place(reader.Reader, "__init__", off)
