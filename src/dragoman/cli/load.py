"""Load on a hub: so many calls at once, for so long, each begun when one before it ends."""

import asyncio
from array import array
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import Final, final

from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.client.http import HubHttp

CALL_S: Final = 30.0
TICK_S: Final = 0.1
MOST_ERRORS: Final = 100  # different ones that are told apart


@final
class Figures:
    """What came of it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.errors: Counter[str] = Counter()
        self._took_ms = array("d")
        self._overhead_ms = array("d")

    @property
    def calls(self) -> int:
        """How many were answered well."""
        return len(self._took_ms)

    @property
    def overhead_ms(self) -> float | None:
        """What a call took beside its agent's own time, the middle one."""
        return _quantile(self._overhead_ms, 0.5)

    def quantile(self, share: float) -> float | None:
        """How many milliseconds that share of the calls took at most."""
        return _quantile(self._took_ms, share)

    def took(self, seconds: float, answer: Json) -> None:
        """A call was answered well."""
        self._took_ms.append(seconds * 1000)
        agent_s = _agent_s(answer)
        if agent_s is not None:
            self._overhead_ms.append(max(0.0, (seconds - agent_s) * 1000))

    def failed(self, code: str) -> None:
        """A call was not."""
        self.errors[code if code in self.errors or len(self.errors) < MOST_ERRORS else "OTHER"] += 1


def put_load(
    http: HubHttp,
    body: JsonObject,
    at_once: int,
    seconds: float,
    progress: Callable[[float], None],
    *,
    stream: bool,
) -> Figures:
    """Call again and again until the time is over; calls under way are waited for."""
    return asyncio.run(_load(http, body, at_once, seconds, progress, stream=stream))


async def _load(
    http: HubHttp,
    body: JsonObject,
    at_once: int,
    seconds: float,
    progress: Callable[[float], None],
    *,
    stream: bool,
) -> Figures:
    clock = SystemClock()
    figures = Figures()
    began = clock.monotonic()
    call = _streamed if stream else _called
    try:
        async with asyncio.TaskGroup() as group:
            ticking = group.create_task(_tick(clock, began, seconds, progress))
            workers = [
                group.create_task(_work(call, http, body, figures, clock, began + seconds)) for _ in range(at_once)
            ]
            await asyncio.wait(workers)
            ticking.cancel()
    finally:
        await http.close()
    figures.seconds = clock.monotonic() - began
    progress(1.0)
    return figures


async def _work(
    call: Callable[[HubHttp, JsonObject], Awaitable[tuple[str, Json]]],
    http: HubHttp,
    body: JsonObject,
    figures: Figures,
    clock: Clock,
    until: float,
) -> None:
    while (began := clock.monotonic()) < until:
        try:
            failed, answer = await call(http, body)
        except DragomanError as error:
            failed, answer = error.code, None
        if failed:
            figures.failed(failed)
        else:
            figures.took(clock.monotonic() - began, answer)


async def _called(http: HubHttp, body: JsonObject) -> tuple[str, Json]:
    reply = await http.ask("POST", "/v1/a2a/call", body=body, timeout_s=CALL_S)
    answer = reply.body
    if is_object(answer) and answer.get("status") == "completed":
        return "", answer
    error = answer.get("error") if is_object(answer) else None
    return str(error.get("code")) if is_object(error) else f"HTTP_{reply.status}", None


async def _streamed(http: HubHttp, body: JsonObject) -> tuple[str, Json]:
    asked = http.stream("POST", "/v1/a2a/call/stream", body=body, timeout_s=CALL_S, idle_s=CALL_S)
    async with asked as events:
        last = ""
        if events.is_stream:
            async for event in events:
                if event.name == "done":
                    return ("", None) if last == "complete" else ("AGENT_ERROR", None)
                last = event.name
        return f"HTTP_{events.status}" if not events.is_stream else "STREAM_BROKEN", None


async def _tick(clock: Clock, began: float, seconds: float, progress: Callable[[float], None]) -> None:
    with suppress(asyncio.CancelledError):
        while True:
            await clock.sleep(TICK_S)
            progress(min(1.0, (clock.monotonic() - began) / seconds))


def _agent_s(answer: Json) -> float | None:
    """How long the agent itself took, by the answer's own times."""
    timing = answer.get("timing") if is_object(answer) else None
    if not is_object(timing):
        return None
    try:
        began, ended = (datetime.fromisoformat(str(timing[name])) for name in ("started_at", "completed_at"))
    except (KeyError, ValueError):
        return None
    return (ended - began).total_seconds()


def _quantile(values: "array[float]", share: float) -> float | None:
    if not values:
        return None
    ordered = sorted(values)
    return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 3)
