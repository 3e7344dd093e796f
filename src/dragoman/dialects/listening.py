"""Hears a stream of the A2A family: each event by its shape, whatever version, framing or name it comes in.

    frame ─► object ─► task, message, status or artifact update ─► what is new of it

Whole tasks may come at any place, an artifact piece by piece and then once more, the answer in no more than a status:
what is passed on is said once. Where the answer is, `growing.py` decides.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import final

import msgspec

from dragoman.dialects.agent_errors import error_of, lacks_method
from dragoman.dialects.dialect import Heard, Outgoing, Verb
from dragoman.dialects.growing import Answer
from dragoman.dialects.shapes import (
    account_in,
    may_hold_doubles,
    read_artifact_update,
    read_message,
    read_status_update,
    read_task,
    remote_of,
    unwrapped,
    whole_numbers,
)
from dragoman.dialects.sse import SseEvent
from dragoman.model.content import Artifact, Role
from dragoman.model.errors import AgentError, NotSupported
from dragoman.model.events import ArtifactChunk, MessageAdded, Remote, StatusChanged, TaskEvent
from dragoman.model.fit import Feature
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.news import Known
from dragoman.model.states import FINAL, INTERRUPTED, TaskState

Adapt = Callable[[JsonObject], JsonObject]  # an object as the agent sent it → one that can be read by its shape
Restore = Callable[[Iterable[TaskEvent]], tuple[TaskEvent, ...]]  # events → the same with what the wire had displaced

_decode = msgspec.json.Decoder().decode


@final
class TaskListener:
    """The listener of one stream. What it cannot read is passed over: whoever listens asks for the task at the end."""

    __slots__ = (
        "_adapt",
        "_answer",
        "_asks",
        "_began",
        "_continues",
        "_known",
        "_open",
        "_over",
        "_remote",
        "_restore",
        "_task_id",
        "_verb",
        "_whole",
    )

    def __init__(self, outgoing: Outgoing, *, adapt: Adapt | None = None, restore: Restore | None = None) -> None:
        task = outgoing.task
        self._adapt = adapt
        self._restore = restore
        self._verb = outgoing.verb
        self._task_id = task.id
        self._asks = Feature.GET in outgoing.endpoint.features
        self._continues = outgoing.asked.continues is not None
        self._known = Known(task)
        self._answer = Answer(self._known, task.artifacts, task.status_message)
        self._remote = task.remote
        self._open: set[str] = set()  # artifacts of which more may come
        self._began = False  # something of a task was heard
        self._whole = False  # a whole task was heard
        self._over = False

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What an event says, of what was not known yet.

        Raises NotSupported where the first one says that there are no streams; to a subscriber, every error that comes
        instead of the task, and AgentError at the end of one that it has not heard from its beginning.
        """
        if self._over:
            return Heard(events=(), settled=True, remote=self._remote)
        body = _object_in(event.data)
        refused = _error_in(event, body)
        if refused is not None:
            return self._refused(refused, at)
        result: Json = body.get("result", body)
        if not is_object(result):
            return self._told((), None)
        if may_hold_doubles(event.data):
            result = whole_numbers(result)
        kind, value = unwrapped(result if self._adapt is None else self._adapt(result))
        if kind == "task":
            return self._task(value, at)
        if kind == "status-update":
            moved = read_status_update(value, at)
            self._name(remote_of(value, "taskId"))
            return self._told((moved,), moved.state)
        if kind == "artifact-update":
            self._name(remote_of(value, "taskId"))
            return self._told((read_artifact_update(value, at),), None)
        return self._message(value, at) if kind == "message" else self._told((), None)

    def _task(self, value: JsonObject, at: datetime) -> Heard:
        events, state, remote = read_task(value, at, unfinished=True)
        if remote.task_id is not None:
            self._remote = remote
        self._whole = True
        if self._continues and self._verb is Verb.STREAM and not self._began and state in INTERRUPTED:
            # The first look at a task that goes on shows the question that was just answered.
            return self._told(events[:-1], TaskState.WORKING)
        return self._told(events, state)

    def _message(self, value: JsonObject, at: datetime) -> Heard:
        """A message is the whole answer where no task was told of; in a task it is talk."""
        message = read_message(value, f"{self._task_id}-answer", at)
        if message.role is Role.USER:
            return self._told((), None)  # the caller's own, sent back
        if self._began:
            return self._told((MessageAdded(at=at, message=message),), None)
        self._over = True
        context_id = remote_of(value, "taskId").context_id
        said = MessageAdded(at=at, message=message, direct=True)
        done = StatusChanged(at=at, state=TaskState.COMPLETED, usage=account_in(value.get("metadata")))
        return Heard(
            events=tuple(self._restored((said, done))),
            settled=True,
            remote=self._remote if context_id is None else Remote(context_id=context_id),
        )

    def _refused(self, error: JsonObject, at: datetime) -> Heard:
        problem = error_of(error)
        if not self._began:
            if lacks_method(error):
                raise NotSupported(problem.message)
            if self._verb is Verb.SUBSCRIBE:
                raise problem  # It says nothing of the task.
        self._over = True
        ended = StatusChanged(at=at, state=TaskState.FAILED, failure=problem.failure())
        return Heard(events=(ended,), settled=True, remote=self._remote)

    def _told(self, events: Sequence[TaskEvent], state: TaskState | None) -> Heard:
        self._began = self._began or bool(events)
        settled = state in FINAL or state in INTERRUPTED
        if settled and self._verb is Verb.SUBSCRIBE and self._asks and not self._whole:
            # What came before it subscribed may be missing here.
            raise AgentError("The stream began in the middle; the task itself tells its outcome.", reason="half_heard")
        self._over = settled
        found: list[TaskEvent] = []
        for event in self._restored(events):
            for said in self._answer.folded(event):
                found += self._news(said)
        return Heard(events=tuple(found), settled=settled, remote=self._remote)

    def _news(self, event: TaskEvent) -> list[TaskEvent]:
        found = self._known.news((event,))
        if isinstance(event, ArtifactChunk):
            name = event.artifact.id
            if not event.last:
                self._open.add(name)
            elif name in self._open:
                self._open.discard(name)
                if not found:
                    # All of it was told before: only that it is complete is new.
                    found.append(ArtifactChunk(at=event.at, artifact=Artifact(id=name, parts=()), append=True))
        return found

    def _name(self, named: Remote) -> None:
        """Keep what the agent calls the task, from the first event that says so."""
        known = self._remote
        if known is None:
            self._remote = named if named.task_id or named.context_id else None
        elif (known.task_id is None and named.task_id) or (known.context_id is None and named.context_id):
            self._remote = Remote(
                task_id=known.task_id or named.task_id, context_id=known.context_id or named.context_id
            )

    def _restored(self, events: Sequence[TaskEvent]) -> Sequence[TaskEvent]:
        return events if self._restore is None else self._restore(events)


def _object_in(data: bytes) -> JsonObject:
    """The object that an event holds; an empty one where it holds something else."""
    try:
        value: Json = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    return value if is_object(value) else {}


def _error_in(event: SseEvent, body: JsonObject) -> JsonObject | None:
    """The error that an event tells of, in either framing."""
    error: Json = body.get("error")
    if is_object(error):
        return error
    if isinstance(error, str) and error:
        return {"message": error}
    if event.name != "error":
        return None
    return body or {"message": event.data.decode("utf-8", "replace")[:500]}
