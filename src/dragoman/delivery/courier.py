"""The courier: sends a call to its agent, in as many tries as it takes, and tells what came of it.

    ask → the wire → hear → events; where that does not settle it, the bridge learns the rest

A delivery never raises for what the agent or the network did: its last events say so. How a request is put into words
is in `asking.py`, when one is repeated in `tries.py`.
"""

import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Final

import msgspec

from dragoman.delivery.asking import VERSIONS, Asking, can_ask
from dragoman.delivery.attempt import Attempt
from dragoman.delivery.begun import at_work
from dragoman.delivery.bridge import learn
from dragoman.delivery.connections import Connections
from dragoman.delivery.looking import Looking
from dragoman.delivery.notices import Notices
from dragoman.delivery.over_http import Wire
from dragoman.delivery.proof import Keeper, Proof
from dragoman.delivery.repeats import Waits
from dragoman.delivery.tries import Retries, Tries, failure_of, read_again
from dragoman.dialects.dialect import Dialect, Heard, Verb
from dragoman.model.agent import Agent, Endpoint, Via
from dragoman.model.call import AdmittedCall, OpenedCall
from dragoman.model.callbacks import Tells
from dragoman.model.content import Role
from dragoman.model.errors import (
    AgentError,
    AgentTimeout,
    AgentUnavailable,
    CircuitOpen,
    DragomanError,
    NotSupported,
)
from dragoman.model.events import ArtifactChunk, MessageAdded, Sent, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.json import JsonObject
from dragoman.model.news import Known, coalesced
from dragoman.model.operations import Wait
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task
from dragoman.ports.attempts import AttemptOutcome
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered, Probed
from dragoman.ports.store import Mailboxes

