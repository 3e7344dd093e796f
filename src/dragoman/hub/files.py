"""Files that lie inside tasks, offered by link to those whose dialect takes no file inside a message."""

from typing import Final

import msgspec

from dragoman.model.answers import Accepted, Answer, TaskPage
from dragoman.model.content import Artifact, Blob, Message, Part
from dragoman.model.events import ArtifactChunk, Happened, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.fit import Host, hosted
from dragoman.model.lifecycle import history_of
from dragoman.model.task import Ended, Snapshot, StreamItem, Task
from dragoman.ports.clock import Clock
from dragoman.security.file_links import FileLinks, HostedFile

EVENT: Final = "event "  # how a link names an event that holds a file, by its number


class Files:
    """Hosts the files of tasks."""

    def __init__(self, links: FileLinks, clock: Clock) -> None:
        self._links = links
        self._clock = clock

    def host(self, tenant: str, task_id: str, holder: str) -> Host:
        """How the files of one message or artifact get their addresses."""

        def link(index: int, _: Blob) -> str:
            return self._links.link(HostedFile(tenant, task_id, holder, index), self._clock.now().timestamp())

        return link

    def linked(self, answer: Answer) -> Answer:
        """The same answer with a link in place of every file."""
        if isinstance(answer, Task):
            return self._task(answer)
        if isinstance(answer, Accepted):
            return msgspec.structs.replace(answer, task=self._task(answer.task))
        if isinstance(answer, TaskPage):
            return msgspec.structs.replace(answer, tasks=tuple(self._task(task) for task in answer.tasks))
        return answer

    def linked_item(self, tenant: str, task_id: str, item: StreamItem) -> StreamItem:
        """The same item of a stream with a link in place of every file."""
        if isinstance(item, Snapshot):
            return Snapshot(task=self._task(item.task))
        host = self.host(tenant, task_id, f"{EVENT}{item.seq}")
        event = hosted_event(item.event, host)
        if isinstance(item, Happened):
            return item if event is item.event else Happened(seq=item.seq, event=event)
        ended = event if isinstance(event, StatusChanged) else item.event
        return Ended(seq=item.seq, event=ended, task=self._task(item.task))

    def _task(self, task: Task) -> Task:
        asked = self._message(task, task.asked.message)
        words = None if task.status_message is None else self._message(task, task.status_message)
        messages = tuple(self._message(task, message) for message in task.messages)
        artifacts = tuple(self._artifact(task, artifact) for artifact in task.artifacts)
        return msgspec.structs.replace(
            task,
            asked=msgspec.structs.replace(task.asked, message=asked),
            status_message=words,
            messages=messages,
            artifacts=artifacts,
        )

    def _message(self, task: Task, message: Message) -> Message:
        parts = hosted(message.parts, self.host(task.tenant, task.id, message.id))
        return message if parts is message.parts else msgspec.structs.replace(message, parts=parts)

    def _artifact(self, task: Task, artifact: Artifact) -> Artifact:
        parts = hosted(artifact.parts, self.host(task.tenant, task.id, artifact.id))
        return artifact if parts is artifact.parts else msgspec.structs.replace(artifact, parts=parts)


def hosted_event(event: TaskEvent, host: Host) -> TaskEvent:
    """The same event with a link in place of every file; the very same where there is none."""
    if isinstance(event, ArtifactChunk):
        parts = hosted(event.artifact.parts, host)
        if parts is not event.artifact.parts:
            return msgspec.structs.replace(event, artifact=msgspec.structs.replace(event.artifact, parts=parts))
    elif isinstance(event, StatusChanged | MessageAdded) and event.message is not None:
        parts = hosted(event.message.parts, host)
        if parts is not event.message.parts:
            return msgspec.structs.replace(event, message=msgspec.structs.replace(event.message, parts=parts))
    return event


def event_of(file: HostedFile) -> int | None:
    """The number of the event in which a link's file lies, where it lies in one and not in the task."""
    number = file.holder.removeprefix(EVENT)
    return int(number) if file.holder.startswith(EVENT) and number.isdigit() else None


def part_in(event: TaskEvent, index: int) -> Part | None:
    """A part of what an event brought."""
    parts: tuple[Part, ...] = ()
    if isinstance(event, ArtifactChunk):
        parts = event.artifact.parts
    elif isinstance(event, StatusChanged | MessageAdded) and event.message is not None:
        parts = event.message.parts
    return parts[index] if 0 <= index < len(parts) else None


def part_at(task: Task, file: HostedFile) -> Part | None:
    """The part of a task that a link names."""
    words = () if task.status_message is None else (task.status_message,)
    for holder in (*task.artifacts, *history_of(task), *words):
        if holder.id == file.holder and 0 <= file.index < len(holder.parts):
            return holder.parts[file.index]
    return None
