"""What a subscriber of an AgentVault task is shown: its status, its messages, its artifacts, each as one event.

    task_status, then all that was said and made ─► what happens, as it happens ─► the status that ends it

Published clients stop at the first status that ends a task: one that has ended is shown at work first, then what it
holds, and its end last. They know few moves between states: where the hub makes another, WORKING is shown in between.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, final

import msgspec

from dragoman.dialects.agentvault.answers import STATUS, added_turn, added_turns, status_event
from dragoman.dialects.agentvault.content import APPEND, block_of, wire_artifact, wire_message
from dragoman.dialects.agentvault.wire import STATES
from dragoman.dialects.hints import HINTS
from dragoman.dialects.refusals import text_of
from dragoman.dialects.sse import frame
from dragoman.dialects.times import wire_time
from dragoman.model.content import Artifact, Message, Role
from dragoman.model.errors import DragomanError
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.json import JsonObject
from dragoman.model.states import INTERRUPTED, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task

WORKING: Final = STATES[TaskState.WORKING]
SUBMITTED: Final = STATES[TaskState.SUBMITTED]
# The states from which clients do not know every move; staying where it is counts as an update.
MOVES: Final[Mapping[str, frozenset[str]]] = {
    SUBMITTED: frozenset({SUBMITTED, WORKING, "CANCELED"}),
    "INPUT_REQUIRED": frozenset({"INPUT_REQUIRED", WORKING, "CANCELED"}),
}

_encode = msgspec.json.Encoder().encode
_Event = tuple[str, JsonObject]  # its name and its data


@final
class Shown:
    """The frames of one subscription; it remembers the state that it showed last."""

    __slots__ = ("_grew", "_said", "_state", "_task_id")

    def __init__(self, task_id: str, after: int | None) -> None:
        """`after`: the number of the last event that the subscriber has seen, if it comes back."""
        self._task_id = task_id
        # What was shown up to a number is not known; a task begins as submitted and is soon at work.
        self._state = {None: "", 0: "", 1: SUBMITTED}.get(after, WORKING)
        self._grew = after is not None  # an artifact has come in pieces, or may have
        self._said = 0  # a hash of the words that the agent said last

    def __call__(self, item: StreamItem) -> bytes:
        """The frames of one item."""
        match item:
            case Snapshot(task=task):
                return _framed(self._snapshot(task), task.last_seq)
            case Ended(seq=seq, event=event, task=task):
                return _framed(self._end(event, task), seq)
            case _:
                return _framed(self._happened(item.event), item.seq)

    def _snapshot(self, task: Task) -> Sequence[_Event]:
        at = task.updated_at
        now = StatusChanged(at=at, state=task.state, message=task.status_message, failure=task.failure)
        started = StatusChanged(at=task.started_at or task.created_at, state=TaskState.WORKING)
        events = [self._status_event(started if task.ended else now)]
        events.append(self._message(task.asked.message, task.created_at))
        events += [self._message(turn, at) for turn in task.messages]
        events += [self._turn(turn, at) for turn in added_turns(task)]
        events += [self._artifact(artifact, at) for artifact in task.artifacts]
        if task.ended:
            events.append(self._status_event(now))
        self._state = STATES[task.state]
        return events

    def _end(self, event: StatusChanged, task: Task) -> Sequence[_Event]:
        """What the agent left elsewhere and what came in pieces is told as a whole before the end."""
        events = [self._turn(turn, event.at) for turn in added_turns(task)]
        if self._grew:
            events += [self._artifact(each, event.at) for each in task.artifacts if len(each.parts) > 1]
        return [*events, *self._status(event)]

    def _happened(self, event: TaskEvent) -> Sequence[_Event]:
        match event:
            case StatusChanged():
                return [*self._question(event), *self._status(event)]
            case MessageAdded(message=message):
                if message.role is not Role.USER:
                    self._said = hash(text_of(message))
                return [self._message(message, event.at)]
            case ArtifactChunk(artifact=artifact):
                self._grew = self._grew or event.append
                return [self._artifact(artifact, event.at, piece=event.append)]
            case _:
                return ()

    def _status(self, event: StatusChanged) -> Sequence[_Event]:
        now, before = STATES[event.state], self._state
        shown = self._status_event(event)
        if now == before and "message" not in shown[1]:
            return ()
        self._state = now
        if before in MOVES and now not in MOVES[before]:
            return self._status_event(StatusChanged(at=event.at, state=TaskState.WORKING)), shown
        return (shown,)

    def _question(self, event: StatusChanged) -> Sequence[_Event]:
        """The words with which an agent asks, as a message too, unless it has just said them as one."""
        if event.state not in INTERRUPTED or event.message is None or hash(text_of(event.message)) == self._said:
            return ()
        return (self._turn(added_turn(event.message.parts, STATUS), event.at),)

    def _status_event(self, event: StatusChanged) -> _Event:
        return "task_status", status_event(self._task_id, event)

    def _message(self, message: Message, at: datetime) -> _Event:
        return self._turn(wire_message(message), message.at or at)

    def _turn(self, shown: JsonObject, at: datetime) -> _Event:
        return "task_message", {"taskId": self._task_id, "message": shown, "timestamp": wire_time(at)}

    def _artifact(self, artifact: Artifact, at: datetime, *, piece: bool = False) -> _Event:
        shown = wire_artifact(artifact)
        if piece:
            metadata: JsonObject = shown.get("metadata") or {}
            shown["metadata"] = {**metadata, HINTS: {**block_of(metadata), APPEND: True}}
        return "task_artifact", {"taskId": self._task_id, "artifact": shown, "timestamp": wire_time(at)}


def error_frame(error: DragomanError) -> bytes:
    """The event of a stream that cannot go on, its last; published clients raise with its message."""
    return frame(_encode({"code": error.code, "message": error.message, "details": error.details}), name="error")


def _framed(events: Sequence[_Event], seq: int) -> bytes:
    """The events of one item. The number stands at the last: whoever loses some of them gets all of them again."""
    last = len(events) - 1
    return b"".join(
        [
            frame(_encode(data), name=name, seq=seq if index == last else None)
            for index, (name, data) in enumerate(events)
        ]
    )
