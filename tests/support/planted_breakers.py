"""Faults of breakers and retries, and hubs in which both are in a hurry."""

from typing import Final

from dragoman.delivery.budget import RetryBudget
from dragoman.hub.flow import breaker
from dragoman.hub.flow.breaker import Breaker
from dragoman.hub.flow.breakers import Breakers
from dragoman.ports.attempts import AttemptOutcome
from dragoman.server import build
from tests.support.planting import put_in_place

OPEN_S: Final = 0.5
WAITS_S: Final = (0.05, 0.1, 0.2)


def breaker_never_opens(_: int) -> None:
    """A dead agent is called for ever."""

    def stays(self: Breaker, now: float, for_s: float) -> None:
        return None

    put_in_place(Breaker, "_open", stays)


def retries_without_budget(_: int) -> None:
    """Every call that may be sent again is."""

    def always(self: RetryBudget, target: str, now: float) -> bool:
        return True

    put_in_place(RetryBudget, "take", always)


def short_timeouts_count(_: int) -> None:
    """A caller in a hurry shuts an agent for everyone."""

    def says_nothing(self: Breakers, call: object, outcome: AttemptOutcome, took_s: float) -> bool:
        return outcome is AttemptOutcome.DROPPED

    put_in_place(Breakers, "_says_nothing", says_nothing)


def breakers_in_a_hurry(_: int) -> None:
    """A gauge: agents are left alone for less than a second, and calls are sent again after less than that."""
    put_in_place(breaker, "OPEN_S", OPEN_S)
    put_in_place(build, "WAITS_S", WAITS_S)
