"""Jobs: claimed by rank, fenced by owner and attempt. Each function is one step inside the writer's transaction.

A job that is owned is always owned by its replica's present epoch: a new epoch sets free what the earlier ones held.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.backends.sqlite.connection import Connection, Value, number
from dragoman.backends.sqlite.sql import SQL
from dragoman.ports.store import Job, Owner

OTHER_JOBS: Final = 1 << 48  # where the ids of jobs begin that are not a call's

_FENCED: Final = {name: SQL[name] for name in ("finish_job", "retry_job")}


class _Waiting(msgspec.Struct, frozen=True, array_like=True, order=True):
    rank: float
    id: int


class _Claimed(msgspec.Struct, frozen=True, array_like=True):
    id: int
    queue: str
    tenant: str
    task_id: str
    attempt: int
    payload: bytes


def lease(connection: Connection, queues: Sequence[str], limit: int, owner: Owner, now: int) -> list[Job]:
    """Claim the first due jobs of these queues by rank; none for an owner whose epoch has passed."""
    if number(connection, SQL["epoch_of"], (owner.replica,)) != owner.epoch:
        return []
    waiting: list[_Waiting] = []
    for queue in dict.fromkeys(queues):
        connection.execute(SQL["wake_jobs"], (queue, now)).fetchall()
        rows = connection.execute(SQL["waiting_jobs"], (queue, max(limit, 0))).fetchall()
        waiting += msgspec.convert(rows, list[_Waiting])
    return [_claim(connection, job.id, owner) for job in sorted(waiting)[: max(limit, 0)]]


def _claim(connection: Connection, job_id: int, owner: Owner) -> Job:
    row = connection.execute(SQL["claim_job"], (job_id, owner.replica, owner.epoch)).fetchall()[0]
    claimed = msgspec.convert(row, _Claimed)
    return Job(
        id=claimed.id,
        queue=claimed.queue,
        tenant=claimed.tenant,
        task_id=claimed.task_id,
        attempt=claimed.attempt,
        payload=claimed.payload,
        owner=owner,
    )


def finish(connection: Connection, job: Job) -> bool:
    """The job is gone; False if it was no longer ours."""
    return _fenced(connection, "finish_job", job)


def retry(connection: Connection, job: Job, run_at: int) -> bool:
    """The job waits until then; False if it was no longer ours."""
    return _fenced(connection, "retry_job", job, run_at)


def begin_epoch(connection: Connection, replica: str) -> Owner:
    """The next life of a replica."""
    epoch = number(connection, SQL["next_epoch"], (replica,)) or 1
    connection.execute(SQL["release_jobs"], (replica, epoch)).fetchall()
    return Owner(replica=replica, epoch=epoch)


def _fenced(connection: Connection, name: str, job: Job, *more: Value) -> bool:
    fence = (job.id, job.owner.replica, job.owner.epoch, job.attempt)
    return bool(connection.execute(_FENCED[name], (*fence, *more)).fetchall())
