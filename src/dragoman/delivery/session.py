"""One session of an agent that connected: what it was given, and the frames that are on their way to it.

Frames are numbered and kept until the agent has shown that it has them, so a stream that broke off goes on after the
last one. One stream at a time reads them: a second one takes the place of the first. Nothing is waited for here but the
next frame. What is kept is bounded: a session that takes nothing gets no more calls.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Self, TypeVar, final

import msgspec

from dragoman.model.json import JsonObject

if TYPE_CHECKING:
    from dragoman.delivery.line import Line

MOST_FRAMES: Final = 1024  # kept, beyond which a session gets no more calls
MOST_BYTES: Final = 8 * 1024 * 1024
MOST_REMEMBERED: Final = 1000  # calls that wait for their callers, and calls that the hub ended
RECONNECT_MS: Final = 1000

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(JsonObject).decode

Kept = TypeVar("Kept")


class Frame(msgspec.Struct, frozen=True, gc=False):
    """One thing that the hub says: its number in the session (0 for what has none), its name, and what it says."""

    id: int
    event: str
    body: bytes  # a JSON object

    @property
    def data(self) -> JsonObject:
        """What it says, decoded: each reader has its own copy."""
        return _decode(self.body)


_DRAIN: Final = Frame(0, "drain", _encode({"reconnect_after_ms": RECONNECT_MS}))


class Asking(msgspec.Struct, frozen=True, gc=False):
    """A call that waits for its caller: under which attempt, and the number of its question."""

    attempt: int
    ask: int | None


@final
class Claim:
    """A call that a session says it has, and that nobody carries yet: under which attempt, and since when."""

    def __init__(self, attempt: int, since: float) -> None:
        self.attempt: Final = attempt
        self.since: Final = since
        self.settled: Final[asyncio.Future[None]] = asyncio.get_running_loop().create_future()

    def settle(self) -> None:
        """Somebody carries it, or it was waited for long enough."""
        if not self.settled.done():
            self.settled.set_result(None)


@final
class Session:
    """One process of an agent, for as long as it says that it is there."""

    def __init__(
        self,
        *,
        id: str,
        tenant: str,
        agent_id: str,
        opened_by: str,
        capacity: int,
        unread: Callable[["Session"], None],
    ) -> None:
        self._unread = unread  # told when nobody reads its frames any more
        self.id: Final = id
        self.tenant: Final = tenant
        self.agent_id: Final = agent_id
        self.opened_by: Final = opened_by
        self.capacity = capacity
        self.until = 0.0  # it ends then, unless it is renewed
        self.over = False
        self.streamed = False  # its frames were read, by a stream that may be gone
        self.handed_back = False  # it has given a call back, and gets no other before it is renewed
        self.calls: Final[dict[str, Line]] = {}
        self.claims: Final[dict[str, Claim]] = {}
        self.asking: Final[dict[str, Asking]] = {}
        self.ended: Final[dict[str, int]] = {}  # calls that the hub ended while they were here: the attempt
        self.answered: Final[deque[Line]] = deque()  # calls that were answered, and wait for room at this very session
        self._frames: dict[int, Frame] = {}
        self._bytes = 0
        self._last = 0
        self._read = 0  # the last frame that went to a reader
        self._reader: FrameReader | None = None

    @property
    def free(self) -> int:
        """How many more calls it may have now."""
        if self.over or self.handed_back or len(self._frames) >= MOST_FRAMES or self._bytes >= MOST_BYTES:
            return 0
        return self.capacity - len(self.calls) - len(self.claims)

    # -- what is said to it

    def say(self, event: str, data: JsonObject) -> int:
        """Put a frame down; its number."""
        self._last += 1
        frame = self._frames[self._last] = Frame(self._last, event, _encode(data))
        self._bytes += len(frame.body)
        if self._reader is not None:
            self._reader.rouse()
        return frame.id

    def was_read(self, number: int) -> bool:
        """Whether a frame has gone to a reader."""
        return number <= self._read

    def has(self, number: int) -> None:
        """It has that frame, and it need not be kept."""
        frame = self._frames.pop(number, None)
        if frame is not None:
            self._bytes -= len(frame.body)

    def received(self, number: int) -> None:
        """It has all frames up to that number."""
        for each in [each for each in self._frames if each <= number]:
            self.has(each)

    def after(self, number: int) -> list[Frame]:
        """The frames after a number, which from now on count as read."""
        found = [frame for frame in self._frames.values() if frame.id > number]
        if found:
            self._read = max(self._read, found[-1].id)
        return found

    def read(self, after: int, hello: JsonObject) -> "FrameReader":
        """The frames after a number, and those to come; whoever read before reads no more."""
        self.streamed = True
        before, self._reader = self._reader, None
        if before is not None:
            before.close()
        self.received(after)
        self._reader = FrameReader(self, after, Frame(0, "hello", _encode(hello)))
        return self._reader

    def let_go(self, reader: "FrameReader") -> None:
        """Nobody reads by that reader any more."""
        if self._reader is reader:
            self._reader = None
            if not self.over:
                self._unread(self)

    def drain(self) -> None:
        """The hub stops: whoever reads is told so."""
        if self._reader is not None:
            self._reader.drain()

    def close(self) -> None:
        """It is over."""
        self.over = True
        self._frames.clear()
        if self._reader is not None:
            self._reader.close()

    # -- what it was given

    def remember_asking(self, call_id: str, asking: Asking) -> None:
        """A call waits for its caller here."""
        _remember(self.asking, call_id, asking)

    def remember_ended(self, call_id: str, attempt: int) -> None:
        """The hub ended a call that this session may still work on."""
        _remember(self.ended, call_id, attempt)

    def give_up(self, call_id: str) -> Claim | None:
        """The claim to a call, which is one no longer."""
        claim = self.claims.pop(call_id, None)
        if claim is not None:
            claim.settle()
        return claim

    def attempt_of(self, call_id: str) -> int | None:
        """Under which attempt it has a call, or had it when the hub ended it."""
        if call_id in self.calls:
            return self.calls[call_id].attempt
        if call_id in self.asking:
            return self.asking[call_id].attempt
        if call_id in self.claims:
            return self.claims[call_id].attempt
        return self.ended.get(call_id)


@final
class FrameReader:
    """The frames of one session as one stream has them, those that have gathered together."""

    cut = False  # What it does not take is kept: there is nothing to be too slow for.

    def __init__(self, session: Session, after: int, hello: Frame) -> None:
        self._session = session
        self._last = after
        self._first: list[Frame] = [hello]
        self._draining = False
        self._ending = False
        self._closed = False
        self._wake: asyncio.Future[None] | None = None

    @property
    def carried(self) -> bool:
        """Whether its session has calls: while they run, a hub that stops leaves the stream open."""
        return bool(self._session.calls)

    def __aiter__(self) -> Self:
        """Iterate, as long as the session lasts and nobody else reads it."""
        return self

    async def __anext__(self) -> Sequence[Frame]:
        """What was said since."""
        while not self._closed:
            found, self._first = [*self._first, *self._session.after(self._last)], []
            if found:
                self._last = max(self._last, found[-1].id)
                return found
            if self._ending or (self._draining and not self.carried):
                break
            self._wake = asyncio.get_running_loop().create_future()
            try:
                await self._wake
            finally:
                self._wake = None
        self.close()
        raise StopAsyncIteration

    def rouse(self) -> None:
        """There may be something to read."""
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def drain(self) -> None:
        """The hub stops: say so, and end as soon as the session has no calls."""
        if not self._draining:
            self._draining = True
            self._first.append(_DRAIN)
        self.rouse()

    def stop(self) -> None:
        """The hub stops now."""
        self._ending = True
        self.drain()

    def close(self) -> None:
        """Nobody reads any more."""
        self._closed = True
        self._session.let_go(self)
        self.rouse()


def _remember(known: dict[str, Kept], call_id: str, value: Kept) -> None:
    known.pop(call_id, None)
    if len(known) >= MOST_REMEMBERED:
        del known[next(iter(known))]
    known[call_id] = value
