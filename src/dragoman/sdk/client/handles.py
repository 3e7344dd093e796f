"""A call that was made before: how it stands, its result, its events, answers to it, its end."""

import asyncio
from collections.abc import AsyncGenerator
from typing import final

from dragoman.model.errors import DragomanError
from dragoman.sdk import scope
from dragoman.sdk.client.asking import CALL_MS, Call, Said, ask_for
from dragoman.sdk.client.http import Reply
from dragoman.sdk.client.hub_api import HubApi, call_path, object_of
from dragoman.sdk.client.results import CallResult, CallStatus, StreamEvent, result_of_answer, status_of_answer
from dragoman.sdk.client.streams import Ears
from dragoman.sdk.errors import HubUnreachable


@final
class CallHandle:
    """One call, by its id; there may be several handles of the same call, in several processes."""

    def __init__(self, api: HubApi, call_id: str) -> None:
        """Ask nothing yet."""
        self._api = api
        self._path = call_path(call_id)
        self.id = call_id

    def __repr__(self) -> str:
        return f"CallHandle({self.id!r})"

    async def status(self) -> CallStatus:
        """How it stands now. Raises TaskNotFound."""
        return status_of_answer(object_of(await self._api.ask("GET", f"{self._path}/status")))

    async def result(self, *, timeout_s: float | None = None) -> CallResult:
        """Its result, when it has ended. Raises what it failed with, InputRequired, CallCancelled.

        After `timeout_s` this raises TimeoutError; the call itself goes on.
        """
        async with asyncio.timeout(timeout_s):
            answer, told = await self._ended(), None
            if answer is None:
                told = await self._told_at_the_end()
                answer = await self._ended()
        if answer is not None:
            return result_of_answer(answer.status, answer.headers, answer.body)
        raise told or HubUnreachable("The stream of the call ended before the call did.", sent=True)

    async def stream(self, *, after: int = 0) -> AsyncGenerator[StreamEvent]:
        """Its events from the beginning, or behind that number, until it ends."""
        async for event in self._api.events(Ears(self._api.clock, call_id=self.id, after=after), None):
            yield event

    async def send(self, message: Said, *, timeout_ms: int | None = None) -> CallResult:
        """Answer what its agent asked, and wait for what follows."""
        call = Call(message=message, timeout_ms=timeout_ms, continues=self.id)
        return await self._api.call(ask_for(call, scope=scope.current(), clock=self._api.clock, most_ms=CALL_MS))

    async def cancel(self, reason: str | None = None) -> CallStatus:
        """End it, and tell its agent. Raises Conflict where it had ended."""
        body = None if reason is None else {"reason": reason}
        # Not repeated by itself once it may have arrived: the second time it would be refused as ended.
        reply = await self._api.ask("POST", f"{self._path}/cancel", body=body, repeatable=False)
        return status_of_answer(object_of(reply))

    async def _ended(self) -> Reply | None:
        """The answer about it, if it has ended."""
        reply = await self._api.ask("GET", f"{self._path}/status")
        return reply if status_of_answer(object_of(reply)).ended else None

    async def _told_at_the_end(self) -> DragomanError | None:
        """Wait for its end; what it failed with or waits for, as far as a stream tells."""
        try:
            async for _ in self.stream():
                pass
        except HubUnreachable:
            raise
        except DragomanError as error:
            return error
        return None
