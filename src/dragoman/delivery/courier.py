"""The courier: puts a call into the target's dialect, sends it, and tells what came of it.

    ask → credentials, trace → the wire → hear → events; where that does not settle it, the bridge goes on asking

A delivery never raises for what the agent or the network did: its last events say so.
"""

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Final

import msgspec

from dragoman.delivery.bridge import poll
from dragoman.delivery.credentials import Credentials
from dragoman.delivery.over_http import CANCEL_S, Wire
from dragoman.delivery.probe import examine
from dragoman.dialects.dialect import Dialect, Heard, Outgoing, Verb
from dragoman.model.agent import Agent, AgentCard
from dragoman.model.call import OpenedCall
from dragoman.model.errors import AgentError, AgentTimeout, BadParams, DragomanError
from dragoman.model.events import Sent, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.net.errors import NetError
from dragoman.observe.trace import trace_headers
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered

CHECK_S: Final = 10.0


class HttpCourier:
    """Carries calls to agents that have a URL."""

    def __init__(self, *, wire: Wire, credentials: Credentials, clock: Clock, dialects: Mapping[str, Dialect]) -> None:
        self._wire = wire
        self._credentials = credentials
        self._clock = clock
        self._dialects = dialects

    async def deliver(self, opened: OpenedCall) -> Delivered:
        """Send the call; its events begin with where it went."""
        at = self._clock.now()
        try:
            heard = await self._exchange(Verb.SEND, opened, opened.task, at)
        except DragomanError as error:
            sent = Sent(at=at, agent_id=opened.call.agent.id, attempt=opened.attempt)
            return Delivered(events=(sent, self._failed(error)), settled=True)
        sent = Sent(at=at, agent_id=opened.call.agent.id, attempt=opened.attempt, remote=heard.remote)
        return Delivered(events=(sent, *heard.events), settled=heard.settled)

    async def follow(self, opened: OpenedCall, task: Task) -> AsyncIterator[Sequence[TaskEvent]]:
        """Ask after a call that was sent, until it is settled."""
        call = opened.call
        try:
            async for heard in poll(
                call.endpoint.features,
                lambda: self._exchange(Verb.GET, opened, task, self._clock.now()),
                clock=self._clock,
                deadline=call.deadline,
            ):
                yield heard.events
        except DragomanError as error:
            yield (self._failed(error),)

    async def cancel(self, task: Task, agent: Agent, reason: str) -> None:
        """Tell the target to stop, once."""
        for endpoint in agent.card.endpoints:
            dialect = self._dialects.get(endpoint.dialect)
            if dialect is not None and Feature.CANCEL in endpoint.features:
                break
        else:
            return
        await self._credentials.ready(agent)
        outgoing = Outgoing(
            verb=Verb.CANCEL,
            task=task,
            endpoint=endpoint,
            at=self._clock.now(),
            headers=self._headers(dialect, agent, endpoint.url or "", task, task.caller_id),
            caller=task.caller_id,
            reason=reason,
        )
        request = dialect.ask(outgoing)
        if request is None:
            return
        deadline = self._clock.monotonic() + CANCEL_S
        # Best effort: an agent that knows no cancel, or is gone, needs none.
        with contextlib.suppress(DragomanError):
            await self._wire.send(
                self._signed(dialect, request, agent, task.id), agent_id=agent.id, deadline=deadline, timeout_ms=5000
            )

    async def examine(self, url: str, dialect: str | None) -> AgentCard:
        """The card at a URL, with the endpoints that really answer. Raises BadParams."""
        deadline = self._clock.monotonic() + 3 * CHECK_S
        return await examine(url, dialect, wire=self._wire, dialects=self._dialects, deadline=deadline)

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        try:
            await self._wire.check(url)
        except NetError as error:
            raise BadParams(f"{url[:200]}: {error}", errors=[{"path": "url", "message": str(error)}]) from None

    async def keep_credentials(self, agent: Agent, credentials: JsonObject) -> None:
        """Store how the hub authenticates to an agent. Raises BadParams."""
        await self._credentials.keep(agent, credentials)

    async def _exchange(self, verb: Verb, opened: OpenedCall, task: Task, at: datetime) -> Heard:
        """One request to the agent and what its reply says. Raises AgentUnavailable, AgentTimeout, AgentError."""
        call, clock = opened.call, self._clock
        agent, endpoint = call.agent, call.endpoint
        dialect = self._dialects[endpoint.dialect]
        given_ms = int(call.timeout_s * 1000)
        left_ms = int((call.deadline - clock.monotonic()) * 1000)
        if left_ms <= 0:
            raise AgentTimeout(timeout_ms=given_ms, agent_id=agent.id)
        if not self._credentials.is_ready(agent):
            await self._credentials.ready(agent)
        outgoing = Outgoing(
            verb=verb,
            task=task,
            endpoint=endpoint,
            at=at,
            message=call.message if verb is Verb.SEND else None,
            headers=self._headers(dialect, agent, endpoint.url or "", task, call.caller.name),
            caller=call.caller.name,
            attempt=opened.attempt,
            timeout_ms=left_ms,
        )
        request = dialect.ask(outgoing)
        if request is None:
            raise AgentError("The agent named no task that could be asked for.", reason="not_finished")
        request = self._signed(dialect, request, agent, task.id)
        reply = await self._wire.send(request, agent_id=agent.id, deadline=call.deadline, timeout_ms=given_ms)
        return dialect.hear(outgoing, reply, clock.now())

    def _failed(self, error: DragomanError) -> StatusChanged:
        return StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=error.failure())

    def _headers(self, dialect: Dialect, agent: Agent, url: str, task: Task, caller: str) -> dict[bytes, bytes]:
        """The trace, and the target's own credential: never the caller's."""
        headers = trace_headers(task.trace, task.asked.request_id or f"req_{task.id}")
        stored = self._credentials.stored_headers(agent, url)
        if stored is not None:
            headers |= stored
        elif dialect.hub_identity:
            headers |= self._credentials.hub_token(agent, subject=caller, chain=task.chain)
        return headers

    def _signed(self, dialect: Dialect, request: HttpRequest, agent: Agent, call_id: str) -> HttpRequest:
        if not dialect.hub_identity:
            return request
        signature = self._credentials.signature(agent, call_id, request.body)
        return msgspec.structs.replace(request, headers={**request.headers, **signature})
