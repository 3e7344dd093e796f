"""Finished calls for the tests of what is observed of them."""

from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from dragoman.model.content import Message, Role, Text
from dragoman.model.operations import SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task, Trace

AT: Final = datetime(2026, 1, 12, 10, tzinfo=UTC)
ASKED: Final = SendTask(message=Message(id="m1", role=Role.USER, parts=(Text(text="hi"),)))
TASK: Final = Task(
    id="a2a_call_1",
    tenant="default",
    caller_id="agt_caller",
    agent_id="agt_target",
    agent_version="1",
    dialect="platform",
    context_id="ctx-1",
    asked=ASKED,
    trace=Trace(trace_id="ab" * 16, span_id="cd" * 8),
    created_at=AT,
    updated_at=AT,
    state=TaskState.COMPLETED,
    skill="echo",
)


def call(took_s: float = 0.03, **fields: Any) -> Task:
    """A call that has ended."""
    return msgspec.structs.replace(TASK, ended_at=AT + timedelta(seconds=took_s), **fields)
