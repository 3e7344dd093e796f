"""One call at the hub, carried through: waited for, heard as it goes on, or handed over and followed.

Ctrl-C cancels the call (`interrupts.py`): it is found by its id, or by its trace before that is known.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote

from dragoman.cli.calls.answer import refuse_unfinished
from dragoman.cli.calls.interrupts import CANCEL_S, Interrupts
from dragoman.cli.calls.live import Live
from dragoman.cli.fault import Fault
from dragoman.cli.hub import Hub
from dragoman.cli.output import Output
from dragoman.model.errors import DragomanError
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.states import OPEN
from dragoman.observe.trace import read_trace, trace_headers
from dragoman.ports.clock import Clock, SystemClock
from dragoman.sdk.client.http import HubHttp
from dragoman.sdk.errors import HubUnreachable

GRACE_S: Final = 10.0  # for the hub to say that the time is over
IDLE_S: Final = 25.0  # the hub says something at least every 10 s
FIRST_WAIT_S: Final = 0.2
LONGEST_WAIT_S: Final = 5.0
GIVE_UP_S: Final = 30.0  # without one connection that brought something
ACCEPTED_S: Final = 86400.0
ACCEPTED: Final = 202

ENDED: Final = ("completed", "failed", "cancelled")

Headline = Callable[[HubHttp, str], Awaitable[None]]
Request = tuple[str, str, JsonObject | None, Mapping[str, str]]  # method, path, body, headers


class Asked(NamedTuple):
    """What is to be called: the body as the hub takes it, headers beside it, how long it may take, and who is meant."""

    body: JsonObject
    headers: Mapping[str, str]
    timeout_s: float
    skill: str
    agent: str


class Line(Protocol):
    """What calls go through: a hub, or an agent in its place."""

    def http(self) -> HubHttp:
        """What is asked."""
        ...

    def refused(self, status: int, answer: Json, *, agent: str | None = None) -> Fault:
        """The fault that an answer means which is no success."""
        ...

    def unreachable(self, kind: str, *, sent: bool) -> Fault:
        """The fault that there is no answer, and why."""
        ...

    def failed(self, error: DragomanError) -> Fault:
        """The fault that an error of the client means."""
        ...


class Answered(NamedTuple):
    """The whole answer, and what of it was shown as it came."""

    answer: JsonObject
    said: str = ""


def wait_for(hub: Hub, asked: Asked) -> Answered:
    """Make the call and wait for its end. Raises Fault for every other end than a good one."""
    clock = SystemClock()
    trace_id, headers = _own_trace(clock)
    interrupts = Interrupts(clock)

    async def cancel() -> bool:
        return await cancel_traced(hub.http(), trace_id)

    answer = hub.ask(
        "POST",
        "/v1/a2a/call",
        body=asked.body,
        headers={**headers, **asked.headers},
        timeout_s=asked.timeout_s + GRACE_S,
        waiting=f"calling {asked.skill}",
        agent=asked.agent,
        run=lambda work: asyncio.run(interrupts.carry(work, cancel)),
    )
    refuse_unfinished(answer or {}, interrupted=interrupts.counted > 0)
    return Answered(answer or {})


def hear(line: Line, output: Output, asked: Asked, headline: Headline | None) -> Answered:
    """Make the call and show what happens; `headline` is told its id. Without one only its progress. Raises Fault."""
    trace_id, headers = _own_trace(SystemClock())
    first = ("POST", "/v1/a2a/call/stream", asked.body, {**headers, **asked.headers})
    return _Following(line, output, asked, headline, trace_id).carry(first, asked.timeout_s + GRACE_S)


def hand_over(hub: Hub, asked: Asked) -> JsonObject:
    """Have the call carried out without waiting for it; what the hub says to that. Raises Fault."""
    path = "/v1/a2a/call/async"
    return hub.ask("POST", path, body=asked.body, headers=asked.headers, agent=asked.agent) or {}


def hand_over_and_wait(hub: Hub, output: Output, asked: Asked) -> Answered:
    """Have the call carried out, note its id, and wait for it; only its progress is shown. Raises Fault."""
    trace_id, headers = _own_trace(SystemClock())
    first = ("POST", "/v1/a2a/call/async", asked.body, {**headers, **asked.headers})
    return _Following(hub, output, asked, None, trace_id).carry(first, ACCEPTED_S)


class _Following:
    """The stream of one call, over as many connections as it takes; without a headline it is only waited for."""

    def __init__(self, line: Line, output: Output, asked: Asked, headline: Headline | None, trace_id: str) -> None:
        self._line = line
        self._output = output
        self._asked = asked
        self._headline = headline
        self._call_id = ""
        self._trace_id = trace_id
        self._clock = SystemClock()
        self._live = Live(output, self._clock, words=headline is not None and not output.json)
        self._after = 0
        self._ended = False

    def carry(self, first: Request, timeout_s: float) -> Answered:
        """Make the call by the first request, and follow it to its end. Raises Fault."""
        interrupts = Interrupts(self._clock)
        http = self._line.http()
        try:
            answer = asyncio.run(self._carried(http, interrupts, self._run(http, first, timeout_s)))
        except HubUnreachable as error:
            raise self._line.unreachable(error.reason or "reset", sent=error.sent) from error
        except DragomanError as error:
            raise self._line.failed(error) from error
        finally:
            self._live.close()
        refuse_unfinished(answer, interrupted=interrupts.counted > 0)
        return Answered(answer, self._live.said)

    async def _carried(
        self, http: HubHttp, interrupts: Interrupts, work: Coroutine[None, None, JsonObject]
    ) -> JsonObject:
        try:
            return await interrupts.carry(work, lambda: self._cancel(http))
        finally:
            await http.close()  # Only here: the call may have ended before the request to cancel it is answered.

    async def _run(self, http: HubHttp, first: Request, timeout_s: float) -> JsonObject:
        shown = asyncio.get_running_loop().create_task(self._live.run())
        try:
            failed = await self._listen(http, first, self._clock.monotonic() + timeout_s)
            # The whole answer says more than the last event: times, usage, trace.
            reply = await http.ask("GET", f"{self._path()}/status", timeout_s=IDLE_S)
        finally:
            shown.cancel()
        answer: JsonObject = reply.body if is_object(reply.body) else {}
        if failed is None or answer.get("status") in ENDED:
            return answer
        # A question ends the stream, but not the call, so its status says nothing of it.
        return {**answer, "status": "failed", "error": failed}

    async def _listen(self, http: HubHttp, first: Request, deadline: float) -> JsonObject | None:
        """Hear the call to its end; the error that it ended with. Raises Fault, HubUnreachable."""
        wait_s, heard_at = FIRST_WAIT_S, self._clock.monotonic()
        failed: JsonObject | None = None
        while True:
            left_s = deadline - self._clock.monotonic()
            method, path, body, headers = self._again() if self._call_id else first
            try:
                stream = http.stream(method, path, body=body, headers=headers, timeout_s=left_s, idle_s=IDLE_S)
                async with stream as events:
                    if not events.is_stream:
                        self._accepted(events.status, await events.whole())
                        continue
                    async for event in events:
                        wait_s, heard_at = FIRST_WAIT_S, self._clock.monotonic()
                        if event.id.isdigit():
                            self._after = int(event.id)
                        failed = await self._told(http, event.name, _object(event.data)) or failed
                        if self._ended:
                            return failed
            except HubUnreachable:
                now = self._clock.monotonic()
                if not self._call_id or now - heard_at > GIVE_UP_S or now >= deadline:
                    raise
            await self._clock.sleep(wait_s)
            wait_s = min(wait_s * 2, LONGEST_WAIT_S)

    def _accepted(self, status: int, answer: Json) -> None:
        """A call that was handed over has an id; any other answer in place of a stream is a refusal: raises Fault."""
        if status != ACCEPTED or not is_object(answer):
            raise self._line.refused(status, answer, agent=self._asked.agent)
        self._call_id = str(answer.get("call_id"))
        self._output.note(self._call_id)

    async def _told(self, http: HubHttp, name: str, data: JsonObject) -> JsonObject | None:
        if self._output.json and self._headline is not None and name != "done":
            self._output.line({"id": self._after, "event": name, "data": data})
        match name:
            case "start":
                if not self._call_id:
                    self._call_id = str(data.get("call_id"))
                    if self._headline is not None and not self._output.json and not self._output.quiet:
                        await self._headline(http, self._call_id)
            case "progress":
                share, message = data.get("progress"), data.get("message")
                self._live.progress(
                    float(share) if isinstance(share, int | float) else None,
                    message if isinstance(message, str) else None,
                )
            case "chunk":
                self._live.piece(str(data.get("content") or ""))
            case "error":
                return data
            case "done":
                self._ended = True
            case _:
                pass
        return None

    def _again(self) -> Request:
        return "GET", f"{self._path()}/stream", None, {"last-event-id": str(self._after)} if self._after else {}

    def _path(self) -> str:
        return f"/v1/a2a/call/{quote(self._call_id, safe='')}"

    async def _cancel(self, http: HubHttp) -> bool:
        return await (_cancel(http, self._call_id) if self._call_id else cancel_traced(http, self._trace_id))


def _own_trace(clock: Clock) -> tuple[str, dict[str, str]]:
    """A trace by which the call is found before an answer has told its id, and the header that says it."""
    trace = read_trace({}, clock.new_id(""))
    return trace.trace_id, {"traceparent": trace_headers(trace, "")[b"traceparent"].decode()}


async def cancel_traced(http: HubHttp, trace_id: str) -> bool:
    """Cancel the call that began a trace; whether there was one."""
    reply = await http.ask("GET", f"/v1/calls?trace={trace_id}&limit=100", timeout_s=CANCEL_S)
    items = reply.body.get("items") if is_object(reply.body) else None
    calls = [item for item in items if is_object(item)] if is_array(items) else []
    going_on = [item for item in calls if item.get("status") in set(OPEN)]
    if not going_on:
        return bool(calls)
    return await _cancel(http, str(min(going_on, key=lambda item: str(item.get("created_at")))["id"]))


async def _cancel(http: HubHttp, call_id: str) -> bool:
    path = f"/v1/a2a/call/{quote(call_id, safe='')}/cancel"
    body = {"reason": "interrupted by its caller"}
    reply = await http.ask("POST", path, body=body, timeout_s=CANCEL_S)
    return reply.status in (200, 409)


def _object(data: bytes) -> JsonObject:
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if is_object(value) else {}
