"""The calls of workflows: which refusals of a step are for now only, and how long it waits."""

import pytest

from dragoman.hub.flow.limits import rate_limited
from dragoman.hub.step_calls import LONGEST_S, put_off_s
from dragoman.model.errors import (
    AgentNotFound,
    AgentUnavailable,
    CircuitOpen,
    DragomanError,
    NotAuthorized,
    Overloaded,
    RateLimited,
)


def limited(scope: str, wait_s: int = 3) -> RateLimited:
    """The refusal of a call beyond a limit."""
    return rate_limited("too many", limit="requests_per_minute", scope=scope, allowed=1, wait_s=wait_s, reset=0)


@pytest.mark.req("R-12", "P-30")
@pytest.mark.parametrize(
    ("refusal", "waits_s"),
    [
        (limited("agent"), 3),
        (CircuitOpen(retry_after_s=60), 60),
        (limited("key"), None),
        (limited("tenant"), None),
        (RateLimited("the budget is spent", retry_after_s=600, reason="budget"), None),
        (RateLimited("too many"), None),
        (AgentUnavailable("it is paused", retry_after_s=30), None),
        (Overloaded("the hub is busy", retry_after_s=2), None),
        (AgentNotFound("who?"), None),
        (NotAuthorized("no"), None),
    ],
)
def test_only_what_its_agent_takes_later_is_put_off(refusal: DragomanError, waits_s: float | None) -> None:
    assert put_off_s(refusal, 0) == waits_s


def test_who_is_refused_again_and_again_asks_less_often_and_never_earlier_than_told() -> None:
    assert [put_off_s(limited("agent", 1), refused) for refused in range(5)] == [1, 2, 4, LONGEST_S, LONGEST_S]
    assert put_off_s(limited("agent", 20), 50) == 20
