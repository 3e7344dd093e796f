"""What the tests of security counted, as a table at the end of a run: addresses tried, connections made, differences.

A test counts with the fixture `figures`. The numbers of all tests of a goal are added up; xdist carries them.
"""

import json
from collections.abc import Callable
from typing import Final

import pytest

PROPERTY: Final = "figure"
COUNTS_KEY: Final = pytest.StashKey["Counts"]()

Figures = Callable[..., None]


class Counts:
    """The numbers of a run, by goal; registered as a plugin, so that it hears every report."""

    def __init__(self) -> None:
        self.goals: dict[str, dict[str, float]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add what one test counted."""
        if report.when != "call":
            return
        for name, value in report.user_properties:
            if name == PROPERTY and isinstance(value, str):
                goal, counted = json.loads(value)
                into = self.goals.setdefault(goal, {})
                for what, number in counted.items():
                    into[what] = into.get(what, 0) + number


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """`figures("S1", addresses=54, connections=0)`: add to the table."""

    def note(goal: str, **counted: float) -> None:
        request.node.user_properties.append((PROPERTY, json.dumps([goal, counted])))

    return note


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count."""
    counts = config.stash[COUNTS_KEY] = Counts()
    config.pluginmanager.register(counts, "security-figures")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Show the table, if anything was counted."""
    goals = config.stash[COUNTS_KEY].goals
    if not goals:
        return
    terminalreporter.section("security")
    for goal in sorted(goals, key=_order):
        shown = ", ".join(f"{what.replace('_', ' ')} {number:,.10g}" for what, number in goals[goal].items())
        terminalreporter.write_line(f"{goal:<4} {shown}")


def _order(goal: str) -> tuple[int, str]:
    digits = "".join(letter for letter in goal if letter.isdigit())
    return int(digits or 0), goal
