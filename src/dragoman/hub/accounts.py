"""What a call used up, as it is kept: without senseless claims; where no cost is told, by the prices of the card."""

import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.model.events import StatusChanged, TaskEvent
from dragoman.model.lifecycle import fold
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from dragoman.model.usage import Pricing, priced, sane

LOG: Final = logging.getLogger("dragoman.hub")


def accounted(
    task: Task, grown: Task, events: Sequence[TaskEvent], pricing: Pricing | None
) -> tuple[Task, list[TaskEvent]]:
    """The task and its new events with what the agent used; `task` is how it was before them."""
    kept = list(events)
    if grown.usage is not None and grown.usage.refused:
        kept = [_without_vain(task, event) for event in kept]
        grown = fold(task, kept)
    last = kept[-1]
    if pricing is not None and grown.ended and isinstance(last, StatusChanged):
        usage = priced(grown.usage, pricing, completed=grown.state is TaskState.COMPLETED)
        if usage is not grown.usage:
            kept[-1] = msgspec.structs.replace(last, usage=usage)
            grown = msgspec.structs.replace(grown, usage=usage)
    return grown, kept


def _without_vain(task: Task, event: TaskEvent) -> TaskEvent:
    if not isinstance(event, StatusChanged) or event.usage is None or not event.usage.refused:
        return event
    fields = {"call_id": task.id, "agent": task.agent_id, "claims": list(event.usage.refused)}
    LOG.warning("an agent's account of its usage makes no sense", extra={"fields": fields})
    return msgspec.structs.replace(event, usage=sane(event.usage))
