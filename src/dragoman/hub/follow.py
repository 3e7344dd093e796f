"""Follow one task to its end: the bus is listened to first, then the store is read, so nothing falls between.

Does not check permission (`tasks.load` did).
"""

import asyncio
from typing import Final

from dragoman.model.errors import AgentTimeout
from dragoman.model.states import INTERRUPTED
from dragoman.model.task import Task
from dragoman.ports.bus import Bus, Lost, Said, task_topic
from dragoman.ports.clock import Clock
from dragoman.ports.store import Scope, Tasks

NAMING_S: Final = 2.0


async def until_settled(task: Task, *, store: Tasks, bus: Bus, clock: Clock, deadline: float, timeout_s: float) -> Task:
    """The task once it has ended or waits for its caller.

    Raises AgentTimeout where that does not happen before the deadline.
    """
    if settled(task):
        return task
    try:
        async with (
            asyncio.timeout_at(asyncio.get_running_loop().time() + deadline - clock.monotonic()),
            bus.subscribe(task_topic(task.id)) as said,
        ):
            async for each in said:
                now = await _now(each, task, store)
                if now is not None and settled(now):
                    return now
    except TimeoutError:
        pass
    raise AgentTimeout(timeout_ms=round(timeout_s * 1000), agent_id=task.agent_id, call_id=task.id)


async def named(task: Task, *, store: Tasks, bus: Bus) -> Task:
    """The task once its target has given it a name, or has ended it; as it is, where that takes too long."""
    try:
        async with asyncio.timeout(NAMING_S), bus.subscribe(task_topic(task.id)) as said:
            async for each in said:
                now = await _now(each, task, store)
                if now is None:
                    break
                task = now
                if task.ended or (task.remote is not None and task.remote.task_id is not None):
                    break
    except TimeoutError:
        pass
    return task


async def _now(said: Said | Lost, task: Task, store: Tasks) -> Task | None:
    """The task as it is now: what was said of it, or else what the store has."""
    if isinstance(said, Said) and said.grown is not None:
        return said.grown.task
    return await store.load(Scope(tenant=task.tenant, principal=None), task.id)


def settled(task: Task) -> bool:
    """Whether nothing more will happen by itself."""
    return task.ended or task.state in INTERRUPTED
