"""Several calls that belong together, one after the other, side by side, or to whoever fits: in this process.

What is under way is gone when the process dies. Steps that must survive that are the hub's: `submit(then=[…])`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal, overload

from dragoman.model import operations
from dragoman.model.errors import AgentNotFound, DragomanError
from dragoman.model.json import Json, JsonObject
from dragoman.model.steps import FIRST, PREVIOUS, as_object, input_of
from dragoman.sdk.annotations import parameters_of
from dragoman.sdk.client.client import A2AClient, current_client
from dragoman.sdk.client.results import CallResult
from dragoman.sdk.client.step import Step
from dragoman.sdk.errors import put_into_words

__all__ = ["Step", "chain", "delegate", "fan_out"]

INPUT_BYTES: Final = 10 * 1024 * 1024  # all that one step is given by reference
AT_ONCE: Final = 16

Outcomes = list[CallResult | DragomanError]


class _Enough(Exception):
    """So many succeeded that the rest is not needed."""


async def chain(*steps: Step, client: A2AClient | None = None) -> CallResult:
    """Call one step after the other, each with the result of the one before; the last result.

    Raises what the first step that fails raised.
    """
    if not steps:
        raise TypeError("a chain has at least one step")
    results: dict[str, Json] = {PREVIOUS: {}}
    result = CallResult({}, {})
    for number, step in enumerate(steps):
        result = await _carry_out(step, results, client)
        results |= {PREVIOUS: result, step.id or str(number): result}
        results.setdefault(FIRST, result)
    return result


@overload
async def fan_out(
    steps: Sequence[Step],
    *,
    limit: int = AT_ONCE,
    on_error: Literal["raise"] = "raise",
    merge: None = None,
    quorum: int | None = None,
    client: A2AClient | None = None,
) -> list[CallResult]: ...
@overload
async def fan_out(
    steps: Sequence[Step],
    *,
    limit: int = AT_ONCE,
    on_error: Literal["collect"],
    merge: None = None,
    quorum: None = None,
    client: A2AClient | None = None,
) -> Outcomes: ...
@overload
async def fan_out(
    steps: Sequence[Step],
    *,
    limit: int = AT_ONCE,
    on_error: Literal["raise", "collect"] = "raise",
    merge: Step,
    quorum: int | None = None,
    client: A2AClient | None = None,
) -> CallResult: ...
async def fan_out(
    steps: Sequence[Step],
    *,
    limit: int = AT_ONCE,
    on_error: Literal["raise", "collect"] = "raise",
    merge: Step | None = None,
    quorum: int | None = None,
    client: A2AClient | None = None,
) -> list[CallResult] | Outcomes | CallResult:
    """Call all steps, at most `limit` at once; their results in the order of the steps.

    The first failure cancels the rest and is raised; with on_error="collect" it stands in the place of its result.
    With `quorum` so many successes are enough: the rest is cancelled, and only they are returned; where too many fail
    for that, the last failure is raised. `merge` is given the list of what succeeded, and its result is returned.
    """
    if quorum is not None and not 0 < quorum <= len(steps):
        raise ValueError(f"a quorum of {quorum} cannot be reached by {len(steps)} steps")
    outcomes: list[CallResult | DragomanError | None] = [None] * len(steps)
    gate = asyncio.Semaphore(limit)

    async def one(number: int, step: Step) -> None:
        async with gate:
            try:
                outcomes[number] = await _carry_out(step, {PREVIOUS: {}}, client)
            except DragomanError as error:
                outcomes[number] = error
                if (on_error == "raise" and quorum is None) or _is_out_of_reach(outcomes, quorum):
                    raise
        if quorum is not None and len(_succeeded(outcomes)) >= quorum:
            raise _Enough

    failed: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for number, step in enumerate(steps):
                group.create_task(one(number, step))
    except* _Enough:
        pass
    except* DragomanError as several:
        failed = several.exceptions[0]
    if failed is not None:
        raise failed
    results = _succeeded(outcomes)
    if merge is not None:
        return await _carry_out(merge, {PREVIOUS: results}, client)
    return results if quorum is not None else [each for each in outcomes if each is not None]


async def delegate(
    task: str,
    *,
    to: Mapping[str, str],
    classify: Callable[..., Awaitable[str | None] | str | None],
    fallback: Callable[[str], Any] | None = None,
    skill: str = "handle",
    client: A2AClient | None = None,
) -> Any:
    """Give a task to the agent whose label `classify` finds for it; to `fallback` where it finds none.

    Raises AgentNotFound where there is neither.
    """
    takes_labels = "labels" in parameters_of(classify)
    label = await _value(classify(task, labels=list(to)) if takes_labels else classify(task))
    agent_id = None if label is None else to.get(label)
    if agent_id is not None:
        return await (client or current_client()).call(agent_id, skill, {"task": task})
    if fallback is None:
        error = AgentNotFound("Nobody fits this task", label=label, labels=list(to))
        raise put_into_words(error, "Pass fallback=… for tasks that no label fits.")
    return await _value(fallback(task))


async def _carry_out(step: Step, results: Mapping[str, Json], client: A2AClient | None) -> CallResult:
    return await (client or current_client()).call(step.agent, step.skill, _input_of(step, results))


def _input_of(step: Step, results: Mapping[str, Json]) -> JsonObject:
    if callable(step.input):
        return dict(step.input(results[PREVIOUS]))
    given = None if step.input is None else dict(step.input)
    return as_object(input_of(operations.Step(skill=step.skill or "", input=given), results, INPUT_BYTES))


def _succeeded(outcomes: Sequence[CallResult | DragomanError | None]) -> list[CallResult]:
    return [each for each in outcomes if isinstance(each, CallResult)]


def _is_out_of_reach(outcomes: Sequence[CallResult | DragomanError | None], quorum: int | None) -> bool:
    failed = sum(isinstance(each, DragomanError) for each in outcomes)
    return quorum is not None and len(outcomes) - failed < quorum


async def _value(given: Any) -> Any:
    return await given if inspect.isawaitable(given) else given
