"""An agent's process at the hub it connects to: one session after the other, kept until the process is told to stop.

    open ─▶ hold: listen to frames │ renew it every heartbeat ─▶ over ─▶ open, with the calls that still run ─▶ …

What is done with the frames is in `calls.py`, how bytes travel in `links.py`; signals are not known here.
"""

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final, final

import msgspec

from dragoman import __version__
from dragoman.model.errors import DragomanError
from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.connect.backoff import Backoff
from dragoman.sdk.connect.calls import Calls
from dragoman.sdk.connect.frames import Drain, Opened
from dragoman.sdk.connect.links import Frame, Link, SessionOver
from dragoman.sdk.connect.sessions import Session, Sessions
from dragoman.sdk.errors import HubUnreachable
from dragoman.sdk.work.work import Emit, Work

if TYPE_CHECKING:
    from dragoman.sdk.agent.agent import Agent
    from dragoman.sdk.client.client import A2AClient

FINISH_S: Final = 30.0  # for calls that run when the process is told to stop
CLEAN_UP_S: Final = 6.0  # for handlers that were cancelled; they have five
LEAVE_S: Final = 3.0
QUICKEST_S: Final = 0.1  # between two heartbeats, whatever the hub says
STEADY_S: Final = 0.5  # what lasted so long did not fail at once

_log = logging.getLogger("dragoman.agent")


