"""Fills a hub's data with calls that are open, as a hub that was killed in the midst of them leaves it.

Runs alone: `python -m tests.support.preload DATA AGENT COUNT` writes COUNT openings through the store and kills itself,
so that they stand in the log that the next start must read. Every other call has a key.
"""

import asyncio
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Final

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.hub.authenticate import DEFAULT_TENANT
from dragoman.model.content import Data, Message, Role
from dragoman.model.operations import SendTask
from dragoman.model.task import Task, Trace
from dragoman.ports.clock import Clock, SystemClock
from dragoman.ports.store import CALLS, NewJob, Once, Opening, Owner
from dragoman.server.app import DATABASE
from dragoman.server.build import REPLICA
from tests.support.hub import ROOT

AT_ONCE: Final = 500
CALLER: Final = "preload"
TIME_S: Final = 600.0  # long enough to outlive the test


def preload(data: Path, agent: str, count: int) -> None:
    """Leave so many open calls in the data of a hub that does not run."""
    command = [sys.executable, "-m", "tests.support.preload", str(data), agent, str(count)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


async def _fill(data: Path, agent: str, count: int) -> None:
    clock = SystemClock()
    store = SqliteStore(data / DATABASE, clock=clock, bus=LocalBus())
    await store.start()
    owner = await store.begin_epoch(REPLICA)
    for first in range(0, count, AT_ONCE):
        numbers = range(first, min(first + AT_ONCE, count))
        await asyncio.gather(*(store.open(_opening(clock, agent, number, owner)) for number in numbers))
    os.kill(os.getpid(), signal.SIGKILL)


def _opening(clock: Clock, agent: str, number: int, owner: Owner) -> Opening:
    now = clock.now()
    key = f"preload-{number}" if number % 2 else None
    said = Message(id=clock.new_id("msg_"), role=Role.USER, parts=(Data(value={"number": number}),), at=now)
    asked = SendTask(message=said, agent=agent, skill="echo", idempotency_key=key)
    task = Task(
        id=clock.new_id("a2a_call_"),
        tenant=DEFAULT_TENANT,
        caller_id=CALLER,
        agent_id=agent,
        agent_version="1.0.0",
        dialect="platform",
        context_id=clock.new_id("ctx_"),
        asked=asked,
        trace=Trace(trace_id=f"{number:032x}", span_id=f"{number:016x}"),
        created_at=now,
        updated_at=now,
        skill="echo",
        deadline=now + timedelta(seconds=TIME_S),
        last_seq=1,
    )
    once = key and Once(principal=CALLER, scope="key", key=key, digest=bytes(32), expires_at=now + timedelta(hours=24))
    return Opening(
        task=task,
        job=NewJob(queue=CALLS, owner=owner),
        durable=True,
        once=once or None,
    )


if __name__ == "__main__":
    asyncio.run(_fill(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
