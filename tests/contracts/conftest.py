"""Each backend by name: to test another one, add its line."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

import pytest

from dragoman.backends.local.bus import LocalBus
from dragoman.backends.sqlite import SqliteStore
from dragoman.ports.bus import Bus
from dragoman.ports.clock import Clock
from dragoman.ports.store import Store
from tests.contracts.manual_clock import ManualClock

STORES: Final[dict[str, Callable[[Path, Clock, Bus], Store]]] = {
    "sqlite": lambda folder, clock, bus: SqliteStore(folder / "hub.db", clock=clock, bus=bus),
    "sqlite inline": lambda folder, clock, bus: SqliteStore(folder / "hub.db", clock=clock, bus=bus, inline=True),
}
BUSES: Final[dict[str, Callable[[], Bus]]] = {
    "local": LocalBus,
}

Running = Callable[[], AbstractAsyncContextManager[Store]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=sorted(BUSES))
def bus(request: pytest.FixtureRequest) -> Bus:
    return BUSES[str(request.param)]()


@pytest.fixture(params=sorted(STORES))
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock, bus: Bus) -> Running:
    """Runs the store on one folder; run again, it finds what it wrote."""

    @asynccontextmanager
    async def running() -> AsyncGenerator[Store]:
        instance = STORES[str(request.param)](tmp_path, clock, bus)
        await instance.start()
        try:
            yield instance
        finally:
            await instance.close()

    return running