@final
class Connection:
    """One agent, connected to one hub over one link, until it is stopped."""

    def __init__(self, agent: "Agent", link: Link, *, clock: Clock, client: "A2AClient | None" = None) -> None:
        self.opened = asyncio.Event()  # for the first time
        self.stuck = False  # at the end: handlers did not stop when they were told to
        self._agent = agent
        self._link = link
        self._clock = clock
        self._client = client
        self._sessions = Sessions()
        self._stopping = asyncio.Event()
        self._lost = False

    def stop(self) -> None:
        """Take no new calls, finish what runs, leave. To be called on the loop of `run`."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`. Raises the error of a hub that does not take this agent."""
        try:
            async with asyncio.TaskGroup() as group:
                calls = Calls(self._begin, self._agent.concurrency, self._link, self._sessions, self._clock, group)
                keeping = group.create_task(self._keep(calls))
                await self._stopping.wait()
                await self._finish(calls)
                keeping.cancel()
                calls.abort()
        except BaseExceptionGroup as several:
            # The group wraps what the hub said.
            raise several.exceptions[0] from several.exceptions[0].__cause__
        finally:
            # However it ends: a session that nobody leaves has its calls wait for the end of its lease.
            if (session := self._sessions.open) is not None:
                await self._leave(session)
            await self._link.close()

    def _begin(self, call: JsonObject, emit: Emit) -> Work:
        return Work(self._agent, call, emit=emit, clock=self._clock, client=self._client)

    async def _keep(self, calls: Calls) -> None:
        backoff = Backoff(self._clock)
        while True:
            session = await self._open(calls)
            began = self._clock.monotonic()
            await self._hold(session, calls)
            if self._clock.monotonic() - began >= STEADY_S:
                backoff.reset()
            else:
                await self._clock.sleep(backoff.next_s())

    async def _open(self, calls: Calls) -> Session:
        """A new session; waits for a hub that is away, raises what the hub refuses for good."""
        backoff = Backoff(self._clock)
        more = {"card": self._agent.card(), "sdk": f"dragoman-python/{__version__}"}
        while True:
            try:
                told = _read_opened(await self._link.open(self._hello(calls, more)))
                break
            except SessionOver:
                pause_s = backoff.next_s()
            except DragomanError as error:
                pause_s = self._bear(error, backoff, calls)
            await self._clock.sleep(pause_s)
        self._found()
        session = Session(told.session_id, max(told.heartbeat_s, QUICKEST_S))
        self._sessions.begin(session)
        calls.give_up(told.drop)
        calls.retry()
        self.opened.set()
        return session

    async def _hold(self, session: Session, calls: Calls) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                listening = group.create_task(self._listen(session, calls))
                renewing = group.create_task(self._renew(session, calls))
                await session.over.wait()
                listening.cancel()
                renewing.cancel()
        except BaseExceptionGroup as several:
            raise several.exceptions[0] from several.exceptions[0].__cause__

    async def _listen(self, session: Session, calls: Calls) -> None:
        """Take frames as long as the session lasts, on one stream after the other."""
        backoff = Backoff(self._clock)
        while True:
            began = self._clock.monotonic()
            pause_s, lost = None, None
            try:
                pause_s = await self._read(session, calls, backoff)
            except SessionOver:
                self._sessions.end(session)
                return
            except DragomanError as error:
                lost = error
            if self._clock.monotonic() - began >= STEADY_S:
                backoff.reset()
            if lost is not None:
                pause_s = self._bear(lost, backoff, calls)
            await self._clock.sleep(backoff.next_s() if pause_s is None else pause_s)

    async def _read(self, session: Session, calls: Calls, backoff: Backoff) -> float | None:
        """Take frames from one stream to its end; when to come back, where the hub says so."""
        pause_s = None
        async with aclosing(self._link.frames(session.id, session.received)) as frames:
            async for frame in frames:
                self._found()
                if frame.event == "hello":
                    calls.retry()
                elif frame.event == "drain":
                    pause_s = _pause_of(frame)  # The hub ends the stream itself, when no call needs it any more.
                # One that was sent again after a lost connection is known by its number.
                elif frame.id > session.received:
                    session.received = frame.id
                    backoff.reset()
                    calls.take(frame)
        return pause_s

    async def _renew(self, session: Session, calls: Calls) -> None:
        """Say again and again that this process lives, and which calls with it."""
        backoff = Backoff(self._clock)
        pause_s = session.heartbeat_s
        while True:
            await self._clock.sleep(pause_s)
            try:
                await self._heartbeat(session, calls)
            except SessionOver:
                self._sessions.end(session)
                return
            except DragomanError as error:
                pause_s = min(self._bear(error, backoff, calls), session.heartbeat_s)
            else:
                pause_s = session.heartbeat_s
                backoff.reset()

    async def _heartbeat(self, session: Session, calls: Calls) -> None:
        hello = self._hello(calls, {"session_id": session.id, "received": session.received})
        reported = {str(one["call_id"]): int(one["attempt"]) for one in hello["running"]}
        told = _read_opened(await self._link.open(hello))
        self._found()
        # The frame of a later attempt may be on its way here, so nothing is cancelled at once.
        calls.doubt(told.drop, reported)

    def _hello(self, calls: Calls, more: JsonObject) -> JsonObject:
        return {"agent_id": self._agent.id, "capacity": calls.capacity, "running": calls.running(), **more}

    def _bear(self, error: DragomanError, backoff: Backoff, calls: Calls) -> float:
        """How long to wait where that may help; raises the error where it does not."""
        if not error.retryable:
            raise error
        if not self._lost:
            self._lost = True
            _log.warning("%s. Trying again until it answers.", error.message.rstrip("."))
        return max(error.retry_after_s or 0.0, backoff.next_s(busy=len(calls) > 0))

    def _found(self) -> None:
        if self._lost:
            self._lost = False
            _log.warning("The hub answers again.")

    async def _finish(self, calls: Calls) -> None:
        """No new calls, 30 s for those that run; what is not done then goes to whoever comes next."""
        calls.leaving = True
        calls.drop(asking=True)
        if (session := self._sessions.open) is not None and len(calls):
            await self._refuse_calls(session, calls)
        if not await calls.finished(FINISH_S):
            calls.drop(asking=False)
            self.stuck = not await calls.finished(CLEAN_UP_S)

    async def _refuse_calls(self, session: Session, calls: Calls) -> None:
        """Tell the hub at once that nothing more should come; without it, what comes is handed back."""
        try:
            await self._heartbeat(session, calls)
        except SessionOver:
            self._sessions.end(session)
        except DragomanError as error:
            _log.info("The hub was not told that no call should come: %s", error.message)

    async def _leave(self, session: Session) -> None:
        """Leave; a hub that cannot be told notices by itself."""
        try:
            async with asyncio.timeout(LEAVE_S):
                await self._link.leave(session.id)
        except (SessionOver, TimeoutError):
            pass
        except DragomanError as error:
            _log.info("The hub was not told that the agent leaves: %s", error.message)


def _read_opened(told: JsonObject) -> Opened:
    try:
        return msgspec.convert(told, Opened)
    except msgspec.ValidationError as error:
        raise HubUnreachable(f"What answers there is no hub ({error})", sent=True) from None


def _pause_of(frame: Frame) -> float:
    try:
        return max(0, msgspec.convert(frame.data, Drain).reconnect_after_ms) / 1000
    except msgspec.ValidationError:
        return 0.0
