"""The switchboard: calls on their way to agents that connected to the hub, and what those tell of them.

    carrier ── stream ──►  waits for a session  ──►  a frame down  ──►  the agent
            ◄── what was told, to be recorded ──  told  ◄── its events, which are acknowledged once they are on disk

A session lasts for as long as its agent's requests come; one that is over has its calls offered again, under a later
attempt. All of this is memory (`board.py`): the store holds the truth, and after a restart sessions say which calls
they still have. A call that an earlier life of the hub gave out is kept by the session that has it, under the attempt
that it had. No I/O of its own: a page, a WebSocket, or an agent in this very process calls the same methods.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Final

import msgspec

from dragoman.delivery.attempt import Attempt
from dragoman.delivery.board import Board, Name, Running, agent_of
from dragoman.delivery.line import Line
from dragoman.delivery.patience import PATIENCE_S, Crewed, outcome_of, patience, refuse_twice, timed_out
from dragoman.delivery.resumes import PREFIX, Resumes
from dragoman.delivery.session import FrameReader, Session
from dragoman.dialects.dialect import Outgoing, Verb
from dragoman.dialects.platform.connected import MOST_TURNS, call_frame, input_frame, turns_of
from dragoman.dialects.platform.connected_events import ConnectedListener, Told
from dragoman.dialects.times import wire_time
from dragoman.model.call import OpenedCall
from dragoman.model.content import Message
from dragoman.model.errors import DragomanError, Overloaded, SessionOver, StaleAttempt
from dragoman.model.events import StatusChanged
from dragoman.model.operations import ListTasks
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Task
from dragoman.observe.trace import trace_headers
from dragoman.ports.clock import Clock
from dragoman.ports.courier import Delivered
from dragoman.ports.store import Scope, Tasks

UNREAD_S: Final = 10.0  # for an agent whose stream was closed to be heard of again
CARRIER_S: Final = 5.0  # for the carrier of a call that a session has kept over the hub's restart
MOST_WAITING: Final = 10_000  # for one agent, where somebody waits for them; the others are bounded by who carries them


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A session, and which of the calls that its agent has go on."""

    session: Session
    keep: tuple[str, ...]
    drop: tuple[str, ...]


