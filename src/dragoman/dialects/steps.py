"""The steps that follow a call, read the same way wherever a dialect has a field for them."""

from collections.abc import Sequence
from typing import Protocol

from dragoman.model.json import JsonObject
from dragoman.model.operations import Step
from dragoman.model.steps import Then, check_steps


class StepShape(Protocol):
    """A step, however it was written."""

    @property
    def skill(self) -> str:
        """What is to be done."""
        ...

    @property
    def id(self) -> str | None:
        """What later steps call it."""
        ...

    @property
    def agent(self) -> str | None:
        """Who is to do it, if not the best there is."""
        ...

    @property
    def input(self) -> JsonObject | None:
        """What it is given, if not the result of the step before."""
        ...


def read_steps(given: Sequence[StepShape | Sequence[StepShape]], field: str) -> Then:
    """The steps that a request names in one of its fields. Raises BadParams for what is wrong with them."""
    then = tuple(tuple(_step(each) for each in step) if isinstance(step, Sequence) else _step(step) for step in given)
    check_steps(then, field)
    return then


def _step(given: StepShape) -> Step:
    return Step(skill=given.skill, id=given.id, agent=given.agent, input=given.input)
