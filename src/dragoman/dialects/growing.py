"""Where the answer of a streamed task is: in artifacts, or in no more than the words of its status.

Words of a status are progress at first. Once they grow, each text beginning with the one before, they are the answer,
and are passed on as the artifact `result`, only what is new each time. An artifact that comes after all takes the place
of those words instead of standing beside them. Where words never grew, and nothing else was made or said, the last of
them are the answer.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final, final

import msgspec

from dragoman.model.content import Artifact, Message, Part, Role, Text
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.news import Known
from dragoman.model.states import TaskState

_ANSWERING: Final = frozenset({TaskState.WORKING, TaskState.COMPLETED})  # in other states words are no answer


@final
class Answer:
    """What is known of one task's answer."""

    __slots__ = ("_grows", "_known", "_last", "_made", "_repeated", "_repeats", "_spoken", "_words")

    def __init__(self, known: Known, artifacts: tuple[Artifact, ...], said: Message | None) -> None:
        self._known = known
        self._words = _words_of(said)
        own = known.text_of(RESULT_ARTIFACT) if len(artifacts) == 1 else None
        # A stream that is taken up again goes on as the first one did.
        self._grows = bool(self._words and own and own.startswith(self._words))
        self._made = not self._grows and any(not _says_nothing(each.parts) for each in artifacts)
        self._repeats: str | None = None  # the artifact that takes the place of the words
        self._repeated: str | None = ""  # and its own so far; None once it has more than words
        self._last: Message | None = None  # the last words of a status
        self._spoken: Message | None = None  # the last message

    def folded(self, event: TaskEvent) -> Sequence[TaskEvent]:
        """The event, or what it comes to beside what was told before."""
        if isinstance(event, ArtifactChunk):
            return self._artifact(event)
        if isinstance(event, StatusChanged):
            return self._status(event)
        if isinstance(event, MessageAdded) and not _says_nothing(event.message.parts):
            self._spoken = event.message
        return (event,)

    def _artifact(self, chunk: ArtifactChunk) -> Sequence[TaskEvent]:
        if not _says_nothing(chunk.artifact.parts):
            self._made = True
        if not self._grows:
            return (chunk,)
        artifact = chunk.artifact
        if self._repeats is None:
            self._repeats = artifact.id
        elif self._repeats != artifact.id:
            return (chunk,)
        words = _only_words(artifact.parts)
        if words is None or self._repeated is None:
            self._repeated = None
            return (msgspec.structs.replace(chunk, artifact=_renamed(artifact)),)
        self._repeated = self._repeated + words if chunk.append else words
        if not chunk.last and (self._known.text_of(RESULT_ARTIFACT) or "").startswith(self._repeated):
            return ()
        whole = msgspec.structs.replace(_renamed(artifact), parts=(Text(text=self._repeated),))
        return (msgspec.structs.replace(chunk, artifact=whole, append=False),)

    def _status(self, moved: StatusChanged) -> Sequence[TaskEvent]:
        message = moved.message
        words = _words_of(message)
        ends = moved.state is TaskState.COMPLETED
        if self._made or moved.state not in _ANSWERING:
            return (moved,)
        if message is None or message.role is Role.USER or _says_nothing(message.parts):
            found = self._spoken or (None if self._grows else self._last)
            if ends and found is not None:
                return (_result(found.parts, moved.at, last=True), moved)
            return (moved,)
        before, self._words, self._last = self._words, words, message
        if _only_words(message.parts) is None:
            return (moved,)
        self._grows = self._grows or (0 < len(before) < len(words) and words.startswith(before))
        if not self._grows:
            return (moved,)
        if not ends:
            moved = msgspec.structs.replace(moved, message=None)
        return (_result((Text(text=words),), moved.at, last=ends), moved)


def _result(parts: tuple[Part, ...], at: datetime, *, last: bool) -> ArtifactChunk:
    return ArtifactChunk(
        at=at, artifact=Artifact(id=RESULT_ARTIFACT, name=RESULT_ARTIFACT, parts=parts), append=False, last=last
    )


def _renamed(artifact: Artifact) -> Artifact:
    return msgspec.structs.replace(artifact, id=RESULT_ARTIFACT)


def _words_of(message: Message | None) -> str:
    return "" if message is None else "".join([part.text for part in message.parts if isinstance(part, Text)])


def _only_words(parts: Sequence[Part]) -> str | None:
    words = [part.text for part in parts if isinstance(part, Text)]
    return "".join(words) if len(words) == len(parts) else None


def _says_nothing(parts: Sequence[Part]) -> bool:
    return all(isinstance(part, Text) and not part.text for part in parts)
