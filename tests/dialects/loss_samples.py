"""For everything that a dialect may declare as lost: calls and tasks that have it, and next to nothing else."""

from collections.abc import Iterator

import msgspec

from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import Failure
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent, Usage
from dragoman.model.lifecycle import fold
from dragoman.model.operations import Priority, SendTask
from dragoman.model.states import TaskState
from dragoman.model.task import Task
from tests.dialects.goldens import LATER, task_of
from tests.dialects.strategies import FAULTS

OBJECT = Data(value={"a": 1})
PART_SAMPLES: dict[str, tuple[tuple[Part, ...], ...]] = {
    "part:text": ((Text(text="a"),),),
    "part:data": ((Data(value=[1]),),),
    "part:blob": ((Blob(raw=b"a"),),),
    "part:link": ((Link(url="gs://b/x"),),),
    "parts:several": ((Text(text="a"), Text(text="b")), (OBJECT, OBJECT)),
    "part:filename": ((Text(text="a", filename="f"),), (Data(value={}, filename="f"),)),
    "part:media_type": ((Text(text="a", media_type="x/y"),), (Data(value={}, media_type="x/y"),)),
    "part:metadata": ((Text(text="a", metadata={"m": 1}),), (Data(value={}, metadata={"m": 1}),)),
}
ARTIFACT = Artifact(id="result", parts=(OBJECT,))
ARTIFACT_SAMPLES: dict[str, Artifact] = {
    "artifact:id": Artifact(id="another", parts=(OBJECT,)),
    "artifact:name": Artifact(id="result", parts=(OBJECT,), name="n"),
    "artifact:description": Artifact(id="result", parts=(OBJECT,), description="d"),
    "artifact:kind": Artifact(id="result", parts=(OBJECT,), kind="report"),
    "artifact:extensions": Artifact(id="result", parts=(OBJECT,), extensions=("x",)),
    "artifact:metadata": Artifact(id="result", parts=(OBJECT,), metadata={"m": 1}),
}
MESSAGE = Message(id="m", role=Role.USER, parts=(OBJECT,))
SAID = Message(id="s", role=Role.AGENT, parts=(Text(text="a"), Text(text="b")))
CALL = SendTask(message=MESSAGE, skill="search")
CALL_SAMPLES: dict[str, SendTask] = {
    "message:id": CALL,
    "message:references": SendTask(message=msgspec.structs.replace(MESSAGE, references=("task-1",)), skill="s"),
    "message:extensions": SendTask(message=msgspec.structs.replace(MESSAGE, extensions=("x",)), skill="s"),
    "message:metadata": SendTask(message=msgspec.structs.replace(MESSAGE, metadata={"m": 1}), skill="s"),
    "task:metadata": SendTask(message=MESSAGE, skill="s", metadata={"t": 1}),
    "skill": CALL,
    "priority": SendTask(message=MESSAGE, skill="s", priority=Priority.URGENT),
    "context": SendTask(message=MESSAGE, skill="s", context_id="c"),
    "parent": SendTask(message=MESSAGE, skill="s", parent_id="p"),
    "title": SendTask(message=MESSAGE, skill="s", title="t"),
    "description": SendTask(message=MESSAGE, skill="s", description="d"),
    "accepts": SendTask(message=MESSAGE, skill="s", accepts=("text/plain",)),
    "extensions": SendTask(message=MESSAGE, skill="s", extensions=("urn:x",)),
}
# Everything at once: text of every kind, numbers that no double holds, what is empty, several of each, files.
EVERYTHING: tuple[Part, ...] = (
    Text(text="hello, wörld ✓ 🜁 \x00 \u2028"),
    Text(text=""),
    Data(value={"n": 2**53 + 1, "m": -(10**30), "": {}, "list": [2**64, 0.1, None, True, [[]]], "ü": {"a": {"b": []}}}),
    Data(value={"n": 2**63}, media_type="application/json; charset=utf-8", filename="d.json", metadata={"m": 2**70}),
    Blob(raw=b"\x00\xff", filename="ü b.bin", media_type="x/y"),
    Blob(raw=b""),
    Link(url="https://example.com/f.pdf?x=1", filename="f.pdf"),
)
RICH_CALL = SendTask(
    message=Message(
        id="m-✓",
        role=Role.TOOL,
        parts=EVERYTHING,
        references=("task-1", "task-2"),
        extensions=("urn:x",),
        metadata={"m": 2**70, "empty": {}, "deep": [{"a": None}]},
    ),
    skill="prüfen",
    context_id="ctx ✓",
    priority=Priority.URGENT,
    parent_id="p",
    title="t",
    description="d",
    accepts=("text/plain",),
    extensions=("urn:y",),
    metadata={"t": 2**70},
)
BIG_CALL = SendTask(
    message=Message(id="m", role=Role.USER, parts=(Data(value={"n": 2**53 + 1}),)), skill="s", context_id="c"
)


