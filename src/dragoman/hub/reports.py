"""What agents report of tasks they were given: taken from the task's own target, and from nobody else.

A late or illegal report changes nothing and is no error: redelivery is normal.
"""

import contextlib
import logging
from collections.abc import Callable
from typing import Final

from dragoman.hub.authorize import may_change
from dragoman.hub.cancel import Canceller
from dragoman.hub.registry import Registry
from dragoman.hub.tasks import TaskBook
from dragoman.hub.validate import Schemas
from dragoman.model.agent import Agent
from dragoman.model.answers import Noted
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound, CapabilityMismatch, TaskNotCancelable, TaskNotFound
from dragoman.model.events import Sent
from dragoman.model.lifecycle import legal
from dragoman.model.operations import ReportTask
from dragoman.model.task import Task
from dragoman.ports.store import Scope, Tasks

LOG: Final = logging.getLogger("dragoman.hub")


class Reports:
    """Takes reports."""

    def __init__(
        self,
        *,
        store: Tasks,
        registry: Registry,
        tasks: TaskBook,
        schemas: Schemas,
        canceller: Canceller,
        ended: Callable[[Task], object],
    ) -> None:
        self._store = store
        self._registry = registry
        self._tasks = tasks
        self._schemas = schemas
        self._canceller = canceller
        self._ended = ended  # told of a call that has ended; nobody may carry it now

    async def take(self, caller: Caller, asked: ReportTask) -> Noted:
        """Note a report. Raises TaskNotFound, CapabilityMismatch, IdempotencyConflict."""
        agent = await self._reporter(caller, asked)
        task = await self._store.load(Scope(tenant=caller.tenant, principal=None), asked.task_id)
        if task is None and asked.recipient is not None:
            task = await self._called_by(caller, asked.recipient, asked)
        if task is not None and agent is not None and task.agent_id == agent.id:
            return await self._apply(agent, task, asked)
        if asked.cancels:
            assigned = await self._tasks.by_alias(caller, asked.sender, asked.task_id)
            if assigned is not None:
                return await self._cancel(caller, assigned)
        LOG.info("a report names no task", extra={"fields": {"task_id": asked.task_id, "sender": asked.sender}})
        raise TaskNotFound(f"There is no task {asked.task_id!r} of this agent.", call_id=asked.task_id)

    async def _called_by(self, caller: Caller, giver: str, asked: ReportTask) -> Task | None:
        """The task that the one who gave it calls so, or that one of its messages made."""
        principals = [caller.id]
        with contextlib.suppress(AgentNotFound):
            known = await self._registry.resolve(caller, giver)
            principals += [known.id, known.owner_id]  # its own key gave the task, or that of its owner
        for principal in principals:
            one = Caller(tenant=caller.tenant, id=principal)
            task = await self._tasks.by_alias(one, giver, asked.task_id)
            if task is None and asked.about is not None:
                task = await self._tasks.by_key(one, *asked.about)
            if task is not None:
                return task
        return None

    async def _reporter(self, caller: Caller, asked: ReportTask) -> Agent | None:
        """The agent that reports, if the caller may speak for it."""
        name = asked.sender or caller.agent_id
        if name is None:
            return None
        try:
            agent = await self._registry.resolve(caller, name)
        except AgentNotFound:
            return None
        if not may_change(caller, agent):
            raise CapabilityMismatch(f"This key may not speak for {name}.", sender=name)
        return agent

    async def _apply(self, agent: Agent, task: Task, asked: ReportTask) -> Noted:
        once = None
        if asked.key is not None:
            once = self._tasks.report_once(agent.id, asked.key, asked.digest)
            if await self._tasks.was_reported(task.tenant, once):
                return Noted(task=task)
        if not legal(task.state, asked.events):
            LOG.info("a report came too late", extra={"fields": {"call_id": task.id, "sender": asked.sender}})
            return Noted(task=task, applied=False)
        skill = None if task.skill is None or asked.sealed else agent.card.skill(task.skill)
        compiled = self._schemas.of(agent, skill)
        events = asked.events
        if not task.attempt:
            # It has the task, and its report overtook its word that it took it: after an end that would not be kept.
            events = (Sent(at=events[0].at, agent_id=agent.id), *events)
        grown = await self._tasks.record(task, events, compiled, once)
        if grown.ended:
            self._ended(grown)
        return Noted(task=grown, applied=grown.last_seq > task.last_seq)

    async def _cancel(self, caller: Caller, task: Task) -> Noted:
        try:
            return Noted(task=await self._canceller.cancel(caller, task, None))
        except TaskNotCancelable:
            return Noted(task=task, applied=False)
