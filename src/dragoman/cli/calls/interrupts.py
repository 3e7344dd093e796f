"""What Ctrl-C does to a call: the first cancels it and waits a little for its answer, the second leaves it."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Final, TypeVar

from dragoman.model.errors import DragomanError
from dragoman.ports.clock import Clock

CANCEL_S: Final = 5.0

T = TypeVar("T")


class Interrupts:
    """What Ctrl-C does to one call."""

    def __init__(self, clock: Clock) -> None:
        """Nothing was pressed yet."""
        self.counted = 0
        self._clock = clock

    async def carry(self, work: Coroutine[None, None, T], cancel: Callable[[], Awaitable[bool]]) -> T:
        """Do the work. Raises KeyboardInterrupt where it was left; `cancel` says whether there was what to cancel."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(work)
        ending: list[asyncio.Task[None]] = []

        def pressed() -> None:
            self.counted += 1
            if self.counted == 1:
                ending.append(loop.create_task(self._end(task, cancel)))
            else:
                task.cancel()

        with suppress(NotImplementedError):
            loop.add_signal_handler(signal.SIGINT, pressed)
        try:
            return await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            with suppress(NotImplementedError):
                loop.remove_signal_handler(signal.SIGINT)
            for one in ending:
                one.cancel()

    async def _end(self, task: asyncio.Task[T], cancel: Callable[[], Awaitable[bool]]) -> None:
        found = False
        with suppress(DragomanError):
            found = await cancel()
        if found:
            await self._clock.sleep(CANCEL_S)
        task.cancel()
