"""The events of one call as they happen, over as many connections as that takes.

A connection that is lost before the call began is a request that failed (`retrying.py`). Afterwards the stream is
taken up again behind the last event that arrived, so nothing is missed and nothing comes twice.

    POST …/call/stream ── start 1 ── chunk 2 ── ✗      GET …/{call_id}/stream, Last-Event-ID: 2 ── chunk 3 ── complete 4
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol

import msgspec

from dragoman.dialects.sse import SseEvent
from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.ports.clock import Clock
from dragoman.sdk.client.http import Events
from dragoman.sdk.client.results import StreamEvent, cancelled, completed
from dragoman.sdk.client.retrying import LOST
from dragoman.sdk.errors import HubUnreachable, error_of_body

FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 5.0
GIVE_UP_S: Final = 15.0  # without one connection that brought something

_decode = msgspec.json.Decoder().decode


class Opener(Protocol):
    """How a stream is taken up again."""

    def __call__(self, call_id: str, after: int) -> AbstractAsyncContextManager[Events]:
        """The stream of a call behind that number."""
        ...


class Ears:
    """Where one stream is: what it heard last, and how long it has heard nothing."""

    def __init__(self, clock: Clock, *, call_id: str = "", after: int = 0) -> None:
        self._clock = clock
        self.call_id = call_id
        self.after = after
        self.ended = False
        self._wait_s = FIRST_WAIT_S
        self._heard_at = clock.monotonic()

    async def listen(self, events: Events) -> AsyncGenerator[StreamEvent]:
        """What one connection brings. Raises what the call failed with, and HubUnreachable where it is lost."""
        async for sent in events:
            self._heard_at, self._wait_s = self._clock.monotonic(), FIRST_WAIT_S
            event = self._read(sent)
            if sent.id.isdigit():
                self.after = int(sent.id)
            if event is not None:
                self.ended = event.type == "complete"
                yield event
            if self.ended:
                return

    async def wait(self, error: HubUnreachable | None) -> None:
        """Wait before the next connection. Raises the error where it makes no sense, or has made none for long."""
        silent_s = self._clock.monotonic() - self._heard_at
        wait_s = self._clock.jitter(self._wait_s, 0.2)
        self._wait_s = min(self._wait_s * 2, LONGEST_WAIT_S)
        if error is not None and (error.reason not in LOST or silent_s + wait_s > GIVE_UP_S):
            raise error
        await self._clock.sleep(wait_s)

    def _read(self, sent: SseEvent) -> StreamEvent | None:
        try:
            data: Json = _decode(sent.data)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            data = None
        if not is_object(data):
            return None
        seq = int(sent.id) if sent.id.isdigit() else self.after
        match sent.name:
            case "start":
                self.call_id = str(data.get("call_id") or self.call_id)
                return StreamEvent(type="start", call_id=self.call_id, seq=seq)
            case "progress":
                return self._progress(data, seq)
            case "chunk":
                return StreamEvent(type="chunk", call_id=self.call_id, seq=seq, content=str(data.get("content") or ""))
            case "complete":
                return self._complete(data, seq)
            case "error":
                raise self._failed(data)
            case _:
                return None

    def _progress(self, data: JsonObject, seq: int) -> StreamEvent:
        progress, message = data.get("progress"), data.get("message")
        return StreamEvent(
            type="progress",
            call_id=self.call_id,
            seq=seq,
            progress=float(progress) if isinstance(progress, int | float) else None,
            message=message if isinstance(message, str) else None,
        )

    def _complete(self, data: JsonObject, seq: int) -> StreamEvent:
        answer: JsonObject = {**data, "call_id": self.call_id}
        if data.get("status") == "cancelled":
            raise cancelled(answer)
        result = completed(data.get("result"), answer)
        return StreamEvent(type="complete", call_id=self.call_id, seq=seq, result=result)

    def _failed(self, data: JsonObject) -> DragomanError:
        error = error_of_body(data)
        error.call_id = self.call_id or None
        return error
