"""A stub hub and a fresh user, for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.stub_hub import StubHub
from tests.cli.terminal import environment


@pytest.fixture
def hub() -> Iterator[StubHub]:
    with StubHub() as running:
        yield running


@pytest.fixture
def env(hub: StubHub, tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, DRAGOMAN_URL=hub.url)
