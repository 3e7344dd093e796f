"""One call on its way to an agent that connects: where it stands, and what the agent told that is not on disk yet.

    waits for a session ─► is given to one, under an attempt ─► the agent tells ─► … ─► its end, or its question
            ▲                                                        │
            └──────────── the session is lost, or hands it back ◄────┘

Whoever carries the call takes what was told, records it, and says so; only then the agent's numbers are acknowledged.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, final

import msgspec

from dragoman.delivery.begun import at_work
from dragoman.delivery.session import Asking, Session
from dragoman.dialects.platform.connected_events import ASKS, RELEASED, ConnectedListener, Told, ask_of
from dragoman.model.call import Before, OpenedCall
from dragoman.model.errors import EventGap, Overloaded
from dragoman.model.events import Sent, TaskEvent
from dragoman.model.news import coalesced
from dragoman.model.operations import Wait
from dragoman.model.rank import rank
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered

MILLISECOND: Final = timedelta(milliseconds=1)
MOST_BATCHES: Final = 4  # that are told before the first of them is on disk


class Batch(msgspec.Struct):
    """What was told at once: its events, and who waits until they are on disk."""

    events: Sequence[TaskEvent]
    settled: bool
    recorded: asyncio.Future[bool]  # False: nobody will record it


@final
class Line:
    """One call, for as long as somebody carries it."""

    def __init__(self, opened: OpenedCall, listener: ConnectedListener, order: int, clock: Clock) -> None:
        call, task = opened.call, opened.task
        self.id: Final = task.id
        self.opened: Final = opened
        self.listener: Final = listener
        self.deadline: Final = call.deadline
        self.accepted: Final = call.operation.wait is Wait.NONE
        self.rank: Final = (rank(call.operation.priority, task.created_at), order)
        self.session: Session | None = None
        before = opened.before is not Before.UNSENT
        # It asked, and its caller's answer was not handed on yet.
        self.continues: Final = task.answered if before else call.operation.continues is not None
        # Under which attempt it was given out last: the first one is not noted before something was told in it.
        self.attempt = max(task.attempt, 1) if before else task.attempt
        self.earlier: tuple[int, int] | None = None  # what of the attempt before is on disk, by attempt and number
        self.pinned: Session | None = None  # the session that asked, and has the answer as soon as it has room
        self.kept = False  # it goes on where it was: nothing is said of it
        self.begun = False  # the session that it was lost with may have begun it
        self.settled = False  # its agent has ended it, or asks
        self.told = task.heard
        self.awaited = before  # an earlier life gave it out: a session may still have it
        self.from_before = before  # what was acknowledged then, and had nothing to keep, is not known here
        self.frame = 0  # the last that was said of it in its session
        self.alone_since: float | None = None  # no session is there that could take it
        self.ask: int | None = None
        self.asked = False
        self.handed_back = False
        self._sent = task.attempt
        self._on_disk = (task.attempt, task.heard)
        self._clock = clock
        self._asked_at = self._given_at = clock.now()
        self._finished = False
        self._batches: list[Batch] = []
        self._taken: list[Batch] = []
        self._wake: asyncio.Future[None] | None = None

    # -- where it stands

    def give(self, session: Session, *, kept: bool = False) -> None:
        """It is at that session now: under a new attempt, or under the one that it had."""
        self.session = session
        self._given_at = self._clock.now()
        self.kept = kept
        self.awaited = False
        self.handed_back = False
        self.alone_since = None
        self.frame = 0
        session.calls[self.id] = self
        if not kept:
            attempt, number = self._on_disk
            self.earlier = (self.attempt, number if attempt == self.attempt else 0) if self.attempt else None
            self.attempt = max(self.attempt + 1, self.opened.attempt)
            self.told = 0
            self.from_before = False
        self.rouse()

    def lose(self, *, begun: bool) -> None:
        """Its session is over, or has handed it back."""
        self.session = None
        self.pinned = None
        self.begun = begun
        self.rouse()

    @property
    def pending(self) -> bool:
        """Whether something was told that nobody has taken yet."""
        return bool(self._batches)

    def sent(self) -> Sent | None:
        """The word that it was given out under this attempt, where that was not said yet."""
        if self._sent == self.attempt:
            return None
        self._sent = self.attempt
        opened = self.opened
        waited_ms = int((self._given_at - self._asked_at) / MILLISECOND)  # for a session
        return Sent(
            at=self._given_at,
            agent_id=opened.call.agent.id,
            attempt=self.attempt,
            waited_ms=opened.waited_ms + (waited_ms if waited_ms > 1 else 0) if self.attempt == opened.attempt else 0,
        )

    async def wait(self, until: float) -> None:
        """Wait until something has happened to it, or that time has come."""
        self._wake = asyncio.get_running_loop().create_future()
        timer = self._clock.call_at(until, self.rouse)
        try:
            await self._wake
        finally:
            timer.cancel()
            self._wake = None

    def rouse(self) -> None:
        """Something has happened to it."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # -- what the agent tells

    def hear(self, told: Sequence[Told], at: datetime) -> asyncio.Future[bool] | None:
        """Take what was told of it and is new; what to wait for until all that was told is on disk.

        Raises EventGap, Overloaded, BadParams.
        """
        fresh = [] if self._finished else [each for each in told if each.n > self.told]
        if fresh and fresh[0].n > self.told + 1 and not self.from_before:
            raise EventGap(expected=self.told + 1)
        if len(self._batches) + len(self._taken) >= MOST_BATCHES:
            raise Overloaded("Too much of this call is told at once: one request at a time.")
        events: list[TaskEvent] = []
        settled = False
        for each in fresh:
            if each.event == RELEASED:
                self.handed_back = True
                break
            heard = self.listener.hear(each, at)
            events += heard.events
            settled = heard.settled
            if settled:
                self._finished = True  # What follows is not listened to.
                self.asked = each.event in ASKS
                self.ask = ask_of(each.data)
                break
        if fresh:
            self.told = fresh[-1].n
            self.from_before = False
        if events:
            recorded = asyncio.get_running_loop().create_future()
            self._batches.append(Batch(coalesced(events), settled, recorded))
            self.rouse()
        waiting = self._batches or self._taken
        return waiting[-1].recorded if waiting else None

    def take(self) -> Delivered | None:
        """All that was told and is not on disk yet; None where there is nothing."""
        if not self._batches:
            return None
        taken, self._batches = self._batches, []
        self._taken += taken
        events = coalesced([event for batch in taken for event in batch.events])
        self.settled = taken[-1].settled
        sent = self.sent()
        if sent is not None:
            events = (sent, *at_work(self.opened, sent.at, events))
        return Delivered(events=tuple(events), settled=self.settled, recorded=self._recorded)

    def close(self) -> None:
        """Nobody carries it any more: what was not recorded is not."""
        for batch in (*self._taken, *self._batches):
            if not batch.recorded.done():
                batch.recorded.set_result(False)

    def _recorded(self) -> None:
        taken, self._taken = self._taken, []
        self._on_disk = (self.attempt, taken[-1].events[-1].n)
        if self.asked and self.session is not None:
            # Before anybody can answer: the answer has to find it.
            self.session.calls.pop(self.id, None)
            self.session.remember_asking(self.id, Asking(self.attempt, self.ask))
        for batch in taken:
            if not batch.recorded.done():
                batch.recorded.set_result(True)
