"""What an agent of the directory tells in a stream: how far it is, pieces of its output, and its answer at the end."""

from datetime import datetime
from typing import final

import msgspec

from dragoman.dialects.dialect import Heard, Outgoing
from dragoman.dialects.directory.outbound import OPEN, hear
from dragoman.dialects.sse import SseEvent
from dragoman.model.content import Artifact, Data, Message, Part, Role, Text
from dragoman.model.events import ArtifactChunk, StatusChanged, TaskEvent
from dragoman.model.http import HttpReply
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.model.news import Known
from dragoman.model.objects import parts_of_object
from dragoman.model.states import TaskState

_decode = msgspec.json.Decoder().decode


@final
class DirectoryListener:
    """Hears the stream of one task."""

    __slots__ = ("_known", "_number", "_outgoing")

    def __init__(self, outgoing: Outgoing) -> None:
        self._known = Known(outgoing.task)
        self._outgoing = outgoing
        self._number = 0

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What an event says: how far the task is, or, in the words of any answer, its end. Raises BadAgentReply."""
        self._number += 1
        result = _open_result(event.data)
        if result is None:
            last = hear(self._outgoing, HttpReply(status=200, body=event.data), at)
            return msgspec.structs.replace(last, events=tuple(self._known.news(self._end(last.events))))
        return Heard(events=tuple(self._known.news(self._progress(result, at))), settled=False)

    def _end(self, events: tuple[TaskEvent, ...]) -> tuple[TaskEvent, ...]:
        """The end; an output that was told in pieces of words before is only the rest of them."""
        match events:
            case (ArtifactChunk() as chunk, StatusChanged() as done):
                words = _words_of(chunk)
                told = self._known.text_of(RESULT_ARTIFACT)
                if words is None or not told or not words.startswith(told):
                    return events
                whole = msgspec.structs.replace(chunk.artifact, parts=(Text(text=words),))
                # What it says its output is stays that, whatever the words would become by themselves.
                return (
                    msgspec.structs.replace(chunk, artifact=whole),
                    msgspec.structs.replace(done, result={"text": words}),
                )
            case _:
                return events

    def _progress(self, result: JsonObject, at: datetime) -> list[TaskEvent]:
        words, progress, output = result.get("message"), result.get("progress"), result.get("output")
        message = None
        if isinstance(words, str) and words:
            message = Message(id=f"progress-{self._number}", role=Role.AGENT, parts=(Text(text=words),), at=at)
        far = progress if isinstance(progress, int | float) and not isinstance(progress, bool) else None
        events: list[TaskEvent] = [StatusChanged(at=at, state=TaskState.WORKING, message=message, progress=far)]
        if output not in (None, {}):
            piece = Artifact(id=RESULT_ARTIFACT, parts=_pieces(output))
            events.append(ArtifactChunk(at=at, artifact=piece, append=True, last=False))
        return events


def _open_result(data: bytes) -> JsonObject | None:
    """The result of an answer that says the task goes on."""
    try:
        body: Json = _decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    result: Json = body.get("result") if is_object(body) and not body.get("error") else None
    if not is_object(result) or result.get("error"):
        return None
    return result if str(result.get("status") or "").lower().replace("-", "_") in OPEN else None


def _pieces(output: Json) -> tuple[Part, ...]:
    """A piece of an output: words where it is nothing else, so that pieces of them can be joined."""
    words = output if isinstance(output, str) else _text_of(output)
    return parts_of_object(output) if words is None else (Text(text=words),)


def _words_of(chunk: ArtifactChunk) -> str | None:
    match chunk.artifact.parts:
        case (Data(value=value),):
            return _text_of(value)
        case _:
            return None


def _text_of(output: Json) -> str | None:
    """The words of an output that is nothing else."""
    if is_object(output) and output.keys() == {"text"} and isinstance(words := output["text"], str):
        return words
    return None