_ANSWERED: Final = AttemptOutcome.ANSWERED
_SEND: Final = Verb.SEND
_STREAM: Final = Feature.STREAM
_CONNECTED: Final = Via.CONNECTED
_WITHOUT_ANSWER: Final = FINAL - {TaskState.COMPLETED}


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
        retries: Retries | None = None,
        spoke: Callable[[AdmittedCall, float], object] | None = None,
    ) -> None:
        self._asking = Asking(
            wire=wire,
            boxes=boxes,
            credentials=credentials,
            clock=clock,
            dialects=dialects,
            hub_url=hub_url,
            hub_id=hub_id,
        )
        notices = Notices(wire=wire, clock=clock, dialects=dialects, hub_url=hub_url, hub_id=hub_id)
        self.notify: Final = notices.notify
        self.put_into_words: Final = notices.put_into_words
        self._looking = Looking(wire=wire, clock=clock, dialects=dialects, credentials=credentials, keeper=keeper)
        self._connections = connections  # of agents that opened one
        self._retries = retries or Retries(waits_s=(), clock=clock)
        self._attempts = self._retries.attempts
        self._spoke = spoke  # told of the first piece of a stream, and how many seconds after the sending it came
        self._clock = clock
        self._dialects = dialects
        self._silent: set[str] = set()  # endpoints that have no streams, whatever their cards say

    # -- one answer

    async def deliver(self, opened: OpenedCall) -> Delivered:
        """Send the call, again where a try failed and may be repeated; its events begin with where it went."""
        call, clock, tries = opened.call, self._clock, None
        attempt = Attempt(opened.attempt, clock.monotonic())
        try:
            self._retries.begin(call)
            while True:
                at = clock.now()
                try:
                    heard = await self._asking.exchange(_SEND, opened, opened.task, at, attempt)
                except DragomanError as error:
                    delivered = self._unanswered(opened, attempt, at, error)
                except BaseException:
                    self._tell(call, attempt, AttemptOutcome.DROPPED)
                    raise
                else:
                    delivered = _answered(opened, attempt, at, heard)
                    if tries is None and failure_of(delivered) is None:
                        self._tell(call, attempt, _ANSWERED)
                        return delivered
                if tries is None:
                    tries = Tries(call, self._retries, self._dialects[call.endpoint.dialect])
                if not await tries.again(attempt, delivered):
                    return tries.all_of(delivered)
                attempt = Attempt(attempt.number + 1, clock.monotonic())
        except CircuitOpen as error:
            return self._left_alone(error, () if tries is None else tries.earlier)

    def _unanswered(self, opened: OpenedCall, attempt: Attempt, at: datetime, error: DragomanError) -> Delivered:
        """What came of one try that had no usable answer."""
        attempt.fail(error)
        sent = Sent(at=at, agent_id=opened.call.agent.id, attempt=attempt.number, waited_ms=opened.waited_ms)
        unsent = attempt.unsent and attempt.number == opened.attempt
        return Delivered(events=(sent, self._failed(error)), settled=True, unsent=unsent)

    # -- event by event

    def streams(self, opened: OpenedCall) -> bool:
        """Whether the target tells of the call event by event; not if its only reader waits for the end."""
        call = opened.call
        endpoint = call.endpoint
        if endpoint.via is _CONNECTED and self._connections is not None:
            return True
        if _STREAM not in endpoint.features or endpoint.url in self._silent:
            return False
        if self._dialects[endpoint.dialect].listen is None:
            return False
        return call.operation.wait is not Wait.END or any(each.tells is not Tells.END for each in opened.task.callbacks)

    async def stream(self, opened: OpenedCall) -> AsyncGenerator[Delivered]:
        """Send the call and tell what happens as it happens; its events begin with where it went.

        A try that fails before the target said anything may be followed by another, where it was sent to a URL; agents
        that connected are offered their calls again by their connections.
        """
        connections = self._connected(opened.call.endpoint)
        tries = Tries(opened.call, self._retries, self._dialects[opened.call.endpoint.dialect])
        attempt = Attempt(opened.attempt, self._clock.monotonic())
        try:
            self._retries.begin(opened.call)
            while True:
                told = self._streamed(opened, attempt) if connections is None else connections.stream(opened, attempt)
                broken: Delivered | None = None
                async with aclosing(self._watched(told, opened, attempt)) as watched:
                    async for delivered in watched:
                        if _failed_first(opened, attempt, delivered):
                            broken = delivered
                        else:
                            yield tries.all_of(delivered)
                if broken is None:
                    return
                if not await tries.again(attempt, broken):
                    yield tries.all_of(broken)
                    return
                attempt = Attempt(attempt.number + 1, self._clock.monotonic())
        except CircuitOpen as error:
            yield self._left_alone(error, tries.earlier)

    async def _watched(
        self, told: AsyncGenerator[Delivered], opened: OpenedCall, attempt: Attempt
    ) -> AsyncGenerator[Delivered]:
        """One try, event by event. What becomes of it is told, unless it fails first: then there may be another."""
        over = another = spoken = False
        try:
            async with aclosing(told) as stream:
                async for delivered in stream:
                    over, another = delivered.settled, _failed_first(opened, attempt, delivered)
                    if not attempt.begun and not attempt.failed and not another and _tells(delivered):
                        attempt.begun = True
                        self._attempts.answering(opened.call)
                    if not spoken and _speaks(delivered):
                        spoken = True
                        if self._spoke is not None and attempt.streamed_at is not None:
                            self._spoke(opened.call, self._clock.monotonic() - attempt.streamed_at)
                    yield delivered
            over = True
        finally:
            if not attempt.told and not (over and another):
                self._tell(opened.call, attempt, attempt.outcome if over else AttemptOutcome.DROPPED)

    async def _streamed(self, opened: OpenedCall, attempt: Attempt) -> AsyncGenerator[Delivered]:
        """What one try at a URL brings, event by event."""
        call, at = opened.call, self._clock.now()
        sent = Sent(at=at, agent_id=call.agent.id, attempt=attempt.number, streamed=True, waited_ms=opened.waited_ms)
        begun, remote = False, None
        attempt.streamed_at = self._clock.monotonic()
        try:
            async with aclosing(self._asking.streamed(Verb.STREAM, opened, opened.task, at, attempt)) as stream:
                async for heard in stream:
                    events: Sequence[TaskEvent] = coalesced(heard.events)
                    if not begun or heard.remote not in (None, remote):
                        remote = heard.remote
                        events = (msgspec.structs.replace(sent, remote=remote), *at_work(opened, at, events))
                    begun = True
                    yield Delivered(events=tuple(events), settled=heard.settled)
                    if heard.settled:
                        return
            if can_ask(call.endpoint):
                return
            error: DragomanError = AgentError("The agent's stream ended before its answer.", reason="stream_ended")
            attempt.failed, attempt.known = True, AttemptOutcome.BROKEN
        except NotSupported:
            if begun:
                raise
            # It said so instead of taking the call: it gets it again, and is not asked for a stream any more.
            self._note_silent(call.endpoint)
            self._tell(call, attempt, AttemptOutcome.REFUSED)
            attempt.streamed_at = None
            yield await self.deliver(opened)
            return
        except DragomanError as broken:
            attempt.fail(broken)
            error = broken
            late = isinstance(broken, AgentTimeout) and self._clock.monotonic() >= call.deadline
            if begun and not late and can_ask(call.endpoint):
                return
            if begun and isinstance(broken, AgentUnavailable):
                error = AgentError("The agent broke off in the middle of its answer.", reason="stream_ended")
        failed = self._failed(error)
        unsent = not begun and attempt.unsent and attempt.number == opened.attempt
        yield Delivered(events=(failed,) if begun else (sent, failed), settled=True, unsent=unsent)

    # -- afterwards

    async def follow(self, opened: OpenedCall, now: Callable[[], Task]) -> AsyncGenerator[Sequence[TaskEvent]]:
        """Listen to a call that was sent, or ask after it, until it is settled."""
        call = opened.call
        features = call.endpoint.features
        listens = Feature.SUBSCRIBE in features and self._dialects[call.endpoint.dialect].listen is not None

        def subscribe() -> AsyncGenerator[Heard]:
            attempt = Attempt(opened.attempt, self._clock.monotonic())
            return self._asking.streamed(Verb.SUBSCRIBE, opened, now(), self._clock.now(), attempt)

        async def get() -> Heard:
            task = now()
            heard = await self._looked_up(opened, task)
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

    async def _looked_up(self, opened: OpenedCall, task: Task) -> Heard:
        """What the agent says of a task: asked again where it could not, for asking changes nothing."""
        waits = Waits(self._retries.waits_s, self._clock)
        while True:
            attempt = Attempt(opened.attempt, self._clock.monotonic())
            try:
                heard = await self._asking.exchange(Verb.GET, opened, task, self._clock.now(), attempt)
            except DragomanError as error:
                attempt.fail(error)
                if not await read_again(attempt, opened.call, waits, self._retries):
                    raise
            else:
                if attempt.reply is None or attempt.reply.status < 400:
                    return heard
                if not await read_again(attempt, opened.call, waits, self._retries):
                    return heard

    async def cancel(self, task: Task, agent: Agent, reason: str) -> None:
        """Tell the target to stop, once."""
        for endpoint in agent.card.endpoints:
            if endpoint.dialect in self._dialects and Feature.CANCEL in endpoint.features:
                break
        else:
            return
        connections = self._connected(endpoint)
        if connections is not None:
            connections.cancel(task, reason)
            return
        # Best effort: an agent that knows no cancel, or is gone, needs none.
        with contextlib.suppress(DragomanError):
            await self._asking.cancel(task, agent, endpoint, reason)

    # -- what is no call

    async def examine(
        self,
        url: str,
        dialect: str | None = None,
        *,
        credentials: JsonObject | None = None,
        agent: Agent | None = None,
    ) -> Probed:
        """The card at a URL, with the endpoints that really answer. Raises BadParams."""
        return await self._looking.examine(url, dialect, credentials=credentials, agent=agent)

    async def may_dial(self, url: str) -> None:
        """Raises BadParams if the hub may not call this address."""
        await self._looking.may_dial(url)

    async def keep_credentials(self, agent: Agent, credentials: JsonObject) -> None:
        """Store how the hub authenticates to an agent. Raises BadParams."""
        await self._looking.keep_credentials(agent, credentials)

    # -- within

    def _connected(self, endpoint: Endpoint) -> Connections | None:
        """Where a target is reached that opened a connection itself."""
        return self._connections if endpoint.via is _CONNECTED else None

    def _tell(self, call: AdmittedCall, attempt: Attempt, outcome: AttemptOutcome) -> None:
        attempt.told = True
        self._attempts.ended(call, outcome, self._clock.monotonic() - attempt.began, will_retry=False)

    def _note_silent(self, endpoint: Endpoint) -> None:
        if len(self._silent) >= VERSIONS:
            self._silent.clear()
        self._silent.add(endpoint.url or "")

    def _left_alone(self, error: CircuitOpen, earlier: tuple[Sent, ...] = ()) -> Delivered:
        """The end of a call that its target does not get, or not once more."""
        return Delivered(events=(*earlier, self._failed(error)), settled=True, unsent=not earlier)

    def _failed(self, error: DragomanError) -> StatusChanged:
        return StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=error.failure())