class Connections:
    """Carries the calls of agents that connect, and takes what they tell."""

    def __init__(
        self,
        *,
        store: Tasks,
        clock: Clock,
        lease_s: float,
        resting: Callable[[], AbstractContextManager[None]],
        gone: Callable[[str, str, float], None],
        outlived: bool = True,
    ) -> None:
        self._store = store
        self._clock = clock
        self.lease_s: Final = lease_s
        self._resting = resting  # gives way to others while a call only waits
        self._gone = gone  # told the tenant and id of an agent without sessions, and in how many seconds that counts
        # Agents that do not outlive the hub come back with no calls of its earlier life: none is waited for.
        self._started = clock.monotonic() if outlived else -inf
        self._order = itertools.count()
        self._board = Board(self._left_alone)
        self._leaving = False
        self.resumes: Final = Resumes()

    # -- for the courier

    async def stream(self, opened: OpenedCall, attempt: Attempt | None = None) -> AsyncGenerator[Delivered]:
        """Give the call to its agent and tell what happens as it happens; the last settles it.

        Where it is not the agent who ends it, the attempt says why.
        """
        line = Line(opened, ConnectedListener(self._outgoing(opened, 0)), next(self._order), self._clock)
        self._board.lines[line.id] = line
        try:
            while True:
                await self._place(line)
                if line.attempt > 1 and (sent := line.sent()) is not None:
                    # On disk before the agent knows: no two processes ever have a call under the same attempt.
                    yield Delivered(events=(sent,), settled=False)
                await self._say(line)
                if attempt is not None and not line.kept:
                    attempt.streamed_at = self._clock.monotonic()
                while line.session is not None or line.pending:
                    delivered = line.take()
                    if delivered is not None:
                        yield delivered
                        if delivered.settled:
                            return
                    elif self._clock.monotonic() >= line.deadline:
                        raise timed_out(line)
                    else:
                        await line.wait(line.deadline)
                refuse_twice(line)
        except DragomanError as error:
            if attempt is not None:
                attempt.failed, attempt.known = True, outcome_of(error, line)
            failed = StatusChanged(at=self._clock.now(), state=TaskState.FAILED, failure=error.failure())
            sent = line.sent()
            yield Delivered(events=(failed,) if sent is None else (sent, failed), settled=True)
        finally:
            self._board.forget(line)

    def cancel(self, task: Task, reason: str) -> None:
        """Tell the session that has a call to stop."""
        self._board.cancel(task, reason)

    # -- for the agents

    async def open(
        self, tenant: str, agent_id: str, opened_by: str, capacity: int, running: Sequence[Running]
    ) -> Standing:
        """A new session, and which of its calls it keeps. Raises Overloaded."""
        if self._board.draining:
            raise Overloaded("The hub is shutting down.", retry_after_s=2, reason="draining")
        session = Session(
            id=self._clock.new_id(PREFIX),
            tenant=tenant,
            agent_id=agent_id,
            opened_by=opened_by,
            capacity=capacity,
            unread=self._unread,
        )
        stored = [await self._stored(tenant, each.call_id) for each in running]
        # From here on nothing is awaited: what was found stays true until the session is there.
        now = self._clock.monotonic()
        keep = list[str]()
        self._board.add(session)
        for each, task in zip(running, stored, strict=True):
            if self._board.keep(session, each, task, now):
                keep.append(each.call_id)
        session.until = now + self.lease_s
        self._clock.call_at(session.until, lambda: self._look_at(session))
        self._board.match(agent_of(session))
        return _standing(session, running, keep)

    def renewed(self, session: Session, capacity: int | None, received: int, running: Sequence[Running]) -> Standing:
        """The session goes on; which of its calls go on with it."""
        if capacity is not None:
            session.capacity = capacity
        session.received(received)
        session.handed_back = False
        since = self._clock.monotonic() - self.lease_s
        # What nobody has carried by now, nobody will.
        self._board.give_up(session, [call_id for call_id, claim in session.claims.items() if claim.since < since])
        self.heard_of(session)
        self._board.match(agent_of(session))
        has = (session.calls, session.claims, session.asking)
        # Under whatever attempt: a frame with a later one may be on its way.
        keep = [each.call_id for each in running if any(each.call_id in those for those in has)]
        return _standing(session, running, keep)

    def standing(self) -> dict[str, bool]:
        """The agents that were connected in this life of the hub, and whether they are now."""
        return self._board.standing()

    @property
    def sessions_open(self) -> int:
        """How many sessions there are now."""
        return len(self._board.sessions)

    def session(self, session_id: str, *, leaving: bool = False) -> Session:
        """A session that lasts; its agent goes on in it, or leaves it. Raises SessionOver."""
        try:
            return self._board.session(session_id)
        except SessionOver:
            if not leaving:
                self.resumes.note_lost(session_id)
            raise

    def heard_of(self, session: Session) -> None:
        """Its agent was heard of: the session lasts for another lease."""
        session.until = self._clock.monotonic() + self.lease_s

    def frames(self, session: Session, after: int) -> FrameReader:
        """What the hub says to a session, after a number and from now on. Raises Overloaded."""
        if self._board.draining and not session.calls:
            raise Overloaded("The hub is shutting down.", retry_after_s=1, reason="draining")
        self.heard_of(session)
        if session.streamed:
            self.resumes.kept += 1
        reader = session.read(after, {"session_id": session.id, "server_time": wire_time(self._clock.now())})
        if self._board.draining:
            reader.drain()
        return reader

    async def told(self, session: Session, call_id: str, attempt: int, events: Sequence[Told]) -> int:
        """Take what an agent tells of a call; the number up to which all is on disk, once it is.

        Raises StaleAttempt, EventGap, SessionOver, Overloaded, BadParams.
        """
        self.heard_of(session)
        last = events[-1].n if events else 0
        if call_id in session.claims:
            await self._carrier_of(session, call_id)
        line = session.calls.get(call_id)
        if line is None:
            return await self._told_of_other(session, call_id, attempt, last)
        if line.attempt != attempt:
            raise StaleAttempt(call_id=call_id, attempt=line.attempt)
        session.has(line.frame)
        recorded = line.hear(events, self._clock.now())
        told = line.told
        if line.handed_back:
            session.calls.pop(call_id, None)
            session.handed_back = True
            line.lose(begun=False)
        if recorded is not None and not await asyncio.shield(recorded):
            return await self._told_of_other(session, call_id, attempt, last)
        return told

    def leave(self, session: Session) -> None:
        """Its agent goes: what it has not begun goes to others, who may be there within a moment."""
        self._leaving = True
        self._board.end(session, left=True)
        self._leaving = False

    def drain(self) -> None:
        """The hub stops: every session is told so."""
        self._board.draining = True
        for session in self._board.sessions.values():
            session.drain()

    # -- placing

    async def _place(self, line: Line) -> None:
        """Wait until a session has the call. Raises AgentTimeout, AgentUnavailable, Interrupted, Overloaded."""
        name = agent_of(line)
        crew = self._board.crew(name)
        if not line.accepted and len(crew.waiting) >= MOST_WAITING:
            raise Overloaded(f"Too many calls wait for {name[1]}.", retry_after_s=5)
        crew.waiting[line.id] = line
        self._board.find_again(line)
        offered = False
        with self._resting():
            while line.session is None:
                agent = Crewed(connected=bool(crew.sessions), seen=self._board.was_seen(name))
                now = self._clock.monotonic()
                wait = patience(line, agent, now=now, started=self._started, lease_s=self.lease_s)
                if wait.any_session and not offered:
                    offered = True
                    crew.offer(line)
                    self._board.match(name)
                else:
                    await line.wait(wait.until)

    async def _say(self, line: Line) -> None:
        """Tell the session that has the call of it, unless it knows."""
        session = line.session
        if session is None or line.kept:
            return
        task = line.opened.task
        outgoing = self._outgoing(line.opened, line.attempt)
        asking = session.asking.pop(line.id, None)
        if asking is not None and line.pinned is session:
            line.frame = session.say("input", input_frame(outgoing, asking.ask))
            return
        earlier = await self._earlier(task) if task.asked.context_id is not None else ()
        if line.session is session:
            line.frame = session.say("call", call_frame(outgoing, line.opened.call, earlier, line.earlier))

    async def _earlier(self, task: Task) -> Sequence[Message]:
        """What was said before in the conversation, between this caller and this agent."""
        scope = Scope(tenant=task.tenant, principal=task.caller_id)
        asked = ListTasks(agent=task.agent_id, context_id=task.context_id, limit=MOST_TURNS)
        found = (await self._store.list_tasks(scope, asked)).tasks
        return turns_of(each for each in found if each.id != task.id and each.created_at <= task.created_at)

    # -- sessions that go

    def _unread(self, session: Session) -> None:
        """Its stream is closed: a process that lives opens another within seconds, one that was killed never will."""
        until = self._clock.monotonic() + UNREAD_S
        if until < session.until:
            session.until = until
            self._clock.call_at(until, lambda: self._look_at(session))

    def _look_at(self, session: Session) -> None:
        """See whether the session's lease is over."""
        if session.over:
            return
        if self._clock.monotonic() >= session.until:
            self._board.end(session, left=False)
        else:
            self._clock.call_at(session.until, lambda: self._look_at(session))

    def _left_alone(self, name: Name) -> None:
        self._gone(*name, PATIENCE_S if self._leaving else 0.0)

    # -- what is told

    async def _carrier_of(self, session: Session, call_id: str) -> None:
        """Wait until a call that the session has kept is carried. Raises Overloaded where that takes too long."""
        claim = session.claims[call_id]
        timer = self._clock.call_at(self._clock.monotonic() + CARRIER_S, claim.settle)
        try:
            await asyncio.shield(claim.settled)
        finally:
            timer.cancel()
        if call_id in session.claims:
            raise Overloaded("The hub has not got to this call yet.", retry_after_s=1)

    async def _told_of_other(self, session: Session, call_id: str, attempt: int, last: int) -> int:
        """What is told of a call that is not at the session now. Raises StaleAttempt, SessionOver, Overloaded."""
        if session.over:
            raise SessionOver(session_id=session.id)
        task = await self._stored(session.tenant, call_id)
        if task is None or task.agent_id != session.agent_id or attempt != max(task.attempt, 1):
            raise StaleAttempt(call_id=call_id)
        if last <= task.heard:
            return last  # It was told before, and the answer to that got lost.
        if task.state in INTERRUPTED or (not task.ended and call_id in session.claims):
            raise Overloaded("The call waits for its caller: tell more of it under its next attempt.", retry_after_s=1)
        raise StaleAttempt(call_id=call_id, state=task.state.value)

    async def _stored(self, tenant: str, call_id: str) -> Task | None:
        return await self._store.load(Scope(tenant=tenant, principal=None), call_id)

    def _outgoing(self, opened: OpenedCall, attempt: int) -> Outgoing:
        call, task = opened.call, opened.task
        return Outgoing(
            verb=Verb.STREAM,
            task=task,
            asked=call.operation,
            endpoint=call.endpoint,
            at=self._clock.now(),
            message=call.message,
            headers=trace_headers(task.trace, task.asked.request_id or f"req_{task.id}"),
            caller=call.caller.name,
            attempt=attempt,
            timeout_ms=max(0, int((call.deadline - self._clock.monotonic()) * 1000)),
        )


def _standing(session: Session, running: Sequence[Running], keep: Sequence[str]) -> Standing:
    dropped = tuple(each.call_id for each in running if each.call_id not in keep)
    return Standing(session=session, keep=tuple(keep), drop=dropped)
