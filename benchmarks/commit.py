"""One durable commit, alone: the yardstick for added latency.

Runs alone: `python -m benchmarks.commit FOLDER EVERY_MS SECONDS`. One call after another is opened and ended in the
hub's own store: the same writer thread, indexes, WAL, synchronous=FULL, rows as big as those of a call, their trace ids
in no order. What the hub adds beyond this is not the disk's. One begins every so many milliseconds, 0 for one right
after the other: a disk and a thread that rested take longer, so what calls at some rate wait for is a commit at that
rate. Like calls, they are timed after a warm-up: a log that still grows takes a quarter longer.
"""

import asyncio
import json
import statistics
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import uvloop

from benchmarks.calls import PLACEHOLDER, QUERY, new_prefix, numbered
from benchmarks.rounds import WARM_UP_S
from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite.store import SqliteStore
from dragoman.model.content import Artifact, Data, Message, Role
from dragoman.model.events import ArtifactChunk, Remote, Sent, StatusChanged, TaskEvent
from dragoman.model.lifecycle import fold
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace
from dragoman.ports.clock import SystemClock
from dragoman.ports.store import CALLS, Growth, NewJob, Opening

SAID: Final = Data(value={"echo": PLACEHOLDER.decode(), "query": QUERY, "max_results": 3})


def opened(task_id: str, at: datetime, trace_id: str) -> Task:
    """A call as the hub opens it."""
    message = Message(id=f"msg_{task_id}", role=Role.USER, parts=(SAID,))
    return Task(
        id=task_id,
        tenant="default",
        caller_id="key_benchmark",
        agent_id="agt_benchmark",
        agent_version="1.0.0",
        dialect="platform",
        context_id=f"ctx-{task_id}",
        asked=SendTask(message=message, agent="agt_benchmark", skill="echo"),
        trace=Trace(trace_id=trace_id, span_id="0" * 16, given_id=f"trace_{trace_id}"),
        created_at=at,
        updated_at=at,
        last_seq=1,
    )


def ended(at: datetime) -> tuple[TaskEvent, ...]:
    """What happens to it."""
    made = Artifact(id="artifact-1", parts=(SAID,), name="echo")
    return (
        Sent(at=at, agent_id="agt_benchmark", remote=Remote(task_id="task-1", context_id="context-1")),
        ArtifactChunk(at=at, artifact=made),
        StatusChanged(at=at, state=TaskState.COMPLETED),
    )


async def commits(file: Path, every_s: float, seconds: float) -> dict[str, Any]:
    """Commit one call after another for so long after the warm-up, a new one every so often."""
    clock, times, prefix = SystemClock(), list[float](), new_prefix().removeprefix("trace_")
    store = SqliteStore(file, clock=clock, bus=LocalBus())
    await store.start()
    job = NewJob(queue=CALLS, owner=await store.begin_epoch("benchmark"))
    begins = time.perf_counter()
    warm = begins + WARM_UP_S
    number = 0
    while begins < warm + seconds or len(times) < 100:
        begins += every_s
        time.sleep(max(0.0, begins - time.perf_counter()))  # noqa: ASYNC251 - nothing else is to be done meanwhile
        begins = max(begins, time.perf_counter())  # What is late is not made up for.
        at = datetime.now(UTC)
        task, events = opened(clock.new_id("a2a_call_"), at, numbered(prefix, number)), ended(at)
        number += 1
        grown = fold(task, events)
        await store.open(Opening(task=task, job=job, durable=False))
        began = time.perf_counter()
        await store.append(Growth(task=grown, after=1, events=events))
        if began > warm:
            times.append((time.perf_counter() - began) * 1e3)
    await store.close()
    cuts = statistics.quantiles(times, n=100)
    return {"p50_ms": cuts[49], "p99_ms": cuts[98], "commits": len(times)}


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(
            json.dumps(
                runner.run(commits(Path(sys.argv[1]) / "commit.db", float(sys.argv[2]) / 1e3, float(sys.argv[3])))
            )
        )
