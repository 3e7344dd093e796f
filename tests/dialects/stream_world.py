"""What the tests of the streams of A2A 0.3 and of dotted share: items of a stream, and what frames become of them."""

import gc
import json
import types
from typing import Any, Final

import msgspec

from dragoman.dialects.dialect import Exchange, Frames, StreamExchange
from dragoman.dialects.sse import SseEvent, SseParser
from dragoman.model.content import Artifact, Message, Role, Text
from dragoman.model.events import ArtifactChunk, Happened, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.lifecycle import fold, legal
from dragoman.model.states import FINAL, INTERRUPTED, TaskState
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from tests.dialects.goldens import LATER, task_of

TASK: Final = "task-1"
CONTEXT: Final = "ctx-1"
WHEN: Final = "2026-01-12T10:00:02.500Z"


def open_task(**changes: Any) -> Task:
    """A task that was just opened."""
    return task_of({"id": TASK, "context_id": CONTEXT, "last_seq": 0, **changes})


def said(text: str, role: Role = Role.AGENT, name: str = "m-2") -> Message:
    """Somebody's words."""
    return Message(id=name, role=role, parts=(Text(text=text),))


def moved(state: TaskState, words: Message | None = None, **more: Any) -> StatusChanged:
    """A change of state."""
    return StatusChanged(at=LATER, state=state, message=words, **more)


def added(message: Message, *, direct: bool = False) -> MessageAdded:
    """Something that was said."""
    return MessageAdded(at=LATER, message=message, direct=direct)


def piece(text: str, *, append: bool = False, last: bool = True, **more: Any) -> ArtifactChunk:
    """A piece of the one artifact."""
    artifact = Artifact(id="a-1", parts=(Text(text=text),), **more)
    return ArtifactChunk(at=LATER, artifact=artifact, append=append, last=last)


def items_of(task: Task, events: list[TaskEvent]) -> list[StreamItem]:
    """What a stream of the task shows: the task as it is, then its events; the one that ends it with the task."""
    items: list[StreamItem] = [Snapshot(task=task)]
    for event in legal(task.state, events):
        task = fold(task, [event])
        if isinstance(event, StatusChanged) and (event.state in FINAL or event.state in INTERRUPTED):
            items.append(Ended(seq=task.last_seq, event=event, task=task))
            break
        items.append(Happened(seq=task.last_seq, event=event))
    return items


def frames_of(exchange: Exchange) -> Frames:
    """How an exchange frames a stream."""
    assert isinstance(exchange, StreamExchange)
    streaming = exchange.stream("task-1", "ctx-1")
    assert streaming.headers[b"content-type"] == b"text/event-stream"
    return streaming.frames


def parsed(raw: bytes) -> list[SseEvent]:
    """The events of some frames, each of which has its data on one line."""
    for block in raw.split(b"\n\n")[:-1]:
        names = [line.partition(b": ")[0] for line in block.split(b"\n")]
        assert names in ([b"data"], [b"id", b"data"]), block
    return SseParser().feed(raw)


def framed(frames: Frames, *items: StreamItem) -> list[Any]:
    """The data of every frame of these items."""
    return [json.loads(event.data) for item in items for event in parsed(frames(item))]


def told(task: Task, frames: Frames, *events: TaskEvent) -> list[Any]:
    """The data of every frame after the first, of a task in which these things happened."""
    first, *items = items_of(task, list(events))
    frames(first)
    return framed(frames, *items)


def holds(value: object, kind: type) -> bool:
    """Whether something of a kind can be reached from a value, modules and types aside."""
    seen: set[int] = set()
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen or isinstance(each, type | types.ModuleType | types.CodeType):
            continue
        seen.add(id(each))
        if isinstance(each, types.FunctionType):
            waiting += each.__closure__ or ()  # not its module's names
            continue
        if isinstance(each, kind):
            return True
        if isinstance(each, msgspec.Struct):
            waiting += [getattr(each, name) for name in each.__struct_fields__]
        waiting += gc.get_referents(each)
    return False
