"""Kill points: places in the code that are passed again and again, and lethal once.

They break no promise. At the N-th passing the hub waits 50 ms, so that whatever was released too early gets out, and
kills itself.
"""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Final

from dragoman.backends.sqlite.connection import Connect, Connection, Parameters, Rows, connect
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.delivery.over_http import Wire
from dragoman.dialects.sse import SseEvent
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.ports.courier import Told
from dragoman.ports.store import Duplicate, Growth, Opened, Opening, Raced
from tests.support.planting import put_in_place, serve_on

LINGER_S: Final = 0.05


class Point:
    """A place in the code that is passed again and again, and lethal once."""

    def __init__(self, passing: int) -> None:
        self._left = passing

    async def passed(self) -> None:
        """Pass it on the loop, which goes on meanwhile."""
        if self._is_the_one():
            await asyncio.sleep(LINGER_S)
            _die()

    def passed_in_thread(self) -> None:
        """Pass it in a thread that is not the loop's."""
        if self._is_the_one():
            time.sleep(LINGER_S)
            _die()

    def _is_the_one(self) -> bool:
        self._left -= 1
        return self._left == 0


class CommitPoint:
    """A connection that passes a point before or after each commit."""

    def __init__(self, real: Connection, *, before: Point | None, after: Point | None) -> None:
        self._real = real
        self._before = before
        self._after = after

    @property
    def in_transaction(self) -> bool:
        """As the real one."""
        return self._real.in_transaction

    def execute(self, sql: str, parameters: Parameters = (), /) -> Rows:
        """Run one statement, passing the point where it is a commit."""
        commits = sql == "COMMIT"
        if commits and self._before is not None:
            self._before.passed_in_thread()
        rows = self._real.execute(sql, parameters)
        if commits and self._after is not None:
            self._after.passed_in_thread()
        return rows

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> object:
        """As the real one."""
        return self._real.executemany(sql, parameters)

    def close(self) -> None:
        """As the real one."""
        self._real.close()


def opening_held(passing: int) -> None:
    """A plain opening is held back; the agent was not asked yet."""

    def alter(store: SqliteStore) -> None:
        open_, point = store.open, Point(passing)

        async def watched(asked: Opening) -> Opened | Duplicate:
            opened = await open_(asked)
            if not asked.durable:
                await point.passed()
            return opened

        put_in_place(store, "open", watched)

    serve_on(alter)


def before_commit(passing: int) -> None:
    """A batch is written but not committed."""
    serve_on(connect=_connecting(before=Point(passing)))


def after_commit(passing: int) -> None:
    """A batch is committed, and nobody who waits for it knows."""
    serve_on(connect=_connecting(after=Point(passing)))


def before_send(passing: int) -> None:
    """A call is about to be sent to its agent."""
    send, point = Wire.send, Point(passing)

    async def watched(wire: Wire, request: HttpRequest, **named: Any) -> HttpReply:
        await point.passed()
        return await send(wire, request, **named)

    put_in_place(Wire, "send", watched)


def after_answer(passing: int) -> None:
    """The agent's answer has come and is not on its way to the disk."""
    send, point = Wire.send, Point(passing)

    async def watched(wire: Wire, request: HttpRequest, **named: Any) -> HttpReply:
        reply = await send(wire, request, **named)
        await point.passed()
        return reply

    put_in_place(Wire, "send", watched)


def in_stream(passing: int) -> None:
    """The agent has said a piece, and it is not on its way to the disk."""
    stream, point = Wire.stream, Point(passing)

    async def watched(wire: Wire, request: HttpRequest, **named: Any) -> AsyncGenerator[HttpReply | Sequence[SseEvent]]:
        async with aclosing(stream(wire, request, **named)) as real:
            async for piece in real:
                await point.passed()
                yield piece

    put_in_place(Wire, "stream", watched)


def after_callback(passing: int) -> None:
    """A callback was taken, and it is not noted."""
    post, point = Wire.post, Point(passing)

    async def watched(wire: Wire, request: HttpRequest, deadline: float) -> Told:
        told = await post(wire, request, deadline)
        await point.passed()
        return told

    put_in_place(Wire, "post", watched)


def before_answer(passing: int) -> None:
    """The outcome is committed and the caller not answered."""

    def alter(store: SqliteStore) -> None:
        append, point = store.append, Point(passing)

        async def watched(growth: Growth) -> Raced | None:
            raced = await append(growth)
            await point.passed()
            return raced

        put_in_place(store, "append", watched)

    serve_on(alter)


def _connecting(*, before: Point | None = None, after: Point | None = None) -> Connect:
    def connecting(path: Path, /) -> Connection:
        return CommitPoint(connect(path), before=before, after=after)

    return connecting


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
