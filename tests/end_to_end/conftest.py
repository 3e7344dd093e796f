"""One real hub for the tests of a file, with callers and agents of every dialect for who wants them; a platform agent
for each test; a collector of traces."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import tracebacks
from tests.support.collector import Collector, collecting
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
        yield hub
    # Whatever a test did to it, the hub never met something it had not thought of.
    assert tracebacks(hub) == []


@pytest.fixture(scope="module")
def everyone(hub: HubProcess) -> Iterator[Everyone]:
    with ExitStack() as stack:
        yield Everyone(hub, stack)


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector
