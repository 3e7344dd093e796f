"""Hubs with a fault in them, to prove that the tests find it: a table of names and faulty parts.

`python -m tests.support.planted NAME[=N] -- serve …` is `dragoman serve …` with that part in place of the good one.
Where the composition root takes a part it is handed in, elsewhere it is patched: the only patching in the tests.

Two kinds. Bugs break a promise. Kill points break none: at the N-th passing of a point the hub waits 50 ms, so that
whatever was released too early gets out, and kills itself.
"""

import asyncio
import functools
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from pathlib import Path
from typing import Final, TypeVar
from unittest import mock

import msgspec

from dragoman.backends.sqlite.connection import Connect, Connection, Parameters, Rows, connect
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.cli import main
from dragoman.config import Settings
from dragoman.delivery.over_http import Wire
from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.hub.take_up import TakeUp
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.operations import ListTasks
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.store import Duplicate, Growth, Job, Opened, Opening, Owner, Raced, Scope, Store
from dragoman.server import app

LINGER_S: Final = 0.05
LATE_S: Final = (0.05, 0.1)

T = TypeVar("T")
Alter = Callable[[SqliteStore], None]


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


# Bugs


def ack_before_commit(_: int) -> None:
    """A step of a task is acknowledged at once and written a little later."""

    def alter(store: SqliteStore) -> None:
        append, later = store.append, _Later()

        async def early(growth: Growth) -> Raced | None:
            later.begin(append(growth))
            return None

        _replace(store, "append", early)

    _serve_on(alter)


def keyed_sent_before_opening(_: int) -> None:
    """A call with a key is sent before its opening is on disk."""

    def alter(store: SqliteStore) -> None:
        open_, append, later = store.open, store.append, _Later()
        opening: dict[str, asyncio.Task[Opened | Duplicate]] = {}

        async def early(asked: Opening) -> Opened | Duplicate:
            task, once = asked.task, asked.once
            known = once and await store.find_once(task.tenant, once.principal, once.scope, once.key)
            if once is None or known is not None:
                return await open_(asked)
            opening[task.id] = later.begin(open_(asked))
            return Opened()

        async def ordered(growth: Growth) -> Raced | None:
            # The order of opening and step is kept: only the waiting before the send is left out.
            if growth.task.id in opening:
                await opening.pop(growth.task.id)
            return await append(growth)

        _replace(store, "open", early)
        _replace(store, "append", ordered)

    _serve_on(alter)


def idempotency_ignored(_: int) -> None:
    """A key names nothing: every repeat is a new call."""

    def alter(store: SqliteStore) -> None:
        open_ = store.open

        async def forgetful(asked: Opening) -> Opened | Duplicate:
            return await open_(msgspec.structs.replace(asked, once=None))

        _replace(store, "open", forgetful)

    _serve_on(alter)


def no_recovery(_: int) -> None:
    """What an earlier life left open is not taken up."""

    async def nothing(_self: TakeUp, _job: Job) -> None:
        return

    _replace(TakeUp, "carry", nothing)


def events_read_at_start(_: int) -> None:
    """The hub reads every call and its events before it listens."""

    def alter(store: SqliteStore) -> None:
        begin_epoch = store.begin_epoch

        async def thorough(replica: str) -> Owner:
            everyone, cursor = Scope(tenant=DEFAULT_TENANT, principal=None), None
            while True:
                page = await store.list_tasks(everyone, ListTasks(cursor=cursor))
                for task in page.tasks:
                    await store.load(everyone, task.id)
                    await store.events(task.id, 0, task.last_seq)
                if (cursor := page.cursor) is None:
                    return await begin_epoch(replica)

        _replace(store, "begin_epoch", thorough)

    _serve_on(alter)


# Kill points


def opening_held(passing: int) -> None:
    """A plain opening is held back; the agent was not asked yet."""

    def alter(store: SqliteStore) -> None:
        open_, point = store.open, Point(passing)

        async def watched(asked: Opening) -> Opened | Duplicate:
            opened = await open_(asked)
            if not asked.durable:
                await point.passed()
            return opened

        _replace(store, "open", watched)

    _serve_on(alter)


