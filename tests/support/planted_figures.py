"""Bugs in how agents are measured, chosen and checked."""

from dragoman.hub import figures
from dragoman.hub.health import Health
from dragoman.hub.routing import Router
from dragoman.model.agent import Agent
from dragoman.model.figures import Outcome, SkillFigures, outcome_of
from dragoman.model.route import Candidate
from dragoman.model.task import Task
from tests.support.planting import put_in_place


def cancelled_counts_as_failed(_: int) -> None:
    """A call that its caller cancelled counts against its agent."""

    def harsh(task: Task) -> Outcome:
        outcome = outcome_of(task)
        return Outcome.FAILED if outcome is Outcome.CANCELED else outcome

    put_in_place(figures, "outcome_of", harsh)


def failures_not_routed_around(_: int) -> None:
    """Agents are chosen as if no call had ever failed."""
    candidate = Router._candidate  # pyright: ignore[reportPrivateUsage] - the part that is replaced

    def blind(self: Router, agent: Agent, known: SkillFigures, assumed: int) -> Candidate:
        blinded = SkillFigures(calls=known.calls, success=1.0, p95_ms=known.p95_ms)
        return candidate(self, agent, blinded, assumed)

    put_in_place(Router, "_candidate", blind)


def health_never_marks(_: int) -> None:
    """Health checks are made, and nothing is made of them."""

    async def blind(_self: Health, _agent: Agent, _problem: str | None) -> None:
        return

    put_in_place(Health, "_checked", blind)
