"""Which tests a run takes: the short set alone, unless --full or --planted ask for more; one lane of it with --lane.

Deselected tests are counted in pytest's closing line; nothing is skipped. Property tests try half as many examples in
the short set as hypothesis would, and ten times as many with --full, unless they say themselves how many.
"""

from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

# How long it takes to make examples says something of the machine alone.
ANY_MACHINE: Final = (HealthCheck.too_slow,)
settings.register_profile("short", max_examples=50, suppress_health_check=ANY_MACHINE)
settings.register_profile("full", max_examples=500, suppress_health_check=ANY_MACHINE)


def pairs(first: Iterable[object], second: Iterable[object]) -> list[Any]:
    """Every pair, for `parametrize`; the short set takes a third of them, so that each of either side is met."""
    return [
        pytest.param(one, other, marks=() if (row + column) % 3 == 0 else pytest.mark.full)
        for row, one in enumerate(first)
        for column, other in enumerate(second)
    ]


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options that scripts/test passes on."""
    group = parser.getgroup("selection")
    group.addoption("--full", action="store_true", help="also the long reliability set")
    group.addoption("--planted", action="store_true", help="only the proofs that planted bugs are found")
    group.addoption(
        "--lane",
        choices=("all", "parallel", "serial"),
        default="all",
        help="parallel: what may run beside others; serial: what needs a quiet machine",
    )


def pytest_configure(config: pytest.Config) -> None:
    """How many examples property tests try."""
    settings.load_profile("full" if config.getoption("--full") else "short")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep what was asked for."""
    kept = [item for item in items if asked_for(config, item)]
    if len(kept) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


def asked_for(config: pytest.Config, item: pytest.Item) -> bool:
    """Whether the options name this test."""
    lane = str(config.getoption("--lane"))
    serial = item.get_closest_marker("serial") is not None
    if lane != "all" and serial != (lane == "serial"):
        return False
    planted = item.get_closest_marker("planted") is not None
    if config.getoption("--planted"):
        return planted
    return not planted and (bool(config.getoption("--full")) or item.get_closest_marker("full") is None)
