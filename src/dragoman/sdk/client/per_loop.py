"""One HTTP client for each event loop that asks: made when it first asks, gone with its loop.

Whoever keeps one need not close it: a client that is forgotten closes without a warning, or when its loop ends.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Final, Generic, NamedTuple, TypeVar, final

from dragoman.net import AddressRule, Client
from dragoman.ports.clock import Clock

# The user names the place: whatever address it has may be dialled.
ANYWHERE: Final = ("0.0.0.0/0", "::/0")

Made = TypeVar("Made")


class _Held(NamedTuple, Generic[Made]):
    made: Made
    guard: AsyncGenerator[None]


@final
class PerLoop(Generic[Made]):
    """What is made of a client, once for each loop."""

    __slots__ = ("_clock", "_held", "_lock", "_make")

    def __init__(self, clock: Clock, make: Callable[[Client], Made]) -> None:
        """Open nothing yet."""
        self._clock = clock
        self._make = make
        self._held: dict[asyncio.AbstractEventLoop, _Held[Made]] = {}
        self._lock = threading.Lock()

    async def get(self) -> Made:
        """That of the running loop."""
        loop = asyncio.get_running_loop()
        held = self._held.get(loop)
        if held is not None:
            return held.made
        client = Client(clock=self._clock, rule=AddressRule.of(ANYWHERE, plain_http_anywhere=True))
        guard = _until_the_loop_ends(client)
        await anext(guard)  # runs to its first yield without a pause, so nobody comes between
        made = self._make(client)
        with self._lock:
            self._held = {one: other for one, other in self._held.items() if not one.is_closed()}
            self._held[loop] = _Held(made, guard)
        return made

    async def close(self) -> None:
        """Close the client of the running loop; asking again opens another."""
        held = self._held.pop(asyncio.get_running_loop(), None)
        if held is not None:
            await held.guard.aclose()


async def _until_the_loop_ends(client: Client) -> AsyncGenerator[None]:
    """Close the client when this generator is closed: by us, when it is forgotten, or by its loop at the end."""
    try:
        yield
    finally:
        await client.close()
