"""One real hub for the tests of a file."""

from collections.abc import Iterator

import pytest

from tests.end_to_end.world import tracebacks
from tests.support.hub import HubProcess, running_hub


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
        yield hub
    # Whatever a test did to it, the hub never met something it had not thought of.
    assert tracebacks(hub) == []
