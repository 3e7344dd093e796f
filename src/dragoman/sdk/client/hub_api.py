"""Requests to one hub: tried again where that makes sense, refusals raised as errors, streams taken up again.

What callers see of it is `client.py`, and of one call `handles.py`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from dragoman.model.errors import DragomanError, NotAuthenticated
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.sdk.client.asking import ACCEPTED_MS, Asked
from dragoman.sdk.client.http import NO_HEADERS, Events, HubHttp, Reply
from dragoman.sdk.client.results import CallResult, StreamEvent, result_of_answer
from dragoman.sdk.client.retrying import Retries
from dragoman.sdk.client.streams import Ears
from dragoman.sdk.errors import HubUnreachable, InputRequired, error_of_reply, put_into_words

if TYPE_CHECKING:
    from dragoman.sdk.client.handles import CallHandle

REQUEST_S: Final = 30.0
GRACE_S: Final = 10.0  # for the hub to say that a call's time is over
IDLE_S: Final = 25.0  # the hub says something at least every 10 s


class HubApi:
    """One hub. `handle` makes the handle of a call, for errors that can be answered."""

    def __init__(self, http: HubHttp, retries: int, handle: "Callable[[HubApi, str], CallHandle]") -> None:
        """Open nothing yet."""
        self.http = http
        self.clock = http.clock
        self._retries = Retries(http.clock, retries)
        self._handle = handle

    async def call(self, asked: Asked) -> CallResult:
        """The result of a call. Raises what it failed with."""
        reply = await self.ask(
            "POST",
            "/v1/a2a/call",
            body=asked.body,
            headers=asked.headers,
            timeout_s=asked.timeout_s,
            grace_s=GRACE_S,
            repeatable=asked.repeatable,
        )
        return result_of_answer(reply.status, reply.headers, reply.body)

    async def events(self, ears: Ears, asked: Asked | None) -> AsyncGenerator[StreamEvent]:
        """What `ears` hear, over as many connections as it takes; the first one makes the call, if one is asked."""
        timeout_s = (ACCEPTED_MS / 1000 if asked is None else asked.timeout_s) + GRACE_S
        deadline = self.clock.monotonic() + timeout_s
        repeatable = asked is None or asked.repeatable
        connected = False
        while True:
            async with AsyncExitStack() as stack:
                lost = HubUnreachable("The stream ended before its call did.", sent=True, reason="reset")
                try:
                    if connected and ears.call_id:
                        events = await self._enter(stack, self._connection(ears, asked, deadline))
                    else:
                        events = await self._retries.run(
                            lambda: self._enter(stack, self._connection(ears, asked, deadline)),
                            deadline=deadline,
                            repeatable=repeatable,
                        )
                    connected = True
                    async for event in ears.listen(events):
                        yield event
                except HubUnreachable as error:
                    if not connected:
                        raise
                    lost = error
                except InputRequired as error:
                    error.handle = self._handle(self, ears.call_id)
                    raise
            if ears.ended:
                return
            if self.clock.monotonic() >= deadline or not (ears.call_id or repeatable):
                raise lost
            await ears.wait(lost)

    def _connection(self, ears: Ears, asked: Asked | None, deadline: float) -> AbstractAsyncContextManager[Events]:
        left_s = deadline - self.clock.monotonic()
        if ears.call_id or asked is None:
            after = {"last-event-id": str(ears.after)} if ears.after else {}
            path = f"{call_path(ears.call_id)}/stream"
            return self.http.stream("GET", path, headers=after, timeout_s=left_s, idle_s=IDLE_S)
        return self.http.stream(
            "POST", "/v1/a2a/call/stream", body=asked.body, headers=asked.headers, timeout_s=left_s, idle_s=IDLE_S
        )

    async def _enter(self, stack: AsyncExitStack, connection: AbstractAsyncContextManager[Events]) -> Events:
        """A stream that has begun, closed with the stack. Raises what was answered in its place."""
        events = await connection.__aenter__()
        if events.is_stream:
            stack.push_async_exit(connection)
            return events
        try:
            raise self._refusal(events.status, events.headers, await events.whole())
        finally:
            await connection.__aexit__(None, None, None)

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Json = None,
        headers: Mapping[str, str] = NO_HEADERS,
        timeout_s: float = REQUEST_S,
        grace_s: float = 0.0,
        repeatable: bool = True,
    ) -> Reply:
        """An answer that is no refusal. Raises the refusal, HubUnreachable."""
        deadline = self.clock.monotonic() + timeout_s

        async def attempt() -> Reply:
            left_s = deadline - self.clock.monotonic() + grace_s
            reply = await self.http.ask(
                method, path, body=body, headers=headers, timeout_s=left_s, repeatable=repeatable
            )
            if not 200 <= reply.status < 300:
                raise self._refusal(reply.status, reply.headers, reply.body)
            return reply

        return await self._retries.run(attempt, deadline=deadline, repeatable=repeatable)

    def _refusal(self, status: int, headers: Mapping[str, str], body: Json) -> DragomanError:
        error = error_of_reply(status, headers, body)
        if isinstance(error, InputRequired):
            error.handle = self._handle(self, str(error.details.get("continue_call_id") or error.call_id or ""))
        if isinstance(error, NotAuthenticated) and self.http.refused_tokens:
            put_into_words(error, f"{'; '.join(self.http.refused_tokens)}: it is not used until that is mended.")
        return error


def call_path(call_id: str) -> str:
    """Where a call is."""
    return f"/v1/a2a/call/{quote(call_id, safe='')}"


def object_of(reply: Reply) -> JsonObject:
    """The object that was answered. Raises HubUnreachable where it is none: then no hub answered."""
    if not is_object(reply.body):
        raise HubUnreachable("What answers there is no hub", sent=True, next="Check DRAGOMAN_URL.")
    return reply.body
