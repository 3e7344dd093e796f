"""A task: one call, from its asking to its end, as the fold of its events over its opening."""

from datetime import datetime

import msgspec

from dragoman.model.callbacks import Callback
from dragoman.model.content import Artifact, Message
from dragoman.model.errors import Failure
from dragoman.model.events import Happened, Remote, StatusChanged, Usage
from dragoman.model.json import Json
from dragoman.model.operations import SendTask
from dragoman.model.route import Route
from dragoman.model.states import FINAL, TaskState


class Trace(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a call belongs in a trace; `given_id` is the caller's own spelling, echoed as it came."""

    trace_id: str
    span_id: str
    parent_span_id: str | None = None
    state: str | None = None
    given_id: str | None = None
    given_span: str | None = None
    sampled: bool = True


class Task(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call. `asked` is the request itself, so none of its fields is copied; the rest is what admission decided
    and what has happened since."""

    id: str
    tenant: str
    caller_id: str
    agent_id: str
    agent_version: str
    dialect: str
    context_id: str
    asked: SendTask
    trace: Trace
    created_at: datetime
    updated_at: datetime
    state: TaskState = TaskState.SUBMITTED
    skill: str | None = None
    deadline: datetime | None = None
    parent_id: str | None = None
    chain: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    result: Json = None
    status_message: Message | None = None
    progress: float | None = None
    failure: Failure | None = None
    usage: Usage | None = None
    started_at: datetime | None = None
    ended_at: datetime | None = None
    callbacks: tuple[Callback, ...] = ()
    remote: Remote | None = None
    direct: bool = False
    attempt: int = 0
    answered: bool = False  # by its caller, and that was not sent on yet
    heard: int = 0  # the agent's own number of the last that it told in this attempt, where it counts
    logged: int = 0  # lines of the agent's that are kept with it
    last_seq: int = 0
    forgotten_at: datetime | None = None  # when what was written in it was removed
    route: Route | None = None  # how its agent was chosen, where only a skill was named

    @property
    def ended(self) -> bool:
        """Whether it is in a final state."""
        return self.state in FINAL


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The first item of a stream: the task as it is now. Nothing follows where the task has ended."""

    task: Task


class Ended(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The last item of a stream: the event that ends it, and the task after it.

    The task has ended, or waits for its caller.
    """

    seq: int
    event: StatusChanged
    task: Task


StreamItem = Snapshot | Happened | Ended
