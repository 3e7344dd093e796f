"""Sends what one call says until the hub has it: one POST at a time, what gathers meanwhile goes in the next.

    say ─▶ Unacked ─▶ POST ─▶ acked: dropped          lost, refused for now: the same again, after a while
                        ├──▶ gap: from where the hub expects it
                        ├──▶ stale: wait for a later attempt; none comes: let go of the call
                        └──▶ session over: wait for the next session

Ends when all was said and is on disk, when the call was let go of, or 60 s past its deadline.
"""

import logging
from typing import final

from dragoman.model.errors import AgentError, BadRequest, DragomanError
from dragoman.ports.clock import Clock
from dragoman.sdk.connect.backoff import Backoff
from dragoman.sdk.connect.held import HeldCall
from dragoman.sdk.connect.links import Gap, Link, SessionOver, Stale
from dragoman.sdk.connect.sessions import Session, Sessions
from dragoman.sdk.connect.unacked import BATCH_EVENTS, Batch, said

_log = logging.getLogger("dragoman.agent")


@final
class Sender:
    """What sends for one call."""

    __slots__ = ("_backoff", "_clock", "_held", "_link", "_most", "_sessions")

    def __init__(self, held: HeldCall, link: Link, sessions: Sessions, clock: Clock) -> None:
        self._held = held
        self._link = link
        self._sessions = sessions
        self._clock = clock
        self._backoff = Backoff(clock)
        self._most = BATCH_EVENTS

    async def run(self) -> None:
        """Send until nothing is left to send."""
        held = self._held
        while not self._finished():
            if held.stale or not len(held.said):
                held.news.clear()
                await held.news.wait()
            else:
                await self._send(await self._sessions.current())

    def _finished(self) -> bool:
        held = self._held
        if held.dropped or held.said.settled:
            return True
        # A later attempt, if there is one, is answered from memory.
        given_up = held.stale or self._clock.monotonic() > held.until
        return held.over.is_set() and held.said.ended and given_up

    async def _send(self, session: Session) -> None:
        held = self._held
        batch = held.said.batch(self._most)
        if batch is None:
            return
        try:
            acked = await self._link.tell(session.id, held.id, batch.attempt, batch.events)
        except SessionOver:
            self._sessions.end(session)
        except Stale:
            if batch.attempt == held.said.attempt:
                held.doubt(self._clock)
        except Gap as gap:
            if not held.said.expect(batch.attempt, gap.expected):
                _log.error("the hub lost events of %s that it had acknowledged", held.id)
                held.drop("the hub lost what was said")
            await self._pause(self._backoff.next_s())
        except BadRequest as refusal:
            self._refused(batch, refusal)
        except DragomanError as error:
            await self._pause(max(error.retry_after_s or 0.0, self._backoff.next_s()))
        else:
            if held.said.ack(batch.attempt, acked):
                self._backoff.reset()
                held.heard()
            elif batch.attempt == held.said.attempt:
                await self._pause(self._backoff.next_s())

    def _refused(self, batch: Batch, refusal: BadRequest) -> None:
        """What the hub will never take: found by sending one at a time, and told as the call's failure."""
        held = self._held
        if batch.attempt != held.said.attempt:
            return
        if len(batch.events) > 1:
            self._most = 1
            return
        event = str(batch.events[0]["event"])
        _log.error("the hub refused a %s of %s: %s", event, held.id, refusal.message)
        if held.said.failed:
            held.drop("the hub takes nothing of it")
            return
        failure = {
            "code": AgentError.code,
            "message": f"The hub did not take what the agent said ({event}): {refusal.message}",
            "details": {"reason": "refused_by_hub"},
        }
        held.said.fail(said("error", failure))
        held.stop("the hub refused what it said")

    async def _pause(self, seconds: float) -> None:
        """Wait, or until something says that trying again is worth it."""
        again = self._held.again
        again.clear()
        timer = self._clock.call_at(self._clock.monotonic() + seconds, again.set)
        try:
            await again.wait()
        finally:
            timer.cancel()
