"""What an AgentVault agent tells in a stream, of what is not known yet.

Some show the whole task first, as the hub does, others only what happens from now on: what was said before is missing
there. So the end of a task, or its question, is not taken from the stream: that it came is all it says, and the task
is asked for.
"""

from datetime import datetime
from typing import final

import msgspec

from dragoman.dialects.agentvault.answers import AS
from dragoman.dialects.agentvault.content import APPEND, block_of, read_artifact, read_message
from dragoman.dialects.agentvault.turns import TURN, Turns
from dragoman.dialects.dialect import Heard, Outgoing
from dragoman.dialects.shapes import read_state
from dragoman.dialects.sse import SseEvent
from dragoman.model.content import Message, Role, Text
from dragoman.model.errors import BadAgentReply, NotSupported
from dragoman.model.events import ArtifactChunk, MessageAdded, StatusChanged, TaskEvent
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.lifecycle import history_of
from dragoman.model.news import Known
from dragoman.model.states import FINAL, INTERRUPTED

_decode = msgspec.json.Decoder().decode


@final
class AgentVaultListener:
    """Hears the stream of one task."""

    __slots__ = ("_known", "_last_seq", "_number", "_turns")

    def __init__(self, outgoing: Outgoing) -> None:
        task = outgoing.task
        self._known = Known(task)
        self._turns = Turns(msgspec.structs.replace(task, messages=history_of(task)))
        self._last_seq = task.last_seq
        self._number = 0

    def hear(self, event: SseEvent, at: datetime) -> Heard:
        """What an event says.

        Raises NotSupported where the stream has nothing more to tell, BadAgentReply for what is no JSON object.
        """
        self._number += 1
        data = _read(event)
        match event.name or "message":
            case "task_status":
                return self._news(self._status(data, at))
            case "task_message" | "message":
                return self._news(self._message(data, at))
            case "task_artifact":
                return self._news(self._artifact(data, at))
            case "error":
                words: Json = data.get("message")
                raise NotSupported(
                    f"The agent's stream broke: {words if isinstance(words, str) else 'no reason given'}"
                )
            case _:
                return self._news(None)

    def _status(self, data: JsonObject, at: datetime) -> TaskEvent:
        state, words = read_state(data.get("state")), data.get("message")
        if state in FINAL or state in INTERRUPTED:
            raise NotSupported("The agent's task has come to an end or asks: the stream need not have all of it.")
        message = None
        if isinstance(words, str) and words:
            message = Message(id=self._name(), role=Role.AGENT, parts=(Text(text=words),), at=at)
        return StatusChanged(at=at, state=state, message=message)

    def _message(self, data: JsonObject, at: datetime) -> TaskEvent | None:
        """A turn of the agent's; the caller's own, and what another hub adds to be read, are no news."""
        said: Json = data.get("message")
        if not is_object(said) or AS in block_of(said.get("metadata")):
            return None
        message = read_message(said, self._name())
        if message.role is Role.USER or not self._turns.is_new(message):
            return None
        return MessageAdded(at=at, message=message)

    def _artifact(self, data: JsonObject, at: datetime) -> TaskEvent | None:
        made: Json = data.get("artifact")
        if not is_object(made):
            return None
        append = block_of(made.get("metadata")).get(APPEND) is True
        return ArtifactChunk(at=at, artifact=read_artifact(made, self._name()), append=append, last=not append)

    def _news(self, event: TaskEvent | None) -> Heard:
        return Heard(events=tuple(self._known.news(() if event is None else (event,))), settled=False)

    def _name(self) -> str:
        """A name that nothing else of the task has."""
        return f"{TURN}{self._last_seq}-{self._number}"


def _read(event: SseEvent) -> JsonObject:
    try:
        data: Json = _decode(event.data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        data = None
    if not is_object(data):
        raise BadAgentReply("The agent sent an event that is no JSON object.", reason="invalid_response")
    return data
