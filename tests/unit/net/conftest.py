"""Every test of the client runs on both event loops: the hub has uvloop, the SDK the standard one."""

import asyncio
from collections.abc import Coroutine

import pytest
import uvloop

from tests.unit.net.servers import WAIT_S, Run


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    def bounded(work: Coroutine[object, object, None]) -> None:
        async def main() -> None:
            async with asyncio.timeout(WAIT_S):
                await work

        factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(main())

    return bounded
