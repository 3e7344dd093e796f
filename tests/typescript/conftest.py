"""The built SDK, a real hub with keys and one without, and the agent in Node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hub import HubProcess, running_hub
from tests.typescript.building import built
from tests.typescript.running import NodeAgent


@pytest.fixture(scope="session")
def sdk() -> Path:
    """The folder with the built SDK."""
    return built()


@pytest.fixture(scope="session")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
        yield hub


@pytest.fixture(scope="session")
def open_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub that asks nobody for a key."""
    with running_hub(tmp_path_factory.mktemp("hub") / "data", auth="none") as hub:
        yield hub


@pytest.fixture(scope="module")
def agent(open_hub: HubProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeAgent]:
    """The agent in Node, connected to the open hub."""
    agent = NodeAgent(open_hub, tmp_path_factory.mktemp("marks") / "marks").start()
    yield agent
    assert agent.stop() == 0
