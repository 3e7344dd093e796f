"""One target: how many calls it has, and the calls that wait for their turn.

    enter ─► a permit is free ─────────────────► it has one ─► gives it back ─┐
         └─► a place ─► waits, smallest rank first ─► is handed it ◄──────────┘

Places are bounded: so many for calls that somebody waits for, so many for those that were accepted, and one caller has
at most half of either. A place may be taken before its call comes to wait, so that what was accepted is sure of it.
"""

import asyncio
from bisect import bisect_left, bisect_right, insort
from typing import Final, final

from dragoman.model.agent import Agent
from dragoman.model.errors import AgentTimeout
from dragoman.ports.clock import Clock

WAITED_FOR: Final = 256


@final
class Places:
    """Who has a place to wait at; bounded, and for one caller by half."""

    __slots__ = ("_by_caller", "_callers", "_most")

    def __init__(self, most: int) -> None:
        self._most = most
        self._callers: dict[str, str] = {}  # by call
        self._by_caller: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._callers)

    def full(self, caller: str | None, spare: int) -> bool:
        """Whether there is no place left for a caller, or for nobody in particular; `spare` need not wait."""
        if len(self._callers) >= self._most + spare:
            return True
        return caller is not None and self._by_caller.get(caller, 0) >= self._most // 2 + spare

    def take(self, call_id: str, caller: str) -> None:
        """A call has a place; a second time changes nothing."""
        if call_id not in self._callers:
            self._callers[call_id] = caller
            self._by_caller[caller] = self._by_caller.get(caller, 0) + 1

    def leave(self, call_id: str) -> None:
        """A call needs its place no more."""
        caller = self._callers.pop(call_id, None)
        if caller is not None:
            self._by_caller[caller] -= 1
            if not self._by_caller[caller]:
                del self._by_caller[caller]


@final
class _Waiter:
    """A call that waits; told True when it is its turn, False when its time is over."""

    __slots__ = ("call_id", "turn")

    def __init__(self, call_id: str) -> None:
        self.call_id: Final = call_id
        self.turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()


@final
class Target:
    """One target's permits. A permit is the target itself: whoever has one gives it back, once."""

    __slots__ = ("_clock", "_order", "_queue", "accepted", "agent", "most", "running", "to_the_end", "waited_for")

    def __init__(self, agent: Agent, clock: Clock, *, accepted: int) -> None:
        self.agent = agent  # as it was when it was last asked how many it takes
        self._clock = clock
        self.most = 0
        self.to_the_end = False  # a permit counts until its call has ended, not only while the hub talks to the agent
        self.running = 0
        self.waited_for: Final = Places(WAITED_FOR)
        self.accepted: Final = Places(accepted)
        self._queue: list[tuple[float, int, _Waiter]] = []
        self._order = 0

    @property
    def waiting(self) -> int:
        """How many calls wait for their turn."""
        return len(self._queue)

    @property
    def idle(self) -> bool:
        """Whether there is nothing here to remember."""
        return not (self.running or self._queue or self.accepted or self.waited_for)

    def before(self, rank: float) -> int:
        """How many of those that wait go before a call of that rank."""
        return bisect_right(self._queue, rank, key=_rank)

    def take(self) -> bool:
        """Take a permit, if one is free and nobody waits for it."""
        if self.running >= self.most or self._queue:
            return False
        self.running += 1
        return True

    async def wait(self, call_id: str, rank: float, deadline: float, timeout_s: float) -> "Target":
        """A permit when it is the call's turn. Raises AgentTimeout at the deadline."""
        waiter = _Waiter(call_id)
        self._order += 1
        place = (rank, self._order, waiter)
        insort(self._queue, place)
        self._hand_on()  # There may be more permits than there were when the last one was given back.
        timer = self._clock.call_at(deadline, lambda: waiter.turn.done() or waiter.turn.set_result(False))
        in_time = False
        try:
            in_time = await waiter.turn
        finally:
            timer.cancel()
            if not in_time and not self._left(place) and not waiter.turn.cancelled() and waiter.turn.result():
                self.give_back()  # It was handed a permit in the very moment in which it was cancelled.
        if not in_time:
            raise AgentTimeout(
                f"{self.agent.id} was busy with other calls until the call's time was over.",
                timeout_ms=round(timeout_s * 1000),
                agent_id=self.agent.id,
                reason="queued",
            )
        return self

    def give_back(self) -> None:
        """A call no longer needs its permit: the first that waits has it."""
        self.running -= 1
        if self._queue:
            self._hand_on()

    def _left(self, place: tuple[float, int, _Waiter]) -> bool:
        """Take a call out of the queue; False if it was there no longer."""
        at = bisect_left(self._queue, place)
        if at < len(self._queue) and self._queue[at] is place:
            del self._queue[at]
            self.accepted.leave(place[2].call_id)
            self.waited_for.leave(place[2].call_id)
            return True
        return False

    def _hand_on(self) -> None:
        while self._queue and self.running < self.most:
            _, _, waiter = self._queue.pop(0)
            self.accepted.leave(waiter.call_id)
            self.waited_for.leave(waiter.call_id)
            if not waiter.turn.done():
                self.running += 1
                waiter.turn.set_result(True)


Permit = Target


def give_back(permit: Permit | None) -> None:
    """A call needs its permit no more, if it had one."""
    if permit is not None:
        permit.give_back()


def kept_to_the_end(permit: Permit | None) -> Permit | None:
    """The permit where it counts until the call has ended; one that counts while words are exchanged is given back."""
    if permit is None or permit.to_the_end:
        return permit
    permit.give_back()
    return None


def _rank(place: tuple[float, int, _Waiter]) -> float:
    return place[0]
