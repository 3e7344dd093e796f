"""The calls that an agent's process has: taken from frames, carried out, sent, remembered.

A call that comes again under a later attempt goes on with the work that runs, or is answered with what it said last:
it is never run twice at once. Knows nothing of how the session is kept (`connection.py` does).

    call ─▶ Work ─▶ HeldCall ─▶ Sender ─▶ EndedCalls
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC
from typing import Final, TypeVar, final

import msgspec

from dragoman.model.errors import AgentError
from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.connect.ended import EndedCalls
from dragoman.sdk.connect.frames import Answer, Cancel, Heard, Offer
from dragoman.sdk.connect.held import HeldCall
from dragoman.sdk.connect.links import Frame, Link
from dragoman.sdk.connect.sending import Sender
from dragoman.sdk.connect.sessions import Sessions
from dragoman.sdk.connect.unacked import Unacked, said
from dragoman.sdk.work.work import Emit, Work

MOST_CAPACITY: Final = 1000  # that a hub takes for one process
HELD_CALLS: Final = 10_000  # those that ask take no capacity; beyond, calls are handed back
UNBOUNDED_S: Final = 3600.0  # for the end of a call without a deadline
PAST_DEADLINE_S: Final = 60.0
OVER: Final = "the call is over, or somebody else carries it out"
STOPS: Final = "the agent stops"

Begin = Callable[[JsonObject, Emit], Work]
Told = TypeVar("Told")

_log = logging.getLogger("dragoman.agent")


@final
class Calls:
    """All calls of one process; their tasks live in the group that is handed in."""

    def __init__(
        self,
        begin: Begin,
        capacity: int,
        link: Link,
        sessions: Sessions,
        clock: Clock,
        group: asyncio.TaskGroup,
    ) -> None:
        self.leaving = False  # whatever comes now is handed back
        self._begin = begin
        self._capacity = capacity
        self._link = link
        self._sessions = sessions
        self._clock = clock
        self._group = group
        self._held: dict[str, HeldCall] = {}
        self._ended = EndedCalls()
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    @property
    def capacity(self) -> int:
        """How many calls the hub may have running here."""
        return 0 if self.leaving else min(self._capacity, MOST_CAPACITY)

    def running(self) -> list[JsonObject]:
        """Those that a session tells the hub of."""
        return [
            {"call_id": held.id, "attempt": held.said.attempt, "n": held.said.number}
            for held in self._held.values()
            if not held.dropped and not held.said.settled
        ]

    def take(self, frame: Frame) -> None:
        """Do what a frame says; one that says nothing readable is noted and passed over."""
        try:
            match frame.event:
                case "call":
                    self._offered(msgspec.convert(frame.data, Offer), frame.data)
                case "input":
                    self._answered(msgspec.convert(frame.data, Answer))
                case "cancel":
                    self._cancelled(msgspec.convert(frame.data, Cancel))
                case _:
                    pass  # a later hub may say more
        except msgspec.ValidationError as error:
            _log.error("the hub sent a frame that makes no sense: %s %s", frame.event, error)

    def retry(self) -> None:
        """The hub was heard of: what waits to be sent again need not wait longer."""
        for held in self._held.values():
            held.again.set()

    def give_up(self, drop: Iterable[str]) -> None:
        """These are no longer this process's, as a new session was told."""
        for call_id in drop:
            if call_id in self._held:
                self._held[call_id].drop(OVER)

    def doubt(self, drop: Iterable[str], reported: Mapping[str, int]) -> None:
        """A heartbeat was told that these are no longer this process's, under the attempts that it reported."""
        for call_id in drop:
            held = self._held.get(call_id)
            if held is not None and held.said.attempt == reported.get(call_id):
                held.doubt(self._clock)

    def drop(self, *, asking: bool) -> None:
        """Let go of all, or of those that only wait for an answer: whoever takes these up has what was answered."""
        for held in self._held.values():
            if not asking or (held.work is not None and held.work.asking):
                held.drop(STOPS)

    async def finished(self, within_s: float) -> bool:
        """Wait until no call is left; whether that was in time."""
        self._idle.clear()
        timer = self._clock.call_at(self._clock.monotonic() + within_s, self._idle.set)
        try:
            if self._held:
                await self._idle.wait()
        finally:
            timer.cancel()
        return not self._held

    def abort(self) -> None:
        """End every task, whatever it does."""
        for task in self._tasks:
            task.cancel()

    def _offered(self, offer: Offer, call: JsonObject) -> None:
        held = self._held.get(offer.call_id)
        if held is not None and not held.dropped:
            held.said.adopt(offer.attempt, heard=_pair(offer.heard))
            for message in offer.answers[held.answers :]:
                held.answer(message)
            held.adopted()
            return
        ended = self._ended.find(offer.call_id)
        if ended is not None:
            if offer.attempt > ended.attempt:
                self._ended.take(offer.call_id)
                ended.adopt(offer.attempt, heard=_pair(offer.heard))
                self._carry(HeldCall(offer.call_id, ended, self._until(offer)))
            return
        fresh = HeldCall(offer.call_id, Unacked(offer.attempt), self._until(offer))
        busy = sum(one.busy for one in self._held.values())
        if self.leaving or busy >= self._capacity or len(self._held) >= HELD_CALLS:
            fresh.said.add(said("released", {}))
        else:
            fresh.answers = len(offer.answers)
            fresh.work = self._begin(call, fresh.emit)
        self._carry(fresh, held)

    def _answered(self, answer: Answer) -> None:
        held = self._held.get(answer.call_id)
        if held is None or held.dropped:
            # Its work is not here: handed back, the call comes again with all that was answered.
            fresh = HeldCall(answer.call_id, Unacked(answer.attempt), self._clock.monotonic() + PAST_DEADLINE_S)
            fresh.said.add(said("released", {}))
            self._carry(fresh, held)
        elif answer.attempt >= held.said.attempt:
            held.said.adopt(answer.attempt, heard=_pair(answer.heard), answered=answer.ask)
            if answer.ask >= held.answers:
                held.answer(answer.message)
            held.adopted()

    def _cancelled(self, cancel: Cancel) -> None:
        held = self._held.get(cancel.call_id)
        if held is not None and not held.dropped and cancel.attempt >= held.said.attempt:
            held.said.adopt(cancel.attempt)
            held.adopted()
            held.stop(cancel.reason)

    def _until(self, offer: Offer) -> float:
        """When the end of a call is of no use to anybody any more."""
        now = self._clock.monotonic()
        if offer.deadline is None:
            return now + UNBOUNDED_S
        deadline = offer.deadline if offer.deadline.tzinfo else offer.deadline.replace(tzinfo=UTC)
        return now + (deadline - self._clock.now()).total_seconds() + PAST_DEADLINE_S

    def _carry(self, held: HeldCall, before: HeldCall | None = None) -> None:
        self._held[held.id] = held
        task = self._group.create_task(self._carried(held, before))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carried(self, held: HeldCall, before: HeldCall | None) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_worked(held, before))
                await Sender(held, self._link, self._sessions, self._clock).run()
        finally:
            if self._held.get(held.id) is held:
                del self._held[held.id]
            if held.said.ended and not held.said.released:
                self._ended.add(held.id, held.said)
            if not self._held:
                self._idle.set()


async def _worked(held: HeldCall, before: HeldCall | None) -> None:
    """Have the work done, if there is any; after what is left of an earlier attempt, which may be cleaning up."""
    try:
        if held.work is None:
            return
        if before is not None:
            await before.over.wait()
        if not held.dropped:
            await held.work.run()
    except Exception:  # noqa: BLE001 - one call's surprise ends that call, not the agent
        _log.exception("carrying out %s failed", held.id)
        await held.emit("error", {"code": AgentError.code, "message": "The agent failed."})
    finally:
        held.end()


def _pair(heard: Heard | None) -> tuple[int, int] | None:
    return None if heard is None else (heard.attempt, heard.n)
