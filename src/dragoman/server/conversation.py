"""One connection on which both sides say messages and acknowledge them, whatever carries the frames.

    frame in  ─▶ glance ─▶ a message          ─▶ answered as if it had been posted
                        └▶ an acknowledgement ─▶ the letter is gone; what it reports is taken like a message
    the box   ─▶ a letter ─▶ frame out, kept in flight until it is acknowledged; the rest waits in the box

At most `AT_ONCE` frames are worked on at once, those about one task one after the other. Nothing else is held but what
is in flight: at most `MOST` letters or `MOST_BYTES`. Deliberately not here: who may connect, and closing codes.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from enum import StrEnum
from functools import partial
from typing import Final

import msgspec

from dragoman.dialects.dialogue import Dialogue
from dragoman.hub.boxes import Letter, OpenBox
from dragoman.model.errors import DragomanError
from dragoman.model.http import HttpReply

AT_ONCE: Final = 16
MOST: Final = 256  # letters in flight
MOST_BYTES: Final = 1024 * 1024  # of letters in flight; one alone may be larger


class Over(StrEnum):
    """Why a conversation has ended."""

    LEFT = "left"  # the other side is gone
    DRAINED = "drained"  # the hub stops
    STALLED = "stalled"  # the other side acknowledges nothing
    REFUSED = "refused"  # its credential is not valid any more
    TOO_LARGE = "too_large"  # it sent a frame beyond the cap


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """What carries a conversation. Saying something to one who is gone raises OSError."""

    hear: Callable[[], Awaitable[bytes | None]]  # the next frame; None when there will be no more
    say: Callable[[bytes], Awaitable[None]]
    answer: Callable[[bytes, str | None], Awaitable[HttpReply]]  # to a message, in its trace; never raises
    check: Callable[[], Awaitable[object]]  # raises DragomanError where the other side may hear nothing any more
    drained: Callable[[], Awaitable[None]]  # returns when the hub stops
    cap: int
    patience_s: float  # for acknowledgements, when no more may be in flight


class _Flight(msgspec.Struct, kw_only=True):
    """A letter that was said and not acknowledged yet; the box may have it more than once."""

    numbers: list[int]
    body: bytes
    about: str | None


class Conversation:
    """Carries one conversation from its first frame to its last."""

    def __init__(self, line: Line, dialogue: Dialogue, box: OpenBox) -> None:
        self._line = line
        self._dialogue = dialogue
        self._box = box
        self._over: asyncio.Future[Over] = asyncio.get_running_loop().create_future()
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._latest: dict[str, asyncio.Task[None]] = {}  # of each task the frame that came last
        self._flights: dict[str, _Flight] = {}  # by the message's id
        self._flying_bytes = 0
        self._landed = asyncio.Event()

    async def run(self) -> Over:
        """Carry it on until one side ends it; what was begun is finished first."""
        async with asyncio.TaskGroup() as group:
            parts = (
                group.create_task(self._listen(group)),
                group.create_task(self._deliver()),
                group.create_task(self._until_drained()),
            )
            over = await self._over
            for part in parts:
                part.cancel()
        return over

    def _end(self, over: Over) -> None:
        if not self._over.done():
            self._over.set_result(over)

    async def _until_drained(self) -> None:
        await self._line.drained()
        self._end(Over.DRAINED)

    # -- in

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        while True:
            await self._slots.acquire()
            frame = await self._line.hear()
            if frame is None:
                return self._end(Over.LEFT)
            if len(frame) > self._line.cap:
                return self._end(Over.TOO_LARGE)
            self._take(frame, group)

    def _take(self, frame: bytes, group: asyncio.TaskGroup) -> None:
        seen = self._dialogue.glance(frame)
        about = seen.about
        flight = None if seen.answers is None else self._flights.pop(seen.answers, None)
        if flight is not None:
            self._flying_bytes -= len(flight.body)
            self._landed.set()
            work, about = partial(self._acknowledged, flight, frame), flight.about
        elif seen.answers is not None and not seen.speaks:
            return self._slots.release()  # Acknowledged before, or never said.
        else:
            work = partial(self._answered, frame, seen.trace)
        before = None if about is None else self._latest.get(about)
        task = group.create_task(self._in_turn(work, before, about))
        if about is not None:
            self._latest[about] = task

    async def _in_turn(
        self, work: Callable[[], Awaitable[None]], before: asyncio.Task[None] | None, about: str | None
    ) -> None:
        """Work on a frame after the one before it that was about the same task."""
        try:
            if before is not None:
                await asyncio.wait((before,))
            with contextlib.suppress(OSError):  # Whoever is gone needs no answer.
                await work()
        finally:
            self._slots.release()
            if about is not None and self._latest.get(about) is asyncio.current_task():
                del self._latest[about]

    async def _answered(self, frame: bytes, trace: str | None) -> None:
        reply = await self._line.answer(frame, trace)
        await self._line.say(reply.body)

    async def _acknowledged(self, flight: _Flight, frame: bytes) -> None:
        """A letter came, and perhaps more was said with that; an acknowledgement itself is answered only if refused."""
        report = self._dialogue.report(flight.body, frame)
        if report is not None:
            reply = await self._line.answer(report, None)
            if reply.status >= 400:
                await self._line.say(reply.body)
            if reply.status >= 500:
                return  # The hub could not take it: the letter comes again.
        await self._box.arrived(flight.numbers)

    # -- out

    async def _deliver(self) -> None:
        async with contextlib.aclosing(self._box.letters()) as letters:
            async for letter in letters:
                over = await self._said(letter)
                if over is not None:
                    return self._end(over)

    async def _said(self, letter: Letter) -> Over | None:
        seen = self._dialogue.glance(letter.body)
        name = seen.id or f"letter {letter.number}"
        if name in self._flights:
            self._flights[name].numbers.append(letter.number)
            return None
        if not await self._room_for(len(letter.body)):
            return Over.STALLED
        try:
            await self._line.check()
        except DragomanError:
            return Over.REFUSED
        self._flights[name] = _Flight(numbers=[letter.number], body=letter.body, about=seen.about)
        self._flying_bytes += len(letter.body)
        try:
            await self._line.say(letter.body)
        except OSError:
            return Over.LEFT
        return None

    async def _room_for(self, size: int) -> bool:
        """Whether one more may be in flight, if need be after a while."""
        while self._flights and (len(self._flights) >= MOST or self._flying_bytes + size > MOST_BYTES):
            self._landed.clear()
            try:
                async with asyncio.timeout(self._line.patience_s):
                    await self._landed.wait()
            except TimeoutError:
                return False
        return True
