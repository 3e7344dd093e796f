"""One step of a larger work: a skill, perhaps of a certain agent, and what it is given."""

from collections.abc import Callable, Mapping, Sequence
from typing import final

import msgspec

from dragoman.model.json import Json, JsonObject
from dragoman.model.steps import FROM, PREVIOUS

Made = Callable[[Json], Mapping[str, Json]]


@final
class Step(msgspec.Struct, frozen=True):
    """A call that is part of several: in this process (`dragoman.orchestrate`) or in the hub (`submit(then=…)`).

    Without an `input` it is given the result of the step before. In this process the input may be a function of that
    result; in the hub it may hold `Step.result(…)`.
    """

    id: str | None = None
    skill: str | None = None
    agent: str | None = None
    input: Mapping[str, Json] | Made | None = None

    @staticmethod
    def result(step: str = PREVIOUS, pointer: str = "") -> JsonObject:
        """Stands in an input for a result: of the step before, of the first call ("0"), or of the step with that id.

        `pointer` is a JSON Pointer into it: Step.result("0", "/results").
        """
        return {FROM: f"{step}#{pointer}" if pointer else step}


Then = Sequence[Step | Sequence[Step]]


def steps_body(then: Then) -> list[Json]:
    """The steps as the hub reads them; those in a list run at once. Raises TypeError for what it cannot carry out."""
    return [_step_body(each) if isinstance(each, Step) else [_step_body(one) for one in each] for each in then]


def _step_body(step: Step) -> JsonObject:
    if step.skill is None:
        raise TypeError("a step that the hub carries out names its skill")
    if callable(step.input):
        raise TypeError("the hub cannot call a function: say Step.result(…) in the input instead")
    shown: JsonObject = {"skill": step.skill}
    if step.id is not None:
        shown["id"] = step.id
    if step.agent is not None:
        shown["agent"] = step.agent
    if step.input is not None:
        shown["input"] = dict(step.input)
    return shown
