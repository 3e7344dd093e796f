"""One real hub for the tests of a file, and a platform agent for each test."""

from collections.abc import Iterator

import pytest

from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
        yield hub


@pytest.fixture(scope="module")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub that asks nobody for a key."""
    with running_hub(tmp_path_factory.mktemp("hub") / "data", auth="none") as hub:
        yield hub


@pytest.fixture
def agent() -> Iterator[PlatformAgent]:
    with platform_agent() as agent:
        yield agent
