"""One request to an agent, and what its reply says: in the agent's dialect, with its credential and the trace.

    ask → credentials, trace → the wire → hear

Where the agent refuses its credential, or speaks another version than it said, the same goes to it once more: that is
no retry, for it has not taken anything yet.
"""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from dragoman.delivery.attempt import Attempt
from dragoman.delivery.greetings import Greetings
from dragoman.delivery.mailbox import mailed
from dragoman.delivery.over_http import CANCEL_S, Wire, told
from dragoman.delivery.proof import Proof
from dragoman.dialects.dialect import Dialect, Heard, Outgoing, Verb
from dragoman.dialects.sse import SseEvent
from dragoman.model.agent import Agent, Endpoint
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.errors import AgentError, AgentTimeout, BadAgentReply, NotSupported
from dragoman.model.events import TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.task import Task
from dragoman.net.client import IDLE_S
from dragoman.net.errors import NetError
from dragoman.observe.trace import trace_headers
from dragoman.ports.clock import Clock
from dragoman.ports.store import Mailboxes

ACK_S: Final = 30.0  # within which an agent that reports later has to say that it got the call
UNPROVEN: Final = 401
VERSIONS: Final = 10_000
_REPORTS: Final = Feature.REPORTS
_SEND: Final = Verb.SEND
_SENDING: Final = (Verb.SEND, Verb.STREAM)