def rich_task() -> Task:
    """A completed task that has everything."""
    made = Artifact(
        id="a", parts=EVERYTHING, name="n", description="d", kind="report", extensions=("urn:x",), metadata={"m": 2**70}
    )
    events: list[TaskEvent] = [
        MessageAdded(at=LATER, message=Message(id="said", role=Role.AGENT, parts=EVERYTHING, metadata={"m": 1})),
        ArtifactChunk(at=LATER, artifact=made),
        ArtifactChunk(at=LATER, artifact=Artifact(id="b", parts=(Data(value=[2**53 + 1]),))),
        StatusChanged(
            at=LATER,
            state=TaskState.COMPLETED,
            message=SAID,
            usage=Usage(tokens=7, input_tokens=3, cost_usd=0.5, execution_ms=12, other={"images": 2}),
        ),
    ]
    return fold(msgspec.structs.replace(task_of({"id": "task-7"}), asked=RICH_CALL), events)


def big_task() -> Task:
    """A completed task whose one answer is a number that no double holds."""
    return _completed(ArtifactChunk(at=LATER, artifact=Artifact(id="result", parts=(Data(value={"n": 2**53 + 1}),))))


def samples_of(facet: str) -> Iterator[SendTask | Task]:
    """What has this facet; nothing at all for a word that is no facet."""
    if facet in CALL_SAMPLES:
        yield CALL_SAMPLES[facet]
    if facet.startswith("role:"):
        yield SendTask(message=msgspec.structs.replace(MESSAGE, role=Role(facet.removeprefix("role:"))), skill="s")
    for parts in PART_SAMPLES.get(facet, ()):
        yield SendTask(message=msgspec.structs.replace(MESSAGE, parts=parts), skill="s")
        yield _completed(ArtifactChunk(at=LATER, artifact=Artifact(id="result", parts=parts)))
    if facet in ARTIFACT_SAMPLES:
        yield _completed(ArtifactChunk(at=LATER, artifact=ARTIFACT_SAMPLES[facet]))
    yield from _tasks_of(facet)


def _tasks_of(facet: str) -> Iterator[Task]:
    made = ArtifactChunk(at=LATER, artifact=ARTIFACT)
    if facet.startswith("state:"):
        yield _task(TaskState(facet.removeprefix("state:")))
    match facet:
        case "artifact:kind":
            yield _completed(made)
        case "parts:none":
            yield _completed()
        case "artifacts:several":
            yield _completed(made, ArtifactChunk(at=LATER, artifact=ARTIFACT_SAMPLES["artifact:id"]))
        case "artifacts:unfinished":
            yield _task(TaskState.FAILED, made)
        case "messages":
            yield _completed(MessageAdded(at=LATER, message=SAID), made)
        case "status:message":
            yield fold(_opened(), [made, StatusChanged(at=LATER, state=TaskState.COMPLETED, message=SAID)])
        case "progress":
            yield _ended(TaskState.WORKING, progress=0.5)
        case "usage":
            yield _ended(TaskState.COMPLETED, usage=Usage(tokens=7, cost_usd=0.5))
        case "failure:code":
            for fault in FAULTS:
                yield _ended(TaskState.FAILED, failure=fault("it broke").failure())
        case _:
            pass


def _opened() -> Task:
    return msgspec.structs.replace(task_of({"id": "task-7"}), asked=CALL)


def _task(state: TaskState, *events: TaskEvent) -> Task:
    return fold(_opened(), [*events, StatusChanged(at=LATER, state=state)])


def _completed(*events: TaskEvent) -> Task:
    return _task(TaskState.COMPLETED, *events)


def _ended(
    state: TaskState, *, progress: float | None = None, usage: Usage | None = None, failure: Failure | None = None
) -> Task:
    ended = StatusChanged(at=LATER, state=state, progress=progress, usage=usage, failure=failure)
    return fold(_opened(), [ended])
