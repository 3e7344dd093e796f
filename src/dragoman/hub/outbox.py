"""The outbox: tells callers what became of their tasks, each notice a job that was born in the event's own commit.

It is posted to the callback's address, or to the endpoint of the agent that is to know; who has neither finds it in its
mailbox. Retried for about 28 hours, then parked until somebody replays it. An address that says 410, or that took
nothing for five days, is disabled: nothing is sent to it until it is enabled, or a replay arrives.

    claimed → prepared → a lane of its origin → one attempt → noted, and the next of its line is due

The order within a line is the store's: only its first notice has a job.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

import msgspec

from dragoman.hub.callback_secrets import CallbackSecrets
from dragoman.hub.key_ring import KeyRing
from dragoman.hub.lanes import Lane, Lanes, origin_of
from dragoman.hub.registry import Registry
from dragoman.model.call import Caller
from dragoman.model.callbacks import Callback
from dragoman.model.errors import AgentNotFound, Overloaded
from dragoman.model.events import Happened
from dragoman.model.task import Task, Trace
from dragoman.observe.notice_spans import attempt_span, next_span_id
from dragoman.observe.span import Span
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Courier, Told
from dragoman.ports.deliveries import DeliveryState, Outcome, Pending, Receiver
from dragoman.ports.store import Job, Scope, Store

LOG: Final = logging.getLogger("dragoman.hub")
# Seconds before each further attempt, ±20 %.
WAITS_S: Final = (5, 300, 1800, 7200, 18_000, 36_000, 36_000)
FAILING: Final = timedelta(days=5)  # so long without one success, and an address is disabled
GIVEN_BACK_S: Final = 5.0
WRITTEN_AGAIN_S: Final = 1.0


class Ready(msgspec.Struct, frozen=True, kw_only=True):
    """A notice that can be sent: what it says, where to, and how often that was tried."""

    job: Job
    pending: Pending
    callback: Callback
    task: Task
    happened: Happened
    url: str
    recipient: str
    held_against: Receiver | None


class Outbox:
    """Delivers notices."""

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        registry: Registry,
        courier: Courier,
        keys: KeyRing,
        secrets: CallbackSecrets,
        attempted: Callable[[str], None] = lambda _: None,
        traced: Callable[[Trace, Span], None] | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._registry = registry
        self._courier = courier
        self._keys = keys
        self._secrets = secrets
        self._attempted = attempted  # told what each attempt has come to
        self._traced = traced  # given the span of each attempt, where somebody wants spans
        self._lanes = Lanes()

    async def deliver(self, job: Job) -> None:
        """Try one notice, and then those that wait for the same origin; or let it wait for a lane."""
        ready = await self._prepared(job)
        if ready is None:
            return
        origin = origin_of(ready.url)
        match self._lanes.enter(origin, job):
            case Lane.WAITS:
                return
            case Lane.FULL:
                await self._store.retry(job, self._clock.now() + timedelta(seconds=GIVEN_BACK_S))
                return
            case Lane.FREE:
                pass
        try:
            await self._attempt(ready)
            while (following := self._lanes.following(origin)) is not None:
                await self._go_on(following, origin)
        finally:
            self._lanes.leave(origin)

    async def _go_on(self, job: Job, origin: str) -> None:
        try:
            ready = await self._prepared(job)
            if ready is not None and origin_of(ready.url) == origin:
                await self._attempt(ready)
            elif ready is not None:
                await self._store.retry(job, self._clock.now())  # Its receiver has moved: to the lanes of another.
        except Exception:  # one that breaks must not hold up those behind it
            LOG.exception("a notice broke", extra={"fields": {"call_id": job.task_id}})

    async def _prepared(self, job: Job) -> Ready | None:
        """What is to be sent; None where that is settled without dialling anybody."""
        pending = await self._store.pending(job)
        task = await self._store.load(Scope(tenant=job.tenant, principal=None), job.task_id)
        if pending is None or task is None:
            await self._note(job, None)
            return None
        callback = next((each for each in task.callbacks if each.id == pending.callback_id), None)
        happened = await self._store.events(job.task_id, pending.seq - 1, 1)
        if callback is None or not happened:
            await self._note(job, None)
            return None
        url, recipient, box = callback.url or "", callback.agent_id or "", task.caller_id
        if callback.url is None and callback.agent_id is not None:
            url, recipient, box = await self._receiver(task.tenant, callback)
        if not url:
            body = self._courier.put_into_words(callback, task, happened[0], recipient=recipient)
            if body is not None:
                await self._store.put_mail(task.tenant, box, body)
            await self._note(job, Outcome(state=DeliveryState.DELIVERED, at=self._clock.now(), answer="mailbox"))
            return None
        held_against = await self._store.receiver(task.tenant, url)
        if held_against is not None and held_against.disabled_at is not None and not pending.replays:
            answer = f"not sent, the address is disabled: {held_against.reason}"
            at = self._clock.now()
            await self._note(job, Outcome(state=DeliveryState.DISABLED, at=at, url=url, answer=answer, dialled=False))
            return None
        return Ready(
            job=job,
            pending=pending,
            callback=callback,
            task=task,
            happened=happened[0],
            url=url,
            recipient=recipient,
            held_against=held_against,
        )

    async def _attempt(self, ready: Ready) -> None:
        task, url = ready.task, ready.url
        started_at = self._clock.now()
        try:
            secret = await self._keys.caller_secret(task.tenant, task.caller_id)
            callback = self._secrets.revealed(ready.callback, task)
            told = await self._courier.notify(
                callback,
                task,
                ready.happened,
                url=url,
                recipient=ready.recipient,
                secret=secret,
                span_id=next_span_id(task.id, ready.pending),
            )
        except Exception:  # a notice that cannot be made must not hold its line for ever
            LOG.exception("a notice broke", extra={"fields": {"call_id": task.id}})
            told = Told(delivered=False, reason="the hub failed to make it")
        outcome = self._judged(ready, told)
        self._attempted("retry" if outcome.state is DeliveryState.PENDING else outcome.state)
        self._trace(ready, started_at, told, outcome)
        await self._note(ready.job, outcome)
        if outcome.state is not DeliveryState.DELIVERED and outcome.state is not DeliveryState.PENDING:
            _log(f"a callback is {outcome.state}", task, url, told.reason)
        if outcome.disables is not None:
            _log("a callback's address is disabled", task, url, outcome.disables)

    def _trace(self, ready: Ready, started_at: datetime, told: Told, outcome: Outcome) -> None:
        """Hand over the span of an attempt that was made."""
        nothing_to_say = told.delivered and told.status is None
        if self._traced is None or nothing_to_say:
            return
        task = ready.task
        span = attempt_span(task, ready.callback, ready.pending, started_at=started_at, told=told, outcome=outcome)
        self._traced(task.trace, span)

    def _judged(self, ready: Ready, told: Told) -> Outcome:
        """What an attempt's answer makes of its notice."""
        now, url, answer = self._clock.now(), ready.url, told.reason
        if told.delivered:
            return Outcome(state=DeliveryState.DELIVERED, at=now, url=url, answer=answer)
        known, tries = ready.held_against or Receiver(), ready.pending.tries + 1
        if told.gone:
            return Outcome(state=DeliveryState.DISABLED, at=now, url=url, answer=answer, disables=answer)
        if known.failing_since is not None and now - known.failing_since >= FAILING:
            why = f"no success since {known.failing_since:%Y-%m-%d %H:%M} UTC, at last {answer}"
            return Outcome(state=DeliveryState.DISABLED, at=now, url=url, answer=answer, disables=why)
        if known.disabled_at is not None:
            return Outcome(state=DeliveryState.DISABLED, at=now, url=url, answer=answer)
        if tries > len(WAITS_S):
            return Outcome(state=DeliveryState.PARKED, at=now, url=url, answer=answer)
        again_at = self._again_at(now, tries, told.retry_after_s)
        return Outcome(state=DeliveryState.PENDING, at=now, url=url, answer=answer, again_at=again_at)

    def _again_at(self, now: datetime, tries: int, asked_s: int | None) -> datetime:
        wait_s = self._clock.jitter(WAITS_S[tries - 1], 0.2)
        if asked_s is not None:
            wait_s = max(wait_s, asked_s)
        return now + timedelta(seconds=wait_s)

    async def _note(self, job: Job, outcome: Outcome | None) -> None:
        """Write what a notice has come to; an attempt was made, so a busy store is asked until it takes it."""
        while True:
            try:
                await self._store.attempted(job, outcome)
            except Overloaded:
                await self._clock.sleep(WRITTEN_AGAIN_S)
            else:
                return

    async def _receiver(self, tenant: str, callback: Callback) -> tuple[str, str, str]:
        """Where the agent that is to know takes this dialect's messages, how it is called there, and its mailbox."""
        name = callback.agent_id or ""
        try:
            agent = await self._registry.resolve(Caller(tenant=tenant, id=name), name)
        except AgentNotFound:
            return "", name, name
        for endpoint in agent.card.endpoints:
            if endpoint.dialect == callback.dialect:
                return endpoint.url or "", endpoint.tenant or agent.uuid, agent.id
        return "", agent.uuid, agent.id


def _log(what: str, task: Task, url: str, reason: str) -> None:
    # Of an address only the origin: its path may be a secret.
    fields = {"call_id": task.id, "caller": task.caller_id, "receiver": origin_of(url), "reason": reason}
    LOG.warning(what, extra={"fields": fields})
