"""The courier: puts a call into the target's dialect, sends it, and tells what came of it.

    ask → credentials, trace → the wire → hear → events; where that does not settle it, the bridge learns the rest

A delivery never raises for what the agent or the network did: its last events say so.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import datetime
from functools import partial
from typing import Final

import msgspec

from dragoman.delivery.begun import at_work
from dragoman.delivery.bridge import learn
from dragoman.delivery.connections import Connections
from dragoman.delivery.credential_kinds import origin_of
from dragoman.delivery.mailbox import mailed
from dragoman.delivery.over_http import CANCEL_S, Wire
from dragoman.delivery.probe import document, examined_card, look
from dragoman.delivery.proof import Keeper, Proof, Shown
from dragoman.delivery.repeats import may_repeat, repeated
from dragoman.dialects.dialect import Dialect, Heard, Notice, Outgoing, Verb
from dragoman.dialects.sse import SseEvent
from dragoman.model.agent import Agent, Endpoint, Via
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.callbacks import Callback, Tells
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    BadAgentReply,
    BadParams,
    DragomanError,
    NotSupported,
)
from dragoman.model.events import Happened, Sent, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.http import Headers, HttpReply, HttpRequest
from dragoman.model.json import JsonObject
from dragoman.model.news import Known, coalesced
from dragoman.model.operations import Wait
from dragoman.model.secret import Secret
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.net.addresses import without_login
from dragoman.net.client import IDLE_S
from dragoman.net.errors import NetError
from dragoman.observe.trace import trace_headers
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered, Probed, Told
from dragoman.ports.store import Mailboxes
from dragoman.security.signing import sign_headers

ACK_S: Final = 30.0  # within which an agent that reports later has to say that it got the call
NOTICE_S: Final = 15.0
UNPROVEN: Final = 401
VERSIONS: Final = 10_000


class HttpCourier:
    """Carries calls to agents that have a URL, and hands the others to their connections or mailboxes."""

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
        connections: Connections | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self._wire = wire
        self._boxes = boxes  # of agents that have no URL
        self._connections = connections  # of agents that opened one
        self._credentials = credentials
        self._keeper = keeper  # of what owners store, where there are owners
        self._clock = clock
        self._dialects = dialects
        self._hub_url = hub_url
        self._hub_id = hub_id
        self._versions: dict[str, str] = {}  # what agents were found to speak, by the endpoint's URL
        self._silent: set[str] = set()  # endpoints that have no streams, whatever their cards say

    async def deliver(self, opened: OpenedCall) -> Delivered:
        """Send the call; its events begin with where it went."""
        delivered = await self._sent(opened)
        waits = self._dialects[opened.call.endpoint.dialect].repeats_after_s
        if waits and may_repeat(delivered):
            return await repeated(
                delivered, waits, lambda: self._sent(opened), clock=self._clock, deadline=opened.call.deadline
            )
        return delivered

    async def _sent(self, opened: OpenedCall) -> Delivered:
        at = self._clock.now()
        try:
            heard = await self._exchange(Verb.SEND, opened, opened.task, at)
        except DragomanError as error:
            sent = Sent(at=at, agent_id=opened.call.agent.id, attempt=opened.attempt)
            return Delivered(events=(sent, self._failed(error)), settled=True)
        sent = Sent(at=at, agent_id=opened.call.agent.id, attempt=opened.attempt, remote=heard.remote)
        return Delivered(events=(sent, *at_work(opened, at, heard.events)), settled=heard.settled)

    def streams(self, opened: OpenedCall) -> bool:
        """Whether the target tells of the call event by event; not if its only reader waits for the end."""
        call, endpoint = opened.call, opened.call.endpoint
        if self._connected(endpoint) is not None:
            return True
        if Feature.STREAM not in endpoint.features or endpoint.url in self._silent:
            return False
        if self._dialects[endpoint.dialect].listen is None:
            return False
        return call.operation.wait is not Wait.END or any(each.tells is not Tells.END for each in opened.task.callbacks)

    async def stream(self, opened: OpenedCall) -> AsyncGenerator[Delivered]:
        """Send the call and tell what happens as it happens; its events begin with where it went."""
        call, at = opened.call, self._clock.now()
        connections = self._connected(call.endpoint)
        if connections is not None:
            async with aclosing(connections.stream(opened)) as told:
                async for delivered in told:
                    yield delivered
            return
        sent = Sent(at=at, agent_id=call.agent.id, attempt=opened.attempt)
        begun, remote = False, None
        try:
            async with aclosing(self._streamed(Verb.STREAM, opened, opened.task, at)) as stream:
                async for heard in stream:
                    events: Sequence[TaskEvent] = coalesced(heard.events)
                    if not begun or heard.remote not in (None, remote):
                        remote = heard.remote
                        events = (msgspec.structs.replace(sent, remote=remote), *at_work(opened, at, events))
                    begun = True
                    yield Delivered(events=tuple(events), settled=heard.settled)
                    if heard.settled:
                        return
            if _can_ask(call.endpoint):
                return
            error: DragomanError = AgentError("The agent's stream ended before its answer.", reason="stream_ended")
        except NotSupported:
            if begun:
                raise
            # It said so instead of taking the call: it gets it again, and is not asked for a stream any more.
            self._note_silent(call.endpoint)
            yield await self.deliver(opened)
            return
        except DragomanError as broken:
            late = isinstance(broken, AgentTimeout) and self._clock.monotonic() >= call.deadline
            if begun and not late and _can_ask(call.endpoint):
                return
            error = broken
            if begun and isinstance(broken, AgentUnavailable):
                error = AgentError("The agent broke off in the middle of its answer.", reason="stream_ended")
        failed = self._failed(error)
        yield Delivered(events=(failed,) if begun else (sent, failed), settled=True)

    async def follow(self, opened: OpenedCall, now: Callable[[], Task]) -> AsyncGenerator[Sequence[TaskEvent]]:
        """Listen to a call that was sent, or ask after it, until it is settled."""
        call = opened.call
        features = call.endpoint.features
        listens = Feature.SUBSCRIBE in features and self._dialects[call.endpoint.dialect].listen is not None

        def subscribe() -> AsyncGenerator[Heard]:
            return self._streamed(Verb.SUBSCRIBE, opened, now(), self._clock.now())

        async def get() -> Heard:
            task = now()
            heard = await self._exchange(Verb.GET, opened, task, self._clock.now())
            return msgspec.structs.replace(heard, events=tuple(Known(task).news(heard.events)))

        try:
            async for heard in learn(
                subscribe if listens else None,
                get if Feature.GET in features else None,
                clock=self._clock,
                deadline=call.deadline,
            ):
                if heard.events:
                    yield coalesced(heard.events)
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
        connections = self._connected(endpoint)
        if connections is not None:
            connections.cancel(task, reason)
            return
        # Best effort: an agent that knows no cancel, or is gone, needs none.
        with contextlib.suppress(DragomanError):
            await self._cancel(task, agent, self._spoken_at(endpoint), dialect, reason)

    async def _cancel(self, task: Task, agent: Agent, endpoint: Endpoint, dialect: Dialect, reason: str) -> None:
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
        request = dialect.ask(outgoing)
        if request is None:
            return
        if endpoint.url is None:
            await mailed(request, agent, endpoint, self._boxes)
            return
        await self._wire.send(
            self._signed(dialect, request, agent, task.id),
            agent_id=agent.id,
            deadline=self._clock.monotonic() + CANCEL_S,
            timeout_ms=int(CANCEL_S * 1000),
            identity=self._credentials.identities.get(agent.uuid),
        )

    async def notify(
        self, callback: Callback, task: Task, happened: Happened, *, url: str, recipient: str, secret: Secret | None
    ) -> Told:
        """Tell an address of one event, once."""
        request = self._worded(callback, task, happened, url, recipient)
        if request is None:
            return Told(delivered=True)  # The callback's dialect has no word for it.
        headers = {name.lower().encode(): value.encode() for name, value in (callback.headers or {}).items()}
        headers |= request.headers
        notice_id = request.headers.get(b"webhook-id", f"wh_{task.id}_{happened.seq}".encode()).decode()
        headers[b"webhook-id"] = notice_id.encode()
        if secret is not None:
            at = int(self._clock.now().timestamp())
            headers |= sign_headers(secret, id=notice_id, timestamp=at, body=request.body)
        return await self._wire.post(
            msgspec.structs.replace(request, headers=headers), self._clock.monotonic() + NOTICE_S
        )

    def put_into_words(self, callback: Callback, task: Task, happened: Happened, *, recipient: str) -> bytes | None:
        """One event as the callback's dialect would post it."""
        request = self._worded(callback, task, happened, "", recipient)
        return None if request is None else request.body

    async def examine(
        self,
        url: str,
        dialect: str | None = None,
        *,
        credentials: JsonObject | None = None,
        agent: Agent | None = None,
    ) -> Probed:
        """The card at a URL, with the endpoints that really answer. Raises BadParams."""
        if dialect is not None and dialect not in self._dialects:
            raise BadParams(
                f"dialect: unknown, {dialect!r}; there are: {', '.join(self._dialects)}",
                errors=[{"path": "dialect", "message": "unknown"}],
            )
        shown = await self._shown_at(url, credentials, agent)
        own = origin_of(url)

        async def fetch(request: HttpRequest, deadline: float) -> HttpReply:
            return await self._wire.fetch(request, deadline, shown.identity if origin_of(request.url) == own else None)

        examined = await look(
            url, fetch=fetch, dialects=self._dialects, clock=self._clock, named=dialect, credentials=shown.headers
        )
        found = examined.found
        return Probed(
            card=examined_card(examined),
            probe=document(examined),
            found_at=None if found is None else found.url,
            body=None if found is None else found.raw,
        )

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        try:
            await self._wire.check(url)
        except NetError as error:
            shown = without_login(url)[:200]
            raise BadParams(f"{shown}: {error}", errors=[{"path": "url", "message": str(error)}]) from None

    async def keep_credentials(self, agent: Agent, credentials: JsonObject) -> None:
        """Store how the hub authenticates to an agent. Raises BadParams."""
        await self._kept_by().keep(agent, credentials)

    async def _shown_at(self, url: str, given: JsonObject | None, agent: Agent | None) -> Shown:
        """What an agent is shown that is looked at: what its owner brings, or stored for this address."""
        if given is not None:
            return await self._kept_by().given(given, url)
        if agent is None:
            return Shown()
        try:
            await self._credentials.ready(agent)
            headers = self._credentials.shown(agent, url, subject=agent.owner_id, chain=(), by_hub=False)
        except AgentUnavailable:
            return Shown()  # It is looked at without: its owner learns elsewhere that the credential does not serve.
        return Shown(headers=headers, identity=self._credentials.identities.get(agent.uuid))

    def _kept_by(self) -> Keeper:
        if self._keeper is None:
            raise NotSupported("Nobody stores credentials here.")
        return self._keeper

    async def _exchange(self, verb: Verb, opened: OpenedCall, task: Task, at: datetime) -> Heard:
        """One request to the agent and what its reply says. Raises AgentUnavailable, AgentTimeout, AgentError."""
        if not self._credentials.is_ready(opened.call.agent):
            await self._have_credential(opened.call)
        outgoing = self._outgoing(verb, opened, task, at)
        deadline = opened.call.deadline
        if verb is Verb.SEND and Feature.REPORTS in outgoing.endpoint.features:
            deadline = min(deadline, self._clock.monotonic() + ACK_S)
        try:
            return await self._said(outgoing, opened.call, deadline)
        except BadAgentReply as error:
            outgoing = self._other_version(outgoing, error)
        return await self._said(outgoing, opened.call, deadline)

    async def _streamed(self, verb: Verb, opened: OpenedCall, task: Task, at: datetime) -> AsyncGenerator[Heard]:
        """What the agent tells in answer to one request. Raises as `_exchange`, and NotSupported where it cannot."""
        if not self._credentials.is_ready(opened.call.agent):
            await self._have_credential(opened.call)
        outgoing = self._outgoing(verb, opened, task, at)
        try:
            async with aclosing(self._heard(outgoing, opened.call)) as first:
                async for heard in first:
                    yield heard
            return
        except BadAgentReply as error:
            outgoing = self._other_version(outgoing, error)
        async with aclosing(self._heard(outgoing, opened.call)) as second:
            async for heard in second:
                yield heard

    async def _heard(self, outgoing: Outgoing, call: AdmittedCall) -> AsyncGenerator[Heard]:
        dialect = self._dialects[outgoing.endpoint.dialect]
        request = dialect.ask(outgoing)
        if request is None or dialect.listen is None:
            raise NotSupported("The agent has no streams.")
        listener = dialect.listen(outgoing)
        request = self._signed(dialect, request, call.agent, outgoing.task.id)
        # A silent target that can be asked is asked before long; another has all the time that the call has.
        idle_s = IDLE_S if _can_ask(outgoing.endpoint) else call.deadline - self._clock.monotonic()
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
                return dialect.hear(outgoing, piece, now)
            return _together([listener.hear(event, now) for event in piece])

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

    def _connected(self, endpoint: Endpoint) -> Connections | None:
        """Where a target is reached that opened a connection itself."""
        return self._connections if endpoint.via is Via.CONNECTED else None

    def _outgoing(self, verb: Verb, opened: OpenedCall, task: Task, at: datetime) -> Outgoing:
        """Everything that a request is put into words with. Raises AgentTimeout where no time is left."""
        call = opened.call
        agent, endpoint = call.agent, self._spoken_at(call.endpoint) if self._versions else call.endpoint
        left_ms = int((call.deadline - self._clock.monotonic()) * 1000)
        if left_ms <= 0:
            raise AgentTimeout(timeout_ms=int(call.timeout_s * 1000), agent_id=agent.id)
        dialect = self._dialects[endpoint.dialect]
        return Outgoing(
            verb=verb,
            task=task,
            asked=call.operation,
            endpoint=endpoint,
            at=at,
            message=call.message if verb is Verb.SEND or verb is Verb.STREAM else None,
            headers=self._headers(dialect, agent, endpoint.url or "", task, call.caller.name),
            caller=call.caller.name,
            attempt=opened.attempt,
            timeout_ms=left_ms,
            hub_url=self._hub_url,
            hub_id=self._hub_id,
        )

    async def _said(self, outgoing: Outgoing, call: AdmittedCall, deadline: float) -> Heard:
        dialect = self._dialects[outgoing.endpoint.dialect]
        request = dialect.ask(outgoing)
        if request is None:
            raise AgentError("The agent named no task that could be asked for.", reason="not_finished")
        if outgoing.endpoint.url is None:
            taken = await mailed(request, call.agent, outgoing.endpoint, self._boxes)
            return dialect.hear(outgoing, taken, self._clock.now())
        request = self._signed(dialect, request, call.agent, outgoing.task.id)
        agent, timeout_ms = call.agent, int(call.timeout_s * 1000)
        identities = self._credentials.identities
        identity = identities.get(agent.uuid) if identities else None
        reply = await self._wire.send(
            request, agent_id=agent.id, deadline=deadline, timeout_ms=timeout_ms, identity=identity
        )
        if reply.status == UNPROVEN:
            renewed = await self._renewed(request, outgoing, call, dialect)
            if renewed is not None:
                reply = await self._wire.send(
                    renewed, agent_id=agent.id, deadline=deadline, timeout_ms=timeout_ms, identity=identity
                )
        return dialect.hear(outgoing, reply, self._clock.now())

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
        url = outgoing.endpoint.url or ""
        shown = self._proven(dialect, call.agent, url, outgoing.task, call.caller.name)
        return msgspec.structs.replace(request, headers={**request.headers, **shown})

    @asynccontextmanager
    async def _in_time(self, call: AdmittedCall) -> AsyncGenerator[None]:
        """What is done within ends with the call's time. Raises AgentTimeout."""
        try:
            async with asyncio.timeout(call.deadline - self._clock.monotonic()):
                yield
        except TimeoutError:
            raise AgentTimeout(timeout_ms=int(call.timeout_s * 1000), agent_id=call.agent.id) from None

    def _other_version(self, outgoing: Outgoing, error: BadAgentReply) -> Outgoing:
        """The same in the version that the reply points to; raises the error where it points to none."""
        version, endpoint = error.details.get("try_version"), outgoing.endpoint
        if not isinstance(version, str) or endpoint.version == version:
            raise error
        self._remember(endpoint, version)
        return msgspec.structs.replace(outgoing, endpoint=msgspec.structs.replace(endpoint, version=version))

    def _note_silent(self, endpoint: Endpoint) -> None:
        if len(self._silent) >= VERSIONS:
            self._silent.clear()
        self._silent.add(endpoint.url or "")

    def _spoken_at(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with the version that it was found to speak, where that is another than it said."""
        version = self._versions.get(endpoint.url or "")
        return endpoint if version is None else msgspec.structs.replace(endpoint, version=version)

    def _remember(self, endpoint: Endpoint, version: str) -> None:
        if len(self._versions) >= VERSIONS:
            self._versions.clear()
        self._versions[endpoint.url or ""] = version

    def _worded(
        self, callback: Callback, task: Task, happened: Happened, url: str, recipient: str
    ) -> HttpRequest | None:
        notify = self._dialects[callback.dialect].notify
        if notify is None:
            return None
        return notify(
            Notice(
                callback=callback,
                task=task,
                happened=happened,
                url=url,
                recipient=recipient,
                hub_url=self._hub_url,
                hub_id=self._hub_id,
                at=self._clock.now(),
            )
        )

    def _failed(self, error: DragomanError) -> StatusChanged:
        return StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=error.failure())

    def _headers(self, dialect: Dialect, agent: Agent, url: str, task: Task, caller: str) -> dict[bytes, bytes]:
        """The trace, and the target's own credential: never the caller's."""
        headers = trace_headers(task.trace, task.asked.request_id or f"req_{task.id}")
        shown = self._proven(dialect, agent, url, task, caller)
        if shown:
            headers.update(shown)
        return headers

    def _proven(self, dialect: Dialect, agent: Agent, url: str, task: Task, caller: str) -> Headers:
        return self._credentials.shown(agent, url, subject=caller, chain=task.chain, by_hub=dialect.hub_identity)

    def _signed(self, dialect: Dialect, request: HttpRequest, agent: Agent, call_id: str) -> HttpRequest:
        if not dialect.hub_identity:
            return request
        signature = self._credentials.signature(agent, call_id, request.body)
        return msgspec.structs.replace(request, headers={**request.headers, **signature})


def _can_ask(endpoint: Endpoint) -> bool:
    return Feature.GET in endpoint.features or Feature.SUBSCRIBE in endpoint.features


def _together(heard: Sequence[Heard]) -> Heard:
    """What several events say, as one; what follows the one that settles the call is no longer listened to."""
    if len(heard) == 1:
        return heard[0]
    events: list[TaskEvent] = []
    remote = None
    for each in heard:
        events += each.events
        remote = each.remote or remote
        if each.settled:
            return Heard(events=tuple(events), settled=True, remote=remote)
    return Heard(events=tuple(events), settled=False, remote=remote)
