"""Learn the outcome of a call whose first answer did not settle it: listen to the target, or ask it again and again.

    subscribe ─► events ─► settled? ─ no, it broke off ─► get ─► settled? ─ no ─► wait ─► subscribe …

What the target offers decides; no dialect is named.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Final

from dragoman.dialects.dialect import Heard
from dragoman.model.errors import AgentError, AgentTimeout, DragomanError, NotSupported
from dragoman.ports.clock import Clock

FIRST_S: Final = 0.2
LONGEST_S: Final = 5.0
SILENT: Final = 2.5  # times as long a stream may take for its first word before the task is looked at


async def learn(
    subscribe: Callable[[], AsyncGenerator[Heard]] | None,
    get: Callable[[], Awaitable[Heard]] | None,
    *,
    clock: Clock,
    deadline: float,
) -> AsyncIterator[Heard]:
    """What is heard of the task, the last of which settles it.

    Raises AgentError where the target cannot be asked, AgentTimeout at the deadline, and what `get` raises.
    """
    if subscribe is None and get is None:
        raise AgentError("The agent did not finish, and cannot be asked how far it is.", reason="not_finished")
    wait_s = FIRST_S
    while True:
        if subscribe is not None:
            try:
                async with aclosing(_spoken(subscribe(), None if get is None else wait_s * SILENT)) as stream:
                    async for heard in stream:
                        yield heard
                        if heard.settled:
                            return
                        wait_s = FIRST_S
            except NotSupported:
                subscribe = None  # Or the task has ended: the look at it says so.
            except DragomanError as error:
                if get is None or (isinstance(error, AgentTimeout) and clock.monotonic() >= deadline):
                    raise
                # A stream that broke off says nothing of the task: it is asked for.
        else:
            await _pause(wait_s, clock, deadline)
            wait_s = min(wait_s * 2, LONGEST_S)
        if get is None:
            raise AgentError("The agent's stream ended before its answer.", reason="stream_ended")
        heard = await get()  # which raises where no time is left, with what the caller is to know
        yield heard
        if heard.settled:
            return
        if subscribe is not None:
            await _pause(wait_s, clock, deadline)
            wait_s = min(wait_s * 2, LONGEST_S)


async def _spoken(stream: AsyncGenerator[Heard], silent_s: float | None) -> AsyncGenerator[Heard]:
    """What a stream tells; nothing where it does not say its first word in time.

    Some agents tell only what is new, and the task may have been over before it was listened to.
    """
    async with aclosing(stream):
        try:
            async with asyncio.timeout(silent_s):
                heard = await anext(stream, None)
        except TimeoutError:
            return
        while heard is not None:
            yield heard
            heard = await anext(stream, None)


async def _pause(wait_s: float, clock: Clock, deadline: float) -> None:
    await clock.sleep(min(wait_s, max(0.0, deadline - clock.monotonic())))
