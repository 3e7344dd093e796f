"""The calls that a workflow is made of: their names, what each asks, and what becomes of their results.

Pure: nothing is opened, awaited or looked up here.
"""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final

import msgspec

from dragoman.dialects.refusals import failure_of, text_of
from dragoman.model.content import Artifact, Data, Message, Role
from dragoman.model.errors import AgentError, CircuitOpen, DragomanError, Failure, RateLimited
from dragoman.model.events import Usage
from dragoman.model.json import Json
from dragoman.model.lifecycle import RESULT_ARTIFACT, artifacts_of
from dragoman.model.operations import SendTask, Step, Wait
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.steps import as_object, input_of, parts_of_input
from dragoman.model.task import Task, Trace
from dragoman.observe.span import span_id_of
from dragoman.observe.span_names import STEP

LONGEST_S: Final = 8.0  # to which the waits of a call grow that is refused again and again
_SUMMED = ("tokens", "input_tokens", "output_tokens", "cost_usd", "execution_ms")


class StepCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call of a workflow by its place: "0" is the first call's own, "2.1" the first of several side by side."""

    place: str
    call_id: str
    skill: str | None
    step: Step | None = None

    @property
    def name(self) -> str:
        """What its caller knows it by: the step's id, else its place."""
        return self.place if self.step is None else self.step.id or self.place


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """The calls that run at once; `is_list`: their results are a list, even of one."""

    calls: tuple[StepCall, ...]
    is_list: bool = False


def plan(first: Task) -> tuple[Stage, ...]:
    """The whole workflow of a first call, in order. The same task gives the same calls, in every life of the hub."""
    planned = [Stage(calls=(StepCall(place="0", call_id=f"{first.id}-0", skill=first.skill),))]
    for number, each in enumerate(first.asked.then, start=1):
        if isinstance(each, Step):
            planned.append(Stage(calls=(_call(first, str(number), each),)))
        else:
            side_by_side = tuple(_call(first, f"{number}.{k}", step) for k, step in enumerate(each, start=1))
            planned.append(Stage(calls=side_by_side, is_list=True))
    return tuple(planned)


def asked_of(
    first: Task, call: StepCall, results: Mapping[str, Json], *, timeout_s: float, most_bytes: int
) -> SendTask:
    """What one of the calls asks: all that the first call asked, save what concerns the whole.

    Raises BadParams, TooLarge.
    """
    asked, step = first.asked, call.step
    if step is None:
        agent, message = first.agent_id, asked.message
    else:
        parts = parts_of_input(input_of(step, results, most_bytes))
        agent, message = step.agent, Message(id=f"msg_{call.call_id}", role=Role.USER, parts=parts)
    return SendTask(
        message=message,
        agent=agent,
        skill=call.skill,
        context_id=first.context_id,
        wait=Wait.NONE,
        interactive=False,  # Who called is not there to be asked.
        priority=asked.priority,
        timeout_s=timeout_s,
        parent_id=first.id,
        accepts=asked.accepts,
        extensions=asked.extensions,
        at_most_once=asked.at_most_once,
        metadata=asked.metadata,
    )


def trace_below(first: Task, call: StepCall) -> Trace:
    """The span of a call below that of its step."""
    trace, call_id = first.trace, call.call_id
    return Trace(
        trace_id=trace.trace_id,
        span_id=blake2b(call_id.encode(), digest_size=8).hexdigest(),
        parent_span_id=span_id_of(first.id, STEP, call.place.partition(".")[0]),
        state=trace.state,
        given_id=trace.given_id,
        sampled=trace.sampled,
    )


def failure_at(call: StepCall, failure: Failure) -> Failure:
    """A failure that says at which step it happened."""
    details = {**(failure.details or {}), "step": call.name, "step_call_id": call.call_id}
    return msgspec.structs.replace(failure, details=details)


def put_off_s(refusal: DragomanError, refused: int) -> float | None:
    """After how many seconds a call is tried again whose agent takes it only later; None: it is refused for good.

    Nobody waits for a step at that instant, so it waits as long as the refusal says: for its agent's limits, for a
    place in its queue, for an agent that is left alone. One that was refused before waits longer, so that many that
    wait for the same agent do not ask every second.
    """
    of_agent = isinstance(refusal, RateLimited) and refusal.details.get("scope") == "agent"
    asked_s = refusal.retry_after_s if of_agent or isinstance(refusal, CircuitOpen) else None
    return None if asked_s is None else max(asked_s, min(2.0**refused, LONGEST_S))


def why_not(task: Task) -> Failure | None:
    """Why the call of a step has no result, if it has none."""
    if task.state is TaskState.COMPLETED:
        return None
    if task.state is TaskState.CANCELED:
        return AgentError("The call of this step was cancelled.", reason="cancelled").failure()
    if task.state in INTERRUPTED:
        question = text_of(task.status_message)
        reason = "input_required" if task.state is TaskState.INPUT_REQUIRED else "auth_required"
        return AgentError(question or "The agent needs more input.", reason=reason, question=question).failure()
    return failure_of(task).failure()


def artifacts_from(stage: Stage, ended: Sequence[Task]) -> tuple[Artifact, ...]:
    """What the whole workflow made: what its last step made, or the list of what those side by side made."""
    made = () if stage.is_list else artifacts_of(ended[0])
    if made:
        return made
    result = as_object(result_of(stage, ended))
    return (Artifact(id=RESULT_ARTIFACT, name=RESULT_ARTIFACT, parts=(Data(value=result),)),)


def result_of(stage: Stage, ended: Sequence[Task]) -> Json:
    """The result of a stage."""
    return [task.result for task in ended] if stage.is_list else ended[0].result


def used_together(tasks: Iterable[Task]) -> Usage | None:
    """What several calls used up, in all."""
    usages = [task.usage for task in tasks if task.usage is not None]
    if not usages:
        return None
    told = {name: [value for usage in usages if (value := getattr(usage, name)) is not None] for name in _SUMMED}
    return msgspec.convert({name: sum(values) for name, values in told.items() if values}, Usage)


def _call(first: Task, place: str, step: Step) -> StepCall:
    return StepCall(place=place, call_id=f"{first.id}-{place}", skill=step.skill, step=step)