def before_commit(passing: int) -> None:
    """A batch is written but not committed."""
    _serve_on(connect=_connecting(before=Point(passing)))


def after_commit(passing: int) -> None:
    """A batch is committed, and nobody who waits for it knows."""
    _serve_on(connect=_connecting(after=Point(passing)))


def before_send(passing: int) -> None:
    """A call is about to be sent to its agent."""
    send, point = Wire.send, Point(passing)

    async def watched(
        wire: Wire, request: HttpRequest, *, agent_id: str, deadline: float, timeout_ms: int
    ) -> HttpReply:
        await point.passed()
        return await send(wire, request, agent_id=agent_id, deadline=deadline, timeout_ms=timeout_ms)

    _replace(Wire, "send", watched)


def after_answer(passing: int) -> None:
    """The agent's answer has come and is not on its way to the disk."""
    send, point = Wire.send, Point(passing)

    async def watched(
        wire: Wire, request: HttpRequest, *, agent_id: str, deadline: float, timeout_ms: int
    ) -> HttpReply:
        reply = await send(wire, request, agent_id=agent_id, deadline=deadline, timeout_ms=timeout_ms)
        await point.passed()
        return reply

    _replace(Wire, "send", watched)


def before_answer(passing: int) -> None:
    """The outcome is committed and the caller not answered."""

    def alter(store: SqliteStore) -> None:
        append, point = store.append, Point(passing)

        async def watched(growth: Growth) -> Raced | None:
            raced = await append(growth)
            await point.passed()
            return raced

        _replace(store, "append", watched)

    _serve_on(alter)


BUGS: Final[Mapping[str, Callable[[int], None]]] = {
    each.__name__: each
    for each in (
        ack_before_commit,
        keyed_sent_before_opening,
        idempotency_ignored,
        no_recovery,
        events_read_at_start,
    )
}
KILL_POINTS: Final[Mapping[str, Callable[[int], None]]] = {
    each.__name__: each
    for each in (opening_held, before_commit, after_commit, before_send, after_answer, before_answer)
}


class _Later:
    """Work that nobody waits for, begun a little late."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[object]] = set()

    def begin(self, work: Coroutine[object, object, T]) -> "asyncio.Task[T]":
        async def late() -> T:
            await asyncio.sleep(random.uniform(*LATE_S))
            return await work

        task = asyncio.get_running_loop().create_task(late())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _serve_on(alter: Alter | None = None, connect: Connect = connect) -> None:
    """Have the hub served on a store that was altered."""

    def make(settings: Settings, clock: Clock, bus: Bus) -> Store:
        store = SqliteStore(
            settings.data / app.DATABASE,
            clock=clock,
            bus=bus,
            hold_s=settings.calls.hold_ms / 1000,
            wal_mib=settings.sqlite.wal_mib,
            readers=settings.sqlite.readers,
            connect=connect,
        )
        if alter is not None:
            alter(store)
        return store

    _replace(app, "serve", functools.partial(app.serve, make_store=make))


def _connecting(*, before: Point | None = None, after: Point | None = None) -> Connect:
    def connecting(path: Path, /) -> Connection:
        return CommitPoint(connect(path), before=before, after=after)

    return connecting


def _replace(owner: object, name: str, part: object) -> None:
    """Put a part in place of another for the rest of this process."""
    mock.patch.object(owner, name, part).start()


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def run(arguments: list[str]) -> int:
    """`NAME[=N] -- COMMAND …`: the command line of dragoman with that fault in it."""
    if len(arguments) < 2 or arguments[1] != "--":
        raise SystemExit("usage: python -m tests.support.planted NAME[=N] -- serve …")
    name, _, passing = arguments[0].partition("=")
    ({**BUGS, **KILL_POINTS})[name](int(passing or 1))
    sys.argv = ["dragoman", *arguments[2:]]
    return main()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
