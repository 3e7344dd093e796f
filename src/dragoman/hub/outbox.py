"""The outbox: tells callers what became of their tasks, each notice a job that was born in the event's own commit.

It is posted to the callback's address, or to the endpoint of the agent that is to know; who has neither finds it in its
mailbox. Retried for about 28 hours, then set aside; an address that says 410 is not asked again.
"""

import asyncio
import logging
from datetime import datetime, timedelta
from typing import Final

from dragoman.hub.key_ring import KeyRing
from dragoman.hub.owed import Owed, read_owed
from dragoman.hub.registry import Registry
from dragoman.model.call import Caller
from dragoman.model.errors import AgentNotFound
from dragoman.model.events import Happened
from dragoman.model.operations import Callback
from dragoman.model.task import Task
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier, Told
from dragoman.ports.store import Job, Scope, Store

LOG: Final = logging.getLogger("dragoman.hub")
# Seconds before each further attempt, ±20 %.
WAITS_S: Final = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
LONGEST_AFTER_S: Final = 3600


class Outbox:
    """Delivers notices."""

    def __init__(self, *, store: Store, clock: Clock, registry: Registry, courier: Courier, keys: KeyRing) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._courier = courier
        self._keys = keys
        self._turns: dict[tuple[str, str], asyncio.Lock] = {}  # of each callback: its notices go one after the other
        self._late: dict[tuple[str, str], tuple[int, datetime]] = {}  # the notice that the others wait for

    async def deliver(self, job: Job) -> None:
        """Deliver one notice, or put it off; a callback hears of its task in the order in which things happened."""
        notice = read_owed(job.payload)
        line = (job.task_id, notice.callback_id)
        turn = self._turns.setdefault(line, asyncio.Lock())
        try:
            async with turn:
                late = self._late.get(line)
                if late is not None and late[0] < job.id:
                    await self._store.retry(job, late[1] + timedelta(milliseconds=job.id - late[0]))
                else:
                    await self._deliver(job, notice, line)
        finally:
            if not turn.locked() and line not in self._late:
                self._turns.pop(line, None)

    async def _deliver(self, job: Job, notice: Owed, line: tuple[str, str]) -> None:
        task = await self._store.load(Scope(tenant=job.tenant, principal=None), job.task_id)
        callback = None if task is None else _callback(task, notice.callback_id)
        happened = await self._store.events(job.task_id, notice.seq - 1, 1)
        if task is None or callback is None or not happened:
            await self._store.finish(job)
            return
        told = await self._tell(callback, task, happened[0])
        self._late.pop(line, None)
        if told.delivered:
            await self._store.finish(job)
        elif told.gone or job.attempt > len(WAITS_S):
            await self._store.park(job, told.reason)
            LOG.warning("a callback was set aside", extra={"fields": {"call_id": task.id, "reason": told.reason}})
        else:
            wait_s = self._clock.jitter(WAITS_S[job.attempt - 1], 0.2)
            if told.retry_after_s is not None:
                wait_s = max(wait_s, min(told.retry_after_s, LONGEST_AFTER_S))
            due = self._clock.now() + timedelta(seconds=wait_s)
            self._late[line] = (job.id, due)
            await self._store.retry(job, due)

    async def _tell(self, callback: Callback, task: Task, happened: Happened) -> Told:
        url, recipient, box = callback.url or "", callback.agent_id or "", task.caller_id
        if callback.url is None and callback.agent_id is not None:
            url, recipient, box = await self._receiver(task.tenant, callback)
        if url:
            secret = await self._keys.caller_secret(task.tenant, task.caller_id)
            return await self._courier.notify(callback, task, happened, url=url, recipient=recipient, secret=secret)
        body = self._courier.put_into_words(callback, task, happened, recipient=recipient)
        if body is not None:
            await self._store.put_mail(task.tenant, box, body)
        return Told(delivered=True)

    async def _receiver(self, tenant: str, callback: Callback) -> tuple[str, str, str]:
        """Where the agent that is to know takes this dialect's messages, how it is called there, and its mailbox."""
        name = callback.agent_id or ""
        try:
            agent = await self._registry.resolve(Caller(tenant=tenant, id=name), name)
        except AgentNotFound:
            return "", name, name
        for endpoint in agent.card.endpoints:
            if endpoint.dialect == callback.dialect and endpoint.url is not None:
                return endpoint.url, endpoint.tenant or agent.uuid, agent.id
        return "", agent.uuid, agent.id


def _callback(task: Task, callback_id: str) -> Callback | None:
    return next((callback for callback in task.callbacks if callback.id == callback_id), None)
