"""Calls to one agent without a hub: its card is read, its dialect spoken by the hub's own courier, its events folded.

look ─► card ─► courier ─► events ─► task       tasks are kept in this process alone, and not for ever
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Final, NamedTuple, NoReturn, TypeVar, final

import msgspec

from dragoman.delivery.courier import HttpCourier
from dragoman.delivery.over_http import Wire
from dragoman.delivery.probe import look
from dragoman.dialects import DIALECTS
from dragoman.dialects.platform.inbound import SLUG
from dragoman.dialects.uuids import uuid_of
from dragoman.model.agent import Agent, Skill
from dragoman.model.call import AdmittedCall, Caller, OpenedCall
from dragoman.model.content import Blob
from dragoman.model.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    BadParams,
    ContentRefused,
    NotSupported,
    TaskFinished,
    TaskNotCancelable,
    TaskNotFound,
)
from dragoman.model.events import Happened, MessageAdded, Remote, StatusChanged, TaskEvent
from dragoman.model.fit import Feature, fit_parts
from dragoman.model.http import Headers
from dragoman.model.lifecycle import fold, legal
from dragoman.model.operations import SendTask
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.net.client import BODY_BYTES, Client
from dragoman.observe.trace import read_trace
from dragoman.ports.clock import Clock
from dragoman.sdk.client.per_loop import PerLoop
from dragoman.sdk.direct.card import skill_of, takes_text_only, usable_card
from dragoman.sdk.direct.proof import DirectProof
from dragoman.security.key_manager import KeyManager

KEPT: Final = 1000  # calls, and conversations, that are remembered
TIMEOUT_S: Final = 30.0
CALLER: Final = Caller(tenant="default", id="direct")

_REFUSED: Final = "agent_refused_hub"

Value = TypeVar("Value")


class _Reach(NamedTuple):
    wire: Wire
    courier: HttpCourier
    proof: DirectProof
    looking: asyncio.Lock


@final
class OneAgent:
    """One agent by its URL, and the calls that were made to it."""

    def __init__(self, url: str, dialect: str | None, keys: KeyManager, clock: Clock) -> None:
        """Ask nothing yet. Raises BadParams for a dialect that there is none of."""
        if dialect is not None and dialect not in DIALECTS:
            raise BadParams(f"There is no dialect {dialect!r}; there are: {', '.join(DIALECTS)}.")
        self.url = url
        self._dialect = dialect
        self._keys = keys
        self._clock = clock
        self._reach = PerLoop(clock, self._reached)
        self._agent: Agent | None = None
        self._tasks: OrderedDict[str, Task] = OrderedDict()
        self._contexts: OrderedDict[str, str] = OrderedDict()  # our name of a conversation → the agent's own

    async def close(self) -> None:
        """Close the connections of the running loop."""
        await self._reach.close()

    async def agent(self) -> Agent:
        """The agent, with the one endpoint that it is called by; looked at once.

        Raises AgentUnavailable, BadParams, NotSupported.
        """
        if self._agent is None:
            reach = await self._reach.get()
            async with reach.looking:
                self._agent = self._agent or await self._looked(reach.wire)
        return self._agent

    async def send(self, asked: SendTask, headers: Headers) -> Task:
        """The task at its end, or where it waits for its caller. Raises what keeps the call from being made."""
        opened = await self._opened(asked, headers)
        task = opened.task
        async with aclosing(self._proven(opened)) as batches:
            async for batch in batches:
                task = batch[1]
        return task

    async def stream(self, asked: SendTask, headers: Headers) -> AsyncGenerator[StreamItem]:
        """The task, then what happens to it."""
        opened = await self._opened(asked, headers)
        yield Snapshot(task=opened.task)
        seq = opened.task.last_seq
        async with aclosing(self._proven(opened)) as batches:
            async for events, task in batches:
                for event in events:
                    seq += 1
                    settled = task.ended or task.state in INTERRUPTED
                    if settled and event is events[-1] and isinstance(event, StatusChanged):
                        yield Ended(seq=seq, event=event, task=task)
                    else:
                        yield Happened(seq=seq, event=event)

    async def cancel(self, task_id: str, reason: str | None) -> Task:
        """The task, cancelled here and, best effort, there. Raises TaskNotFound, TaskNotCancelable."""
        task = self.task(task_id)
        if task.ended:
            raise TaskNotCancelable(f"{task.id} has ended: {task.state}.", call_id=task.id)
        agent = await self.agent()
        task = self._grown(task, [StatusChanged(at=self._clock.now(), state=TaskState.CANCELED)])
        await (await self._reach.get()).courier.cancel(task, agent, reason or "cancelled by the caller")
        return task

    def task(self, task_id: str) -> Task:
        """A call that was made before. Raises TaskNotFound."""
        task = self._tasks.get(task_id)
        if task is None:
            raise TaskNotFound(f"There is no call {task_id!r}: a client without a hub remembers its own last {KEPT}.")
        return task

    async def _looked(self, wire: Wire) -> Agent:
        seen = await look(self.url, fetch=wire.fetch, dialects=DIALECTS, clock=self._clock, named=self._dialect)
        now = self._clock.now()
        return Agent(
            card=usable_card(seen),
            uuid=uuid_of(self.url),
            tenant=CALLER.tenant,
            owner_id=CALLER.id,
            registered_at=now,
            updated_at=now,
        )

    def _reached(self, client: Client) -> _Reach:
        wire = Wire(client=client, max_answer=BODY_BYTES)
        proof = DirectProof(self._keys, wire, self._clock)
        courier = HttpCourier(
            wire=wire,
            boxes=_NoBoxes(),
            credentials=proof,
            clock=self._clock,
            dialects=DIALECTS,
            hub_url="",
            hub_id=uuid_of(self.url, CALLER.id),
        )
        return _Reach(wire, courier, proof, asyncio.Lock())

    async def _opened(self, asked: SendTask, headers: Headers) -> OpenedCall:
        agent = await self.agent()
        await (await self._reach.get()).proof.ready(agent)
        endpoint = agent.card.endpoints[0]
        if asked.agent is not None and asked.agent not in (agent.id, *agent.card.aliases):
            raise AgentNotFound(f"{self.url} is {agent.id}, not {asked.agent}.", agent_id=asked.agent)
        timeout_s = asked.timeout_s or TIMEOUT_S
        if asked.continues is not None:
            task = self._continued(asked, agent)
            skill = None if task.skill is None else agent.card.skill(task.skill)
        else:
            skill = skill_of(agent.card, asked.skill)
            task = self._opening(asked, agent, skill, headers, timeout_s)
        parts = fit_parts(
            asked.message.parts, endpoint.features, text_only=takes_text_only(agent.card, skill), host=_no_host
        )
        call = AdmittedCall(
            caller=CALLER,
            operation=asked,
            agent=agent,
            endpoint=endpoint,
            skill=skill,
            message=msgspec.structs.replace(asked.message, parts=parts),
            task=task,
            timeout_s=timeout_s,
            deadline=self._clock.monotonic() + timeout_s,
        )
        return OpenedCall(call=call, task=task, attempt=task.attempt + 1)

    def _opening(self, asked: SendTask, agent: Agent, skill: Skill | None, headers: Headers, timeout_s: float) -> Task:
        now = self._clock.now()
        task_id = self._clock.new_id(DIALECTS[SLUG].task_prefix)
        known = None if asked.context_id is None else self._contexts.get(asked.context_id)
        return Task(
            id=task_id,
            tenant=CALLER.tenant,
            caller_id=CALLER.id,
            agent_id=agent.id,
            agent_version=agent.card.version,
            dialect=SLUG,
            context_id=asked.context_id or uuid_of(task_id),
            asked=asked,
            trace=read_trace(headers, task_id),
            created_at=now,
            updated_at=now,
            skill=skill.id if skill is not None else asked.skill,
            deadline=now + timedelta(seconds=timeout_s),
            remote=None if known is None else Remote(context_id=known),
            last_seq=1,
        )

    def _continued(self, asked: SendTask, agent: Agent) -> Task:
        task = self.task(asked.continues or "")
        if Feature.CONTINUE not in agent.card.endpoints[0].features:
            raise NotSupported(f"{agent.id} takes no further messages in a task.", agent_id=agent.id)
        if task.state not in INTERRUPTED:
            raise TaskFinished(f"{task.id} takes no more messages.", call_id=task.id, state=task.state.value)
        now = self._clock.now()
        said = MessageAdded(at=now, message=asked.message)
        return self._grown(task, [said, StatusChanged(at=now, state=TaskState.WORKING)])

    async def _proven(self, opened: OpenedCall) -> AsyncGenerator[tuple[Sequence[TaskEvent], Task]]:
        """Each batch of what happens. An agent that refuses a token is shown a new one, once.

        Raises NotAuthenticated where it is the credential that the agent does not take.
        """
        proof = (await self._reach.get()).proof
        while True:
            refused = False
            async with aclosing(self._carried(opened)) as batches:
                async for events, task in batches:
                    refused = _is_refusal(task)
                    if not refused:
                        yield events, task
            if not refused:
                return
            if not proof.renews():
                raise proof.refused(opened.call.agent)

    async def _carried(self, opened: OpenedCall) -> AsyncGenerator[tuple[Sequence[TaskEvent], Task]]:
        """Each batch of what happens, and the task after it, until it is settled."""
        courier, call = (await self._reach.get()).courier, opened.call
        task, settled = opened.task, False
        if courier.streams(opened):
            async with aclosing(courier.stream(opened)) as stream:
                async for delivered in stream:
                    kept = legal(task.state, delivered.events)
                    task, settled = self._grown(task, kept), delivered.settled
                    yield kept, task
        else:
            delivered = await courier.deliver(opened)
            kept = legal(task.state, delivered.events)
            task, settled = self._grown(task, kept), delivered.settled
            yield kept, task
        if settled or task.ended:
            return
        features = call.endpoint.features
        if Feature.REPORTS in features and Feature.GET not in features:
            raise AgentError(
                f"{call.agent.card.name} took the call and reports to a hub when it is done: call it through one.",
                reason="reports_to_a_hub",
            )
        async with aclosing(courier.follow(opened, lambda: task)) as further:
            async for events in further:
                kept = legal(task.state, events)
                task = self._grown(task, kept)
                yield kept, task
                if task.ended:
                    break
        if task.failure is not None and task.failure.code == AgentTimeout.code:
            await courier.cancel(task, call.agent, "timeout")

    def _grown(self, task: Task, events: Sequence[TaskEvent]) -> Task:
        kept = legal(task.state, events)
        if kept:
            task = fold(task, kept)
        _remember(self._tasks, task.id, task)
        if task.remote is not None and task.remote.context_id is not None:
            _remember(self._contexts, task.context_id, task.remote.context_id)
        return task


class _NoBoxes:
    """Nobody has a mailbox here: every agent has a URL."""

    async def put_mail(self, tenant: str, box: str, body: bytes) -> None:
        _no_mail()

    async def read_mail(self, tenant: str, box: str, after: int, limit: int) -> Sequence[tuple[int, bytes]]:
        _no_mail()

    async def next_mail(self, tenant: str, box: str, after: int) -> tuple[int, bytes] | None:
        _no_mail()

    async def drop_mail(self, tenant: str, box: str, numbers: object) -> None:
        _no_mail()


def _no_mail() -> NoReturn:
    raise AgentUnavailable("The agent has no address.")


def _no_host(number: int, blob: Blob) -> str:
    raise ContentRefused("The agent takes no file inside a message, and without a hub there is no link to one.")


def _is_refusal(task: Task) -> bool:
    return task.failure is not None and (task.failure.details or {}).get("reason") == _REFUSED


def _remember(kept: OrderedDict[str, Value], name: str, value: Value) -> None:
    kept[name] = value
    kept.move_to_end(name)
    if len(kept) > KEPT:
        kept.popitem(last=False)
