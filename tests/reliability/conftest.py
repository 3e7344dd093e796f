"""What the tests of the outbox share."""

from pathlib import Path

import pytest

from tests.contracts.manual_clock import ManualClock
from tests.support.outbox import Begin, post_office


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def begin(tmp_path: Path, clock: ManualClock) -> Begin:
    return post_office(tmp_path, clock)