def _answered(opened: OpenedCall, attempt: Attempt, at: datetime, heard: Heard) -> Delivered:
    """What came of one try that was answered."""
    sent = Sent(
        at=at,
        agent_id=opened.call.agent.card.id,
        attempt=attempt.number,
        remote=heard.remote,
        waited_ms=opened.waited_ms,
    )
    return Delivered(events=(sent, *at_work(opened, at, heard.events)), settled=heard.settled)


def _failed_first(opened: OpenedCall, attempt: Attempt, delivered: Delivered) -> bool:
    """Whether a try at a URL failed before the agent said anything but that, so that there may be another."""
    if attempt.begun or attempt.told or opened.call.endpoint.via is _CONNECTED:
        return False
    return attempt.failed or (attempt.reply is not None and failure_of(delivered) is not None)


def _tells(delivered: Delivered) -> bool:
    """Whether the agent itself has said something, and not only the hub that the call is sent."""
    return any(not isinstance(each, Sent) for each in delivered.events)


def _speaks(delivered: Delivered) -> bool:
    """Whether there is a piece of the agent's answer, or words of its own, in it; why there will be none is neither."""
    for each in delivered.events:
        if isinstance(each, ArtifactChunk):
            if each.artifact.parts:
                return True
        elif isinstance(each, MessageAdded | StatusChanged):
            words, state = each.message, each.state if isinstance(each, StatusChanged) else None
            if words is not None and words.parts and words.role is not Role.USER and state not in _WITHOUT_ANSWER:
                return True
    return False
