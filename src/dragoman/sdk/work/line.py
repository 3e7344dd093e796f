"""What leads from a handler to its caller and back: events in their order, notes between them, questions and answers.

handler ──say──▶ ┐                                  answers:  recorded ones first, then those that come
any thread ─note─▶┴─ one turn at a time ─▶ emit                 the n-th question takes the n-th
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, Literal, final

from dragoman.model.errors import AgentTimeout
from dragoman.model.json import JsonObject
from dragoman.ports.clock import Clock
from dragoman.sdk.content import Message, message_from_wire
from dragoman.sdk.work.call_log import LOG_LINES

Emit = Callable[[str, JsonObject], Awaitable[None]]

USAGE: Final = "usage"


@final
class CallLine:
    """The line of one call. Notes are bounded by the log's own bound; of usage only the latest counts."""

    def __init__(self, emit: Emit, clock: Clock) -> None:
        self.cancelled = False
        self.streamed = False  # whether some words of the answer are out already
        self.usage: JsonObject = {}
        self._emit = emit
        self._clock = clock
        self._turn = asyncio.Lock()
        self._over = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._notes: deque[tuple[str, JsonObject]] = deque(maxlen=LOG_LINES + 1)
        self._noted = asyncio.Event()
        self._answers: deque[JsonObject] = deque()
        self._waiting: deque[asyncio.Future[JsonObject]] = deque()
        self._asked = 0

    @property
    def asking(self) -> bool:
        """Whether the handler waits for its caller."""
        return bool(self._waiting)

    def recorded(self, answers: Iterable[JsonObject]) -> None:
        """What was answered before, and comes before all that is answered now."""
        self._answers.extendleft(reversed(list(answers)))

    def answer(self, message: JsonObject) -> None:
        """What the caller says to the first question that waits, or to the next that is asked."""
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_result(message)
                return
        self._answers.append(message)

    async def say(self, event: str, data: JsonObject) -> None:
        """Tell something of the call, after what was noted before; nothing once the call is over."""
        async with self._turn:
            await self._tell_notes()
            if self._over:
                return
            self.streamed = self.streamed or event == "chunk"
            await self._emit(event, data)

    async def end(self, event: str, data: JsonObject) -> None:
        """Tell the last thing of the call."""
        async with self._turn:
            await self._tell_notes()
            await self._emit(event, data)
            self._over = True

    def note(self, event: str, data: JsonObject) -> None:
        """Tell it when there is time; from any thread."""
        if event == USAGE:
            self.usage = data
        if self._over:
            return
        self._notes.append((event, data))
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._noted.set)

    async def tell_notes(self) -> None:
        """Tell what is noted as it comes, until cancelled."""
        self._loop = asyncio.get_running_loop()
        while True:
            await self._noted.wait()
            self._noted.clear()
            async with self._turn:
                await self._tell_notes()

    async def ask(self, event: Literal["ask", "auth"], data: JsonObject, timeout_s: float | None) -> Message:
        """Ask the caller, and wait for the answer; what was answered before is returned at once.

        Raises AgentTimeout where none comes in time.
        """
        number, self._asked = self._asked, self._asked + 1
        if self._answers and not self._waiting:
            return message_from_wire(self._answers.popleft())
        answered: asyncio.Future[JsonObject] = asyncio.get_running_loop().create_future()
        self._waiting.append(answered)

        def give_up() -> None:
            if not answered.done():
                answered.set_exception(AgentTimeout(f"No answer came within {timeout_s:g} s."))

        try:
            await self.say(event, {"ask": number, **data})
            until = None if timeout_s is None else self._clock.call_at(self._clock.monotonic() + timeout_s, give_up)
            try:
                return message_from_wire(await answered)
            finally:
                if until is not None:
                    until.cancel()
        finally:
            if answered in self._waiting:
                self._waiting.remove(answered)

    async def _tell_notes(self) -> None:
        """What is noted, of the usage only the sum: inside a turn."""
        used = False
        while self._notes and not self._over:
            event, data = self._notes.popleft()
            if event == USAGE:
                used = True
            else:
                await self._emit(event, data)
        if used:
            await self._emit(USAGE, self.usage)
