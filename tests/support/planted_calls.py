"""Bugs in how calls are kept: each breaks a promise that a killed or restarted hub is held to."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.backends.sqlite import jobs
from dragoman.backends.sqlite.connection import Connection, number
from dragoman.backends.sqlite.sql import SQL
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.hub.take_up import TakeUp
from dragoman.model.operations import ListTasks, Wait
from dragoman.ports.store import CALLS, Duplicate, Growth, Job, Opened, Opening, Owner, Raced, Scope
from tests.support.planting import Later, put_in_place, serve_on

if TYPE_CHECKING:
    import asyncio


def ack_before_commit(_: int) -> None:
    """A step of a task is acknowledged at once and written a little later."""

    def alter(store: SqliteStore) -> None:
        append, later = store.append, Later()

        async def early(growth: Growth) -> Raced | None:
            later.begin(lambda: append(growth))
            return None

        put_in_place(store, "append", early)

    serve_on(alter)


def keyed_sent_before_opening(_: int) -> None:
    """A call with a key is sent before its opening is on disk."""

    def alter(store: SqliteStore) -> None:
        open_, append, later = store.open, store.append, Later()
        opening: dict[str, asyncio.Task[Opened | Duplicate]] = {}

        async def early(asked: Opening) -> Opened | Duplicate:
            task, once = asked.task, asked.once
            known = once and await store.find_once(task.tenant, once.principal, once.scope, once.key)
            if once is None or known is not None:
                return await open_(asked)
            opening[task.id] = later.begin(lambda: open_(asked))
            return Opened()

        async def ordered(growth: Growth) -> Raced | None:
            # The order of opening and step is kept: only the waiting before the send is left out.
            if growth.task.id in opening:
                await opening.pop(growth.task.id)
            return await append(growth)

        put_in_place(store, "open", early)
        put_in_place(store, "append", ordered)

    serve_on(alter)


def idempotency_ignored(_: int) -> None:
    """A key names nothing: every repeat is a new call."""

    def alter(store: SqliteStore) -> None:
        open_ = store.open

        async def forgetful(asked: Opening) -> Opened | Duplicate:
            return await open_(msgspec.structs.replace(asked, once=None))

        put_in_place(store, "open", forgetful)

    serve_on(alter)


def accepted_before_commit(_: int) -> None:
    """A call is accepted at once and written a little later."""

    def alter(store: SqliteStore) -> None:
        open_, later = store.open, Later()

        async def early(asked: Opening) -> Opened | Duplicate:
            if asked.task.asked.wait is not Wait.NONE:
                return await open_(asked)
            later.begin(lambda: open_(asked))
            return Opened()

        put_in_place(store, "open", early)

    serve_on(alter)


def no_lease(_: int) -> None:
    """What an earlier life held is held for ever."""

    def kept(connection: Connection, replica: str) -> Owner:
        return Owner(replica=replica, epoch=number(connection, SQL["next_epoch"], (replica,)) or 1)

    put_in_place(jobs, "begin_epoch", kept)


def claimed_twice(_: int) -> None:
    """Whoever asks for jobs gets them, whether somebody has them or not."""
    lease = jobs.lease

    def unfenced(connection: Connection, queues: Sequence[str], limit: int, owner: Owner, now: int) -> list[Job]:
        claimed = lease(connection, queues, limit, owner, now)
        if claimed and queues[0] == CALLS:
            unowned = [(job.id,) for job in claimed]
            connection.executemany("UPDATE job SET replica=NULL, epoch=NULL WHERE id=?1", unowned)
        return claimed

    put_in_place(jobs, "lease", unfenced)


def no_recovery(_: int) -> None:
    """What an earlier life left open is not taken up."""

    async def nothing(_self: TakeUp, _job: Job) -> None:
        return

    put_in_place(TakeUp, "carry", nothing)


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

        put_in_place(store, "begin_epoch", thorough)

    serve_on(alter)
