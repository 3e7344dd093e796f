"""What is left of a call when what was written in it is removed: ids, times and states, no word of people or agents.

Where it was told of goes, too: an address may say as much as words. Names of skills and agents stay, as do numbers.
"""

from datetime import datetime
from typing import assert_never

import msgspec

from dragoman.model.content import Artifact, Message
from dragoman.model.errors import Failure
from dragoman.model.events import ArtifactChunk, Logged, MessageAdded, Sent, StatusChanged, TaskEvent, Usage, Watched
from dragoman.model.operations import SendTask, Step
from dragoman.model.task import Task


def forgotten_task(task: Task, at: datetime) -> Task:
    """The task without what was written in it, noted as such."""
    return msgspec.structs.replace(
        task,
        asked=_asked(task.asked),
        messages=tuple(_message(each) for each in task.messages),
        artifacts=tuple(_artifact(each) for each in task.artifacts),
        result=None,
        status_message=None,
        failure=_failure(task.failure),
        usage=_usage(task.usage),
        callbacks=(),
        forgotten_at=at,
    )


def forgotten_event(event: TaskEvent) -> TaskEvent:
    """The event without what was written in it."""
    match event:
        case StatusChanged():
            return msgspec.structs.replace(
                event, message=None, failure=_failure(event.failure), usage=_usage(event.usage), result=None,
                metadata=None,
            )  # fmt: skip
        case MessageAdded():
            return msgspec.structs.replace(event, message=_message(event.message), metadata=None)
        case ArtifactChunk():
            return msgspec.structs.replace(event, artifact=_artifact(event.artifact), metadata=None)
        case Watched():
            return msgspec.structs.replace(event, callbacks=(), metadata=None)
        case Logged():
            return msgspec.structs.replace(event, message="", fields=None, metadata=None)
        case Sent():
            return msgspec.structs.replace(event, metadata=None)
        case _:
            assert_never(event)


def _asked(asked: SendTask) -> SendTask:
    return msgspec.structs.replace(
        asked,
        message=_message(asked.message),
        callback=None,
        then=tuple(_steps(each) for each in asked.then),
        title=None,
        description=None,
        metadata=None,
        signature=None,
    )


def _steps(step: Step | tuple[Step, ...]) -> Step | tuple[Step, ...]:
    if isinstance(step, tuple):
        return tuple(msgspec.structs.replace(each, input=None) for each in step)
    return msgspec.structs.replace(step, input=None)


def _message(message: Message) -> Message:
    return Message(id=message.id, role=message.role, parts=(), at=message.at, references=message.references)


def _artifact(artifact: Artifact) -> Artifact:
    return Artifact(id=artifact.id, parts=())


def _failure(failure: Failure | None) -> Failure | None:
    """Its code alone: the words may be an agent's, and quote what it was sent."""
    return None if failure is None else Failure(code=failure.code, message="", retryable=failure.retryable)


def _usage(usage: Usage | None) -> Usage | None:
    return None if usage is None else msgspec.structs.replace(usage, other=None)
