"""What an earlier version owed its callers is owed by this one: migration 3 makes deliveries of its jobs."""

import sqlite3

from dragoman.backends.sqlite import schema

JOB = "INSERT INTO job (id, task, queue, rank, run_at, attempt, payload, parked) VALUES (?, 7, ?, 0, ?, 1, ?, ?)"


def test_jobs_of_an_earlier_version_become_deliveries_one_job_per_line() -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    steps = schema.migrations()
    schema.migrate(connection, steps[:2], 0)
    connection.execute(
        "INSERT INTO task (number, id, tenant, caller, context, state, state_at, last_seq) "
        "VALUES (7, 'call_7', 'acme', 'alice', 'ctx', 4, 1000, 5)"
    )
    first = 1 << 48
    connection.execute(JOB, (7, "call", None, b"", None))
    for number, (payload, run_at, parked) in enumerate(
        [
            (b'["cb_a",2]', None, "HTTP 500"),
            (b'["cb_a",3]', 5000, None),
            (b'["cb_a",4]', 5001, None),
            (b'["cb_b",4]', None, None),
        ]
    ):
        connection.execute(JOB, (first + number, "callback", run_at, payload, parked))
    schema.migrate(connection, steps, 0)
    found = connection.execute(
        "SELECT callback, seq, tenant, caller, state, answer FROM delivery ORDER BY id"
    ).fetchall()
    assert found == [
        ("cb_a", 2, "acme", "alice", 1, "HTTP 500"),
        ("cb_a", 3, "acme", "alice", 0, None),
        ("cb_a", 4, "acme", "alice", 0, None),
        ("cb_b", 4, "acme", "alice", 0, None),
    ]
    jobs = connection.execute("SELECT id, run_at FROM job ORDER BY id").fetchall()
    assert jobs == [(7, None), (first + 1, 5000), (first + 3, None)]
    connection.close()