class Asking:
    """Puts requests into the words of their targets, and hears the replies."""

    def __init__(
        self,
        *,
        wire: Wire,
        boxes: Mailboxes,
        credentials: Proof,
        clock: Clock,
        dialects: Mapping[str, Dialect],
        hub_url: str,
        hub_id: str,
    ) -> None:
        self._wire = wire
        self._boxes = boxes  # of agents that have no URL
        self._credentials = credentials
        self._clock = clock
        self._dialects = dialects
        self._hub_url = hub_url
        self._hub_id = hub_id
        self._greetings = Greetings(wire)  # sessions, with agents that want one
        self._versions: dict[str, str] = {}  # what agents were found to speak, by the endpoint's URL

    async def exchange(self, verb: Verb, opened: OpenedCall, task: Task, at: datetime, attempt: Attempt) -> Heard:
        """One request and what its reply says, which is noted in the attempt.

        Raises AgentUnavailable, AgentTimeout, AgentError.
        """
        call = opened.call
        if not self._credentials.is_ready(call.agent):
            await self._have_credential(call)
        dialect, deadline, otherwise = self._dialects[call.endpoint.dialect], call.deadline, False
        outgoing = self._outgoing(dialect, verb, opened, task, at)
        if verb is _SEND and _REPORTS in call.endpoint.features:
            deadline = min(deadline, self._clock.monotonic() + ACK_S)
        while True:
            try:
                said = outgoing if dialect.greet is None else await self._greeted(dialect, outgoing, call, deadline)
                request = dialect.ask(said)
                if request is None:
                    raise AgentError("The agent named no task that could be asked for.", reason="not_finished")
                if said.endpoint.url is None:
                    attempt.reply = reply = await mailed(request, call.agent, said.endpoint, self._boxes)
                    return dialect.hear(said, reply, self._clock.now())
                if dialect.hub_identity:
                    request = self._signed(request, call.agent, task.id)
                attempt.reply = None
                attempt.reply = reply = await self._sent(request, call.agent, deadline)
                if reply.status == UNPROVEN and (renewed := await self._renewed(request, said, call, dialect)):
                    attempt.reply = None
                    attempt.reply = reply = await self._sent(renewed, call.agent, deadline)
                return dialect.hear(said, reply, self._clock.now())
            except NetError as error:
                raise told(error, call.agent.id, int(call.timeout_s * 1000)) from error
            except BadAgentReply as error:
                if otherwise:
                    raise
                outgoing, otherwise = self._otherwise(outgoing, call, error), True

    async def streamed(
        self, verb: Verb, opened: OpenedCall, task: Task, at: datetime, attempt: Attempt
    ) -> AsyncGenerator[Heard]:
        """What the agent tells in answer to one request. Raises as `exchange`, and NotSupported where it cannot."""
        if not self._credentials.is_ready(opened.call.agent):
            await self._have_credential(opened.call)
        outgoing = self._outgoing(self._dialects[opened.call.endpoint.dialect], verb, opened, task, at)
        try:
            async with aclosing(self._heard(outgoing, opened.call, attempt)) as first:
                async for heard in first:
                    yield heard
            return
        except BadAgentReply as error:
            outgoing = self._otherwise(outgoing, opened.call, error)
        async with aclosing(self._heard(outgoing, opened.call, attempt)) as second:
            async for heard in second:
                yield heard

    async def cancel(self, task: Task, agent: Agent, endpoint: Endpoint, reason: str) -> None:
        """Tell the target to stop, once. Raises as `exchange`."""
        endpoint, dialect = self._spoken_at(endpoint), self._dialects[endpoint.dialect]
        await self._credentials.ready(agent)
        outgoing = Outgoing(
            verb=Verb.CANCEL,
            task=task,
            asked=task.asked,
            endpoint=endpoint,
            at=self._clock.now(),
            headers=self._headers(dialect, agent, endpoint.url or "", task, task.caller_id),
            caller=task.caller_id,
            reason=reason,
            hub_url=self._hub_url,
            hub_id=self._hub_id,
        )
        if dialect.greet is not None:
            outgoing = self._greetings.known(outgoing, agent)
        request = dialect.ask(outgoing)
        if request is None:
            return
        if endpoint.url is None:
            await mailed(request, agent, endpoint, self._boxes)
            return
        if dialect.hub_identity:
            request = self._signed(request, agent, task.id)
        try:
            await self._sent(request, agent, self._clock.monotonic() + CANCEL_S)
        except NetError as error:
            raise told(error, agent.id, int(CANCEL_S * 1000)) from error

    def _sent(self, request: HttpRequest, agent: Agent, deadline: float) -> Coroutine[None, None, HttpReply]:
        """The reply to a request. Raises NetError."""
        identities = self._credentials.identities
        identity = identities.get(agent.uuid) if identities else None
        return self._wire.send(request, deadline=deadline, identity=identity)

    async def _heard(self, outgoing: Outgoing, call: AdmittedCall, attempt: Attempt) -> AsyncGenerator[Heard]:
        dialect = self._dialects[outgoing.endpoint.dialect]
        if dialect.greet is not None:
            outgoing = await self._greeted(dialect, outgoing, call, call.deadline)
        request = dialect.ask(outgoing)
        if request is None or dialect.listen is None:
            raise NotSupported("The agent has no streams.")
        listener = dialect.listen(outgoing)
        if dialect.hub_identity:
            request = self._signed(request, call.agent, outgoing.task.id)
        # A silent target that can be asked is asked before long; another has all the time that the call has.
        idle_s = IDLE_S if can_ask(outgoing.endpoint) else call.deadline - self._clock.monotonic()
        answers = partial(
            self._wire.stream,
            agent_id=call.agent.id,
            deadline=call.deadline,
            timeout_ms=int(call.timeout_s * 1000),
            idle_s=idle_s,
            identity=self._credentials.identities.get(call.agent.uuid),
        )

        def understood(piece: HttpReply | Sequence[SseEvent]) -> Heard:
            now = self._clock.now()
            if isinstance(piece, HttpReply):
                attempt.reply = piece
                return dialect.hear(outgoing, piece, now)
            return _together([listener.hear(event, now) for event in piece])

        attempt.reply = None
        renewed: HttpRequest | None = None
        async with aclosing(answers(request)) as pieces:
            async for piece in pieces:
                if isinstance(piece, HttpReply) and piece.status == UNPROVEN:
                    renewed = await self._renewed(request, outgoing, call, dialect)
                    if renewed is not None:
                        break
                yield understood(piece)
        if renewed is None:
            return
        async with aclosing(answers(renewed)) as pieces:
            async for piece in pieces:
                yield understood(piece)

    def _outgoing(self, dialect: Dialect, verb: Verb, opened: OpenedCall, task: Task, at: datetime) -> Outgoing:
        """Everything that a request is put into words with. Raises AgentTimeout where no time is left."""
        call = opened.call
        agent, endpoint = call.agent, self._spoken_at(call.endpoint) if self._versions else call.endpoint
        left_ms = int((call.deadline - self._clock.monotonic()) * 1000)
        if left_ms <= 0:
            raise AgentTimeout(timeout_ms=int(call.timeout_s * 1000), agent_id=agent.id)
        caller = call.caller.name
        return Outgoing(
            verb=verb,
            task=task,
            asked=call.operation,
            endpoint=endpoint,
            at=at,
            message=call.message if verb in _SENDING else None,
            headers=self._headers(dialect, agent, endpoint.url or "", task, caller),
            caller=caller,
            attempt=opened.attempt,
            timeout_ms=left_ms,
            hub_url=self._hub_url,
            hub_id=self._hub_id,
        )

    # -- credentials

    async def _have_credential(self, call: AdmittedCall) -> None:
        """Have the target's credential at hand, in the call's own time. Raises AgentUnavailable, AgentTimeout."""
        async with self._in_time(call):
            await self._credentials.ready(call.agent)

    async def _renewed(
        self, request: HttpRequest, outgoing: Outgoing, call: AdmittedCall, dialect: Dialect
    ) -> HttpRequest | None:
        """The request with a new credential in place of the one that was refused, where there is a new one."""
        async with self._in_time(call):
            if not await self._credentials.renewed(call.agent, request.headers):
                return None
        shown = self._credentials.shown(
            call.agent,
            outgoing.endpoint.url or "",
            subject=call.caller.name,
            chain=outgoing.task.chain,
            by_hub=dialect.hub_identity,
        )
        return msgspec.structs.replace(request, headers={**request.headers, **shown})

    @asynccontextmanager
    async def _in_time(self, call: AdmittedCall) -> AsyncGenerator[None]:
        """What is done within ends with the call's time. Raises AgentTimeout."""
        try:
            async with asyncio.timeout(call.deadline - self._clock.monotonic()):
                yield
        except TimeoutError:
            raise AgentTimeout(timeout_ms=int(call.timeout_s * 1000), agent_id=call.agent.id) from None

    def _headers(self, dialect: Dialect, agent: Agent, url: str, task: Task, caller: str) -> dict[bytes, bytes]:
        """The trace, and the target's own credential: never the caller's."""
        headers = trace_headers(task.trace, task.asked.request_id or f"req_{task.id}")
        shown = self._credentials.shown(agent, url, subject=caller, chain=task.chain, by_hub=dialect.hub_identity)
        if shown:
            headers.update(shown)
        return headers

    def _signed(self, request: HttpRequest, agent: Agent, call_id: str) -> HttpRequest:
        signature = self._credentials.signature(agent, call_id, request.body)
        return msgspec.structs.replace(request, headers={**request.headers, **signature})

    # -- sessions and versions

    async def _greeted(self, dialect: Dialect, outgoing: Outgoing, call: AdmittedCall, deadline: float) -> Outgoing:
        """The same in a session with the agent. Raises AgentUnavailable, AgentTimeout, AgentError."""
        identity = self._credentials.identities.get(call.agent.uuid)
        return await self._greetings.greeted(dialect, outgoing, call.agent, deadline=deadline, identity=identity)

    def _otherwise(self, outgoing: Outgoing, call: AdmittedCall, error: BadAgentReply) -> Outgoing:
        """The same for a second try: in a new session, or another version; raises the error where neither will help."""
        if error.details.get("reopen"):
            self._greetings.forget(outgoing, call.agent)
            return outgoing
        return self._other_version(outgoing, error)

    def _other_version(self, outgoing: Outgoing, error: BadAgentReply) -> Outgoing:
        """The same in the version that the reply points to; raises the error where it points to none."""
        version, endpoint = error.details.get("try_version"), outgoing.endpoint
        if not isinstance(version, str) or endpoint.version == version:
            raise error
        self._remember(endpoint, version)
        return msgspec.structs.replace(outgoing, endpoint=msgspec.structs.replace(endpoint, version=version))

    def _spoken_at(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with the version that it was found to speak, where that is another than it said."""
        version = self._versions.get(endpoint.url or "")
        return endpoint if version is None else msgspec.structs.replace(endpoint, version=version)

    def _remember(self, endpoint: Endpoint, version: str) -> None:
        if len(self._versions) >= VERSIONS:
            self._versions.clear()
        self._versions[endpoint.url or ""] = version


def can_ask(endpoint: Endpoint) -> bool:
    """Whether the agent can be asked how far a task is."""
    return Feature.GET in endpoint.features or Feature.SUBSCRIBE in endpoint.features


def _together(heard: Sequence[Heard]) -> Heard:
    """What several events say, as one; what follows the one that settles the call is no longer listened to."""
    if len(heard) == 1:
        return heard[0]
    events = list[TaskEvent]()
    remote = None
    for each in heard:
        events += each.events
        remote = each.remote or remote
        if each.settled:
            return Heard(events=tuple(events), settled=True, remote=remote)
    return Heard(events=tuple(events), settled=False, remote=remote)
