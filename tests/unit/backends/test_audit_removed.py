"""Whoever removes calls or rows of the audit by hand is found out, though retention may remove them."""

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from tests.contracts.manual_clock import ManualClock
from tests.contracts.test_store_retention import DAY, expire_calls, quick, verified
from tests.support.run import run
from tests.unit.backends.conftest import Running

OLD, YOUNG = 5, 3
FORGED = {
    "a young call is gone": "DELETE FROM task WHERE number = 7",
    "a young call is gone and said to be removed": (
        "DELETE FROM task WHERE number = 7; UPDATE removed SET last = 7 WHERE first = 1"
    ),
    "a young call is gone, by a note of its own": (
        "DELETE FROM task WHERE number = 7;"
        " INSERT INTO removed (first, last, covered_by) SELECT 7, 7, max(n) FROM audit WHERE covers IS NOT NULL"
    ),
    "what was removed is said to be there": "DELETE FROM removed",
    "a removed call is there again": (
        "INSERT INTO task (number, id, tenant, caller, context, state, state_at, last_seq, digest, covered_by)"
        " SELECT 2, 'call_x', tenant, caller, context, state, state_at, last_seq, digest, covered_by"
        " FROM task WHERE number = 7"
    ),
    "more rows are gone than were removed": "DELETE FROM audit WHERE n = (SELECT n + 1 FROM audit_base)",
    "more rows are gone, and the beginning is moved": (
        "UPDATE audit_base SET n = n + 1, hash = (SELECT hash FROM audit WHERE audit.n = audit_base.n + 1);"
        " DELETE FROM audit WHERE n = (SELECT n FROM audit_base)"
    ),
    "the beginning is forgotten": "DELETE FROM audit_base",
}


@pytest.mark.req("E-24")
@pytest.mark.parametrize("forged", [None, *FORGED])
def test_what_is_removed_by_hand_is_found_out(
    store: Running, path: Path, clock: ManualClock, forged: str | None
) -> None:
    async def scenario() -> None:
        async with store() as running:
            for _ in range(OLD):
                await quick(running, clock)
            clock.advance(300 * DAY)
            await expire_calls(running, clock, days=30)
            clock.advance(150 * DAY)
            for _ in range(YOUNG):
                await quick(running, clock)
            assert (await running.expire_audit(clock.now() - timedelta(days=400))).rows > 1
        if forged is not None:
            with closing(sqlite3.connect(path)) as database:
                database.executescript(FORGED[forged])
        async with store() as running:
            broken = (await verified(running)).broken
            assert (broken is None) is (forged is None), forged

    run(scenario())
