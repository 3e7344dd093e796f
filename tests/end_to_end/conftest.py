"""One real hub for the tests of a file, and a platform agent for each test; a collector of traces for who wants one."""

from collections.abc import Iterator

import pytest

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


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector
