"""An audit that begins on data of an earlier version: it says from where on it can vouch."""

import sqlite3
from contextlib import closing
from pathlib import Path

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import codec, schema
from dragoman.backends.sqlite.connection import connect, prepare
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.ports.audit import BEGUN, AuditQuery
from tests.contracts.manual_clock import ManualClock
from tests.contracts.samples import ALICE, completed, moved, new_task, opening, sent, step
from tests.contracts.test_store_audit import checked
from tests.support.run import run

BEFORE = 7  # the last schema without an audit
HEAD = "INSERT INTO task (number, id, tenant, caller, context, state, state_at, last_seq, agent, doc, log) VALUES "


def earlier(path: Path, clock: ManualClock) -> tuple[Task, Task]:
    """Data of an earlier version: a call of one row, and one that is still open; both as they stand."""
    quick, still_open = new_task(clock), new_task(clock)
    growth = step(quick, sent(clock), completed(clock))
    with closing(connect(path)) as connection:
        prepare(connection, reads_only=False)
        schema.migrate(connection, schema.migrations()[:BEFORE], 0)
        at = codec.to_micros(clock.now())
        log = codec.pack(codec.Log(quick, growth.events))
        row = (1, quick.id, quick.tenant, quick.caller_id, quick.context_id, 4, at, 3, "weather", None, log)
        connection.execute(HEAD + "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        doc = codec.pack(still_open)
        row = (2, still_open.id, "acme", "alice", still_open.context_id, 0, at, 1, "weather", doc, None)
        connection.execute(HEAD + "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        event = codec.pack_event(codec.first_event(still_open))
        connection.execute("INSERT INTO event (key, body) VALUES (?, ?)", (2 << codec.SEQ_BITS | 1, event))
    return growth.task, still_open


def test_calls_of_before_are_counted_apart_and_covered_once_they_change(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "hub.db"
    quick, still_open = earlier(path, clock)

    async def scenario() -> None:
        store = SqliteStore(path, clock=clock, bus=LocalBus())
        await store.start()
        first = (await store.list_audit(AuditQuery())).rows[0]
        assert (first.n, first.action, first.object) == (1, BEGUN, "calls after 2")
        found = await checked(store)
        assert (found.broken, found.unvouched, found.since) == (None, 2, clock.now())
        working = step(still_open, moved(clock, TaskState.WORKING))
        await store.append(working)
        await store.append(step(working.task, completed(clock)))
        task = new_task(clock)
        await store.open(opening(task))
        await store.append(step(task, completed(clock)))
        found = await checked(store)
        assert (found.broken, found.unvouched) == (None, 1)
        assert await store.load(ALICE, quick.id) == quick
        await store.forget(ALICE, [quick.id])
        found = await checked(store)
        assert (found.broken, found.unvouched) == (None, 0)
        await store.close()

    run(scenario())


def test_a_call_without_a_digest_that_came_later_is_found(tmp_path: Path) -> None:
    clock, path = ManualClock(), tmp_path / "hub.db"
    earlier(path, clock)

    async def scenario() -> None:
        store = SqliteStore(path, clock=clock, bus=LocalBus())
        await store.start()
        with closing(sqlite3.connect(path)) as file, file:
            file.execute(HEAD + "(3, 'forged', 'acme', 'alice', 'c', 4, 0, 1, 'weather', x'00', NULL)")
        found = await checked(store)
        assert found.broken is not None
        assert found.broken.call_id == "forged"
        await store.close()

    run(scenario())
