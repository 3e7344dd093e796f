"""One hub for the frameworks' tests of a file."""

from collections.abc import Iterator

import pytest

from tests.support.hub import HubProcess, running_hub


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("hub") / "data") as hub:
        yield hub
