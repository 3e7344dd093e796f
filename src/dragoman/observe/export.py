"""The exporter: the spans of ended calls, and of attempts to call back, go to a collector, outside of every request.

    ended ─► its id, in a queue ─► what is stored of it ─► spans, encoded one by one ─► a POST of many
    made ──► encoded, in the same queue ────────────────────────────────────────────────┘

A call pays for a look at its trace and a place in the queue. The queue is bounded: when it is full, or the collector
takes nothing, spans are dropped and counted, and no call is held up or fails for it. Has no task of its own: whoever
builds it runs it.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

from dragoman.model.http import HttpReply, HttpRequest
from dragoman.model.task import Task, Trace
from dragoman.observe.otel_settings import Destination
from dragoman.observe.otlp import CODECS
from dragoman.observe.span import Span
from dragoman.ports.clock import Clock

LOG: Final = logging.getLogger("dragoman.observe")
MOST_WAITING: Final = 10_000  # calls, and spans that were made by themselves
AT_ONCE: Final = 128  # of them in one request
GATHER_S: Final = 0.5  # in which they gather
TRIES: Final = 4
FIRST_WAIT_S: Final = 1.0  # doubled after each try
FINISH_S: Final = 2.0  # for what is left when the hub stops
SILENT_S: Final = 60.0  # between two lines about the same collector
_AGAIN: Final = frozenset({429, 502, 503, 504})  # OTLP/HTTP: what may be tried again

Called = tuple[str, str]  # tenant, call id
Spans = Callable[[str, str], Awaitable[tuple[Task, tuple[Span, ...]] | None]]
Post = Callable[[HttpRequest, float], Awaitable[HttpReply]]


class Unreached(Exception):
    """The collector could not be reached, or broke off."""


class Exporter:
    """Sends the spans of this replica's calls. `post` raises Unreached."""

    def __init__(self, to: Destination, *, spans: Spans, post: Post, clock: Clock) -> None:
        self._to = to
        self._codec = CODECS[to.protocol]
        self._spans = spans
        self._post = post
        self._clock = clock
        self._waiting: deque[Called | bytes] = deque()
        self._something = asyncio.Event()
        self._warned_at: float | None = None
        self.exported = 0  # spans that a collector took
        self.dropped = 0  # calls whose spans it will never get, and spans by themselves

    def ended(self, task: Task) -> None:
        """A call has ended: its spans are to go out, if its trace is among those that do."""
        if self._to.sampler.takes(task.trace):
            self._wait((task.tenant, task.id))

    def made(self, trace: Trace, span: Span) -> None:
        """A span of this trace that is over, and that the store does not know: it is to go out as it is."""
        if self._to.sampler.takes(trace):
            self._wait(self._codec.span(trace, span))

    async def run(self) -> None:
        """Send what has ended, for as long as the hub runs."""
        while True:
            await self._something.wait()
            self._something.clear()
            if len(self._waiting) < AT_ONCE:
                await self._clock.sleep(GATHER_S)
            while self._waiting:
                await self._send(TRIES)

    async def finish(self) -> None:
        """The hub stops: send what is left, as far as a moment reaches. The rest counts as dropped."""
        try:
            async with asyncio.timeout(FINISH_S):
                await self._clock.sleep(0)  # Whoever ran this was just cancelled: it gives back what it had in hand.
                while self._waiting:
                    await self._send(1)
        except TimeoutError:
            self.dropped += len(self._waiting)
            self._waiting.clear()

    def _wait(self, one: Called | bytes) -> None:
        if len(self._waiting) >= MOST_WAITING:
            self.dropped += 1
            return
        self._waiting.append(one)
        self._something.set()

    async def _send(self, tries: int) -> None:
        """One request's worth; what is not sent because this is cancelled waits again."""
        taken = [self._waiting.popleft() for _ in range(min(AT_ONCE, len(self._waiting)))]
        try:
            pieces = await self._pieces(taken)
            sent = not pieces or await self._posted(self._codec.whole(self._to.resource, pieces), tries)
        except asyncio.CancelledError:
            self._waiting.extendleft(reversed(taken))
            raise
        if sent:
            self.exported += len(pieces)
        else:
            self.dropped += len(taken)

    async def _pieces(self, taken: list[Called | bytes]) -> list[bytes]:
        pieces: list[bytes] = []
        for each in taken:
            if isinstance(each, bytes):
                pieces.append(each)
                continue
            tenant, call_id = each
            try:
                found = await self._spans(tenant, call_id)
            except Exception:
                # One call that cannot be read must not keep the spans of the others.
                LOG.exception("the spans of a call could not be made", extra={"fields": {"call_id": call_id}})
                found = None
            if found is None:
                self.dropped += 1
                continue
            task, spans = found
            pieces += [self._codec.span(task.trace, span) for span in spans if span.ended_at is not None]
        return pieces

    async def _posted(self, body: bytes, tries: int) -> bool:
        """Whether a collector took it, if need be after a while."""
        wait_s = FIRST_WAIT_S
        for left in reversed(range(tries)):
            request = HttpRequest(
                method="POST",
                url=self._to.url,
                headers={**self._to.headers, b"content-type": self._codec.media_type},
                body=body,
            )
            again = True
            try:
                reply = await self._post(request, self._clock.monotonic() + self._to.timeout_s)
            except Unreached as error:
                why = str(error)
            else:
                if 200 <= reply.status < 300:
                    self._warned_at = None
                    return True
                why, again = f"HTTP {reply.status}", reply.status in _AGAIN
            self._warn(why)
            if not again or not left:
                return False
            await self._clock.sleep(self._clock.jitter(wait_s, 0.2))
            wait_s *= 2
        return False

    def _warn(self, why: str) -> None:
        now = self._clock.monotonic()
        if self._warned_at is None or now - self._warned_at >= SILENT_S:
            self._warned_at = now
            fields = {"reason": why, "waiting": len(self._waiting), "dropped": self.dropped}
            LOG.warning("spans are not taken", extra={"fields": fields})
