"""The states of a task and the moves between them: the one transition table."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class TaskState(StrEnum):
    """Where a task stands."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


# Bound once, for what every call asks: to find a member in its enum is dear.
WORKING: Final = TaskState.WORKING
COMPLETED: Final = TaskState.COMPLETED
FINAL: Final = frozenset({TaskState.COMPLETED, TaskState.FAILED, TaskState.CANCELED, TaskState.REJECTED})
INTERRUPTED: Final = frozenset({TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED})
OPEN: Final = frozenset(TaskState) - FINAL

MOVES: Final[Mapping[TaskState, frozenset[TaskState]]] = {
    TaskState.SUBMITTED: frozenset(TaskState),
    TaskState.WORKING: frozenset(TaskState) - {TaskState.SUBMITTED},
    TaskState.INPUT_REQUIRED: FINAL | {TaskState.WORKING, TaskState.INPUT_REQUIRED},
    TaskState.AUTH_REQUIRED: FINAL | {TaskState.WORKING, TaskState.AUTH_REQUIRED},
    TaskState.COMPLETED: frozenset(),
    TaskState.FAILED: frozenset(),
    TaskState.CANCELED: frozenset(),
    TaskState.REJECTED: frozenset(),
}


def may_move(state: TaskState, to: TaskState) -> bool:
    """Whether a task in `state` may be in `to` next; staying where it is counts as an update."""
    return to in MOVES[state]
