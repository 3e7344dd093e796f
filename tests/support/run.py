"""Run one coroutine from a plain test, within a deadline."""

import asyncio
from collections.abc import Coroutine
from typing import TypeVar

import uvloop

Result = TypeVar("Result")


def run(coroutine: Coroutine[object, object, Result], timeout_s: float = 20.0) -> Result:
    """The coroutine's result, on the loop that the hub uses; TimeoutError when the deadline passes."""

    async def bounded() -> Result:
        async with asyncio.timeout(timeout_s):
            return await coroutine

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(bounded())
