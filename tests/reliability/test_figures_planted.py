"""The tests of figures, routing and health find the bugs that were planted for them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.end_to_end import test_figures, test_health, test_routing
from tests.support.hub import HubProcess

QUICK = {"DRAGOMAN_HEALTH_EVERY_S": str(test_health.EVERY_S)}

FOUND: dict[str, tuple[str, dict[str, str], Callable[[HubProcess, Path], object]]] = {
    "cancelled_counts_as_failed": ("token", {}, test_figures.test_discovery_series_and_metrics_tell_the_same),
    "failures_not_routed_around": (
        "none",
        {},
        lambda hub, _: test_routing.test_of_five_agents_the_best_has_the_calls_and_every_choice_is_explained(hub),
    ),
    "health_never_marks": (
        "none",
        QUICK,
        lambda hub, _: test_health.test_an_agent_that_goes_away_is_marked_and_is_called_again_when_it_is_back(hub),
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("bug", FOUND)
def test_a_planted_bug_is_found(bug: str, tmp_path: Path) -> None:
    auth, environ, test = FOUND[bug]
    hub = HubProcess(tmp_path / "data", auth=auth, planted=bug).start(environ)
    try:
        with pytest.raises(AssertionError):
            test(hub, tmp_path)
    finally:
        hub.stop()
