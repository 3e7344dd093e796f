"""The word that a call is being worked on: whoever has taken one does, whether it says so or not."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from dragoman.model.call import OpenedCall
from dragoman.model.events import StatusChanged, TaskEvent
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState

_END: Final = Wait.END
_SUBMITTED: Final = TaskState.SUBMITTED


def at_work(opened: OpenedCall, at: datetime, events: Sequence[TaskEvent]) -> Sequence[TaskEvent]:
    """The first that a target tells, after the word that it works.

    Not where somebody waits for nothing but the end, nor where the target says so itself.
    """
    wait = opened.call.operation.wait
    if wait is _END or opened.task.state is not _SUBMITTED:
        return events
    first = events[0] if events else None
    says_so = isinstance(first, StatusChanged) and first.state is TaskState.WORKING
    if says_so or (wait is Wait.STREAM and (first is None or isinstance(first, StatusChanged))):
        return events
    return (StatusChanged(at=at, state=TaskState.WORKING), *events)
