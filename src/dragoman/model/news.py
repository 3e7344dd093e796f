"""What is new in what an agent tells: it may tell a whole task again and again, and each time more of it.

`Known` remembers what was told. An artifact told again as it was is no news, one that only grew is the rest of it, any
other takes the place of the old; a message is news once, a state when it, its words or its progress changed.
"""

from collections.abc import Iterable, Sequence
from typing import final

import msgspec

from dragoman.model.content import Artifact, Message, Part, Text
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.states import FINAL, TaskState
from dragoman.model.task import Task


@final
class Known:
    """What is known of a task, while further news of it come in."""

    __slots__ = ("_artifacts", "_messages", "_progress", "_state", "_words")

    def __init__(self, task: Task) -> None:
        self._artifacts = {each.id: list(each.parts) for each in task.artifacts}
        self._messages = {(each.id, each.role) for each in (task.asked.message, *task.messages)}
        self._state: TaskState = task.state
        self._words = _words_of(task.status_message)
        self._progress: float | None = task.progress

    def news(self, events: Iterable[TaskEvent]) -> list[TaskEvent]:
        """Those of the events, or parts of them, that tell something new; they are known from now on."""
        found: list[TaskEvent] = []
        for event in events:
            fresh = self._fresh(event)
            if fresh is not None:
                found.append(fresh)
        return found

    def text_of(self, artifact_id: str) -> str | None:
        """The words of an artifact so far, if it is known and has nothing but words."""
        parts = self._artifacts.get(artifact_id)
        return None if parts is None else _only_text(parts)

    def _fresh(self, event: TaskEvent) -> TaskEvent | None:
        if isinstance(event, ArtifactChunk):
            return self._fresh_chunk(event)
        if isinstance(event, MessageAdded):
            name = (event.message.id, event.message.role)
            if name in self._messages:
                return None
            self._messages.add(name)
            return event
        return self._fresh_status(event) if isinstance(event, StatusChanged) else event

    def _fresh_chunk(self, event: ArtifactChunk) -> ArtifactChunk | None:
        artifact = event.artifact
        known = self._artifacts.get(artifact.id)
        if known is None:
            # The first piece makes the artifact, even where it says that it goes on with one.
            self._artifacts[artifact.id] = list(artifact.parts)
            return msgspec.structs.replace(event, append=False) if event.append else event
        if event.append:
            known += artifact.parts
            return event
        rest = _rest(known, artifact.parts)
        self._artifacts[artifact.id] = list(artifact.parts)
        if rest is None:
            return event
        if not rest:
            return None
        return msgspec.structs.replace(event, artifact=Artifact(id=artifact.id, parts=rest), append=True)

    def _fresh_status(self, event: StatusChanged) -> StatusChanged | None:
        words = _words_of(event.message)
        same_words = not words or words == self._words
        same_progress = event.progress is None or event.progress == self._progress
        if event.state is self._state and event.state not in FINAL and same_words and same_progress:
            return None
        if event.state is TaskState.SUBMITTED:
            return None  # Every task begins so.
        self._state = event.state
        self._words = words or self._words
        self._progress = event.progress if event.progress is not None else self._progress
        return event


def _rest(known: Sequence[Part], told: Sequence[Part]) -> tuple[Part, ...] | None:
    """What `told` has beyond what is known; None where it does not begin with that."""
    if tuple(told[: len(known)]) == tuple(known):
        return tuple(told[len(known) :])
    before, now = _only_text(known), _only_text(told)
    if before is None or now is None or not now.startswith(before):
        return None
    return (Text(text=now[len(before) :]),) if len(now) > len(before) else ()


def _only_text(parts: Sequence[Part]) -> str | None:
    words: list[str] = []
    for part in parts:
        if not isinstance(part, Text):
            return None
        words.append(part.text)
    return "".join(words)


def _words_of(message: Message | None) -> str:
    return "" if message is None else "".join(part.text for part in message.parts if isinstance(part, Text))


def coalesced(events: Sequence[TaskEvent]) -> Sequence[TaskEvent]:
    """The same with pieces of words that follow each other in one artifact as one piece."""
    if len(events) < 2:
        return events
    joined: list[TaskEvent] = []
    for event in events:
        before = joined[-1] if joined else None
        if isinstance(event, ArtifactChunk) and isinstance(before, ArtifactChunk) and _go_together(before, event):
            first, second = before.artifact.parts[0], event.artifact.parts[0]
            text = first.text + second.text if isinstance(first, Text) and isinstance(second, Text) else ""
            artifact = msgspec.structs.replace(before.artifact, parts=(Text(text=text),))
            joined[-1] = msgspec.structs.replace(before, artifact=artifact, last=event.last, n=event.n)
        else:
            joined.append(event)
    return joined


def _go_together(first: ArtifactChunk, second: ArtifactChunk) -> bool:
    """Whether a piece only goes on with the words of the one before."""
    return (
        second.append
        and first.artifact.id == second.artifact.id
        and first.metadata is None
        and second.metadata is None
        and _is_plain_text(first.artifact.parts)
        and _is_plain_text(second.artifact.parts)
    )


def _is_plain_text(parts: Sequence[Part]) -> bool:
    return len(parts) == 1 and isinstance(parts[0], Text) and parts[0] == Text(text=parts[0].text)
