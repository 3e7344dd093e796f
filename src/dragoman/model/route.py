"""Why a call that names only a skill went to the agent it went to: who else could have had it, and their figures then.

Kept with the call, so it is small: the first few candidates in their order, and how many more there were.
"""

from enum import StrEnum
from typing import Final

import msgspec

from dragoman.model.agent import AgentCard

SHOWN: Final = 5
STEPS: Final = 50  # success is compared in steps of 2 points
ASSUMED: Final = 50  # good calls that everybody is credited with: one failure is not yet a step
_PRICES: Final = ("usd_per_call", "usd_per_1k_input", "usd_per_1k_output")


class RouteReason(StrEnum):
    """By which rule an agent was taken."""

    ONLY = "only"
    BEST = "best"
    CONVERSATION = "conversation"
    TRIAL = "trial"
    DRAWN = "drawn"


class Candidate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An agent that could have had the call, as it stood then: by its last hour with this skill."""

    agent: str
    version: str
    success: float
    calls: int = 0  # those of the last hour that count
    p95_ms: int | None = None
    expected_ms: int = 0  # p95, longer the more calls wait; what is assumed where no call is known
    waiting: int = 0
    rating: float = 0.0
    price_usd: float = 0.0

    @property
    def credited(self) -> float:
        """Its success, as it is compared: few calls say little, so good ones are added to them."""
        return (self.success * self.calls + ASSUMED) / (self.calls + ASSUMED)

    @property
    def step(self) -> int:
        """The step of its success: so much is the difference of two agents worth at least."""
        return int(self.credited * STEPS + 1e-9)


class Route(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The choice of an agent by skill. `passed`: who came before the chosen one and could not take it, and why."""

    skill: str
    chosen: str
    reason: RouteReason
    candidates: tuple[Candidate, ...]
    more: int = 0  # candidates that are not shown
    passed: tuple[tuple[str, str], ...] = ()

    def version_of(self, agent_id: str) -> str | None:
        """The version of a candidate's card."""
        return next((each.version for each in self.candidates if each.agent == agent_id), None)

    def untried(self) -> tuple[str, ...]:
        """Candidates that could still have the call, best first."""
        tried = {self.chosen, *(agent for agent, _ in self.passed)}
        return tuple([each.agent for each in self.candidates if each.agent not in tried])

    def moved(self, to: str, code: str) -> "Route":
        """The same, now with another agent: the one before could not take the call, by the code of its error."""
        return msgspec.structs.replace(self, chosen=to, passed=(*self.passed, (self.chosen, code)))


def price_of(card: AgentCard) -> float:
    """What an agent asks for, as one number to compare: for a call, and for a thousand tokens in and out."""
    prices = card.pricing or {}
    found = [prices.get(name) for name in _PRICES]
    return sum(float(price) for price in found if isinstance(price, int | float) and price > 0)


def order_of(candidate: Candidate) -> tuple[int, int, float, float, int, str]:
    """Where a candidate stands: success by steps, expected time, rating, price; then who is known least."""
    return (
        -candidate.step,
        candidate.expected_ms,
        -candidate.rating,
        candidate.price_usd,
        candidate.calls,
        candidate.agent,
    )


def explained(route: Route) -> str:
    """The choice in a sentence or two."""
    passed = "".join(f"{agent} could not take it ({code}). " for agent, code in route.passed)
    count = len(route.candidates) + route.more
    chosen = next((each for each in route.candidates if each.agent == route.chosen), None)
    figures = "" if chosen is None else f": {_figures(chosen)}"
    match route.reason:
        case RouteReason.ONLY:
            why = f"{route.chosen} is the only one with the skill {route.skill} that can be called"
        case RouteReason.CONVERSATION:
            why = f"{route.chosen} has the conversation in its memory"
        case RouteReason.TRIAL:
            why = f"{route.chosen} is on trial, one call in twenty, until more is known of it{figures}"
        case RouteReason.DRAWN:
            why = f"Calls wait: {route.chosen} is the better of two drawn from {count}{figures}"
        case RouteReason.BEST:
            why = f"{route.chosen} is the best of {count}{figures}"
    if passed and route.reason is not RouteReason.ONLY:
        why = f"{route.chosen} came next{figures}"
    return f"{passed}{why}."


def _figures(candidate: Candidate) -> str:
    if not candidate.calls:
        return "no calls in the last hour"
    pace = "" if candidate.p95_ms is None else f", 95 of 100 within {candidate.p95_ms} ms"
    return f"success {candidate.success:.0%} by {candidate.calls} calls{pace}"
