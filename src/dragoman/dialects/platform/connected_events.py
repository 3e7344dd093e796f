"""What an agent that connected to the hub tells of a call: the events of the platform's stream, and some of their own.

An agent counts what it tells, from 1 in each attempt; the number stays with what is recorded. `start` says that it
begins a call from its beginning: what an earlier attempt had made of the answer is then replaced.
"""

from datetime import datetime
from typing import Final

import msgspec

from dragoman.dialects.dialect import Heard, Outgoing
from dragoman.dialects.platform.connected_parts import read_artifact
from dragoman.dialects.platform.streams import PlatformListener
from dragoman.dialects.times import read_time
from dragoman.model.content import Message, Role, Text
from dragoman.model.events import ArtifactChunk, Logged, StatusChanged, TaskEvent
from dragoman.model.json import Json, JsonObject, is_object
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.usage import read_usage

RELEASED: Final = "released"  # the agent hands a call back that it has not begun
ASKS: Final = frozenset({"ask", "auth"})
MOST_LOGGED: Final = 100  # lines that are kept of one call
LOG_BYTES: Final = 2048  # of one line

_LEVELS: Final = frozenset({"debug", "info", "warning", "error"})
_encode = msgspec.json.Encoder().encode


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that an agent tells of a call."""

    n: int
    event: str
    data: JsonObject = {}


class ConnectedListener:
    """Hears what one agent tells of one call."""

    def __init__(self, outgoing: Outgoing) -> None:
        task = outgoing.task
        self._outgoing = outgoing
        self._platform = PlatformListener(outgoing)
        self._made = {artifact.id for artifact in task.artifacts}
        self._logged = task.logged
        self._quiet = outgoing.asked.wait is Wait.END  # nobody wants to hear that work has begun

    def hear(self, told: Told, at: datetime) -> Heard:
        """What one event says; unknown ones say nothing. Raises BadParams."""
        heard = self._heard(told.event, told.data, at)
        events = tuple([msgspec.structs.replace(event, n=told.n) for event in heard.events if _is_told(event)])
        return Heard(events=events, settled=heard.settled)

    def _heard(self, name: str, data: JsonObject, at: datetime) -> Heard:
        match name:
            case "start":
                return self._started(at)
            case "artifact":
                return self._artifact(data, at)
            case "ask" | "auth":
                return self._asked(name, data, at)
            case "usage":
                usage = read_usage(data)
                spent = StatusChanged(at=at, state=TaskState.WORKING, usage=usage)
                return _goes_on() if usage is None else _goes_on(spent)
            case "log":
                return self._log(data, at)
            case "cancelled":
                return _ends(StatusChanged(at=at, state=TaskState.CANCELED))
            case "rejected":
                why = self._message("rejected", data.get("message"), at)
                return _ends(StatusChanged(at=at, state=TaskState.REJECTED, message=why))
            case "complete" if self._made:
                return self._completed(data, at)
            case _:
                return self._platform.told(name, data, at)

    def _started(self, at: datetime) -> Heard:
        self._platform = PlatformListener(
            msgspec.structs.replace(self._outgoing, task=msgspec.structs.replace(self._outgoing.task, artifacts=()))
        )
        self._made.clear()
        if self._quiet or self._outgoing.task.state is not TaskState.SUBMITTED:
            return _goes_on()
        return _goes_on(StatusChanged(at=at, state=TaskState.WORKING))

    def _artifact(self, data: JsonObject, at: datetime) -> Heard:
        artifact = read_artifact(data)
        goes_on = data.get("append") is True and artifact.id in self._made
        self._made.add(artifact.id)
        last = data.get("last") is not False
        return _goes_on(ArtifactChunk(at=at, artifact=artifact, append=goes_on, last=last))

    def _completed(self, data: JsonObject, at: datetime) -> Heard:
        """The end of a call that made artifacts: they are its answer, or stand beside the result that it names."""
        result: Json = data.get("result")
        if result is None:
            return _ends(StatusChanged(at=at, state=TaskState.COMPLETED, usage=read_usage(data.get("usage"))))
        heard = self._platform.told("complete", data, at)
        if not is_object(result):
            return heard
        *before, last = heard.events
        if isinstance(last, StatusChanged) and last.state is TaskState.COMPLETED:
            last = msgspec.structs.replace(last, result=result)
        return _ends(*before, last)

    def _asked(self, name: str, data: JsonObject, at: datetime) -> Heard:
        state = TaskState.INPUT_REQUIRED if name == "ask" else TaskState.AUTH_REQUIRED
        words = data.get("prompt") if name == "ask" else data.get("message")
        question = self._message(f"{name}-{ask_of(data)}", words, at)
        schema: Json = data.get("schema")
        if question is not None and is_object(schema):
            question = msgspec.structs.replace(question, metadata={"schema": schema})
        return _ends(StatusChanged(at=at, state=state, message=question))

    def _log(self, data: JsonObject, at: datetime) -> Heard:
        message: Json = data.get("message")
        if self._logged >= MOST_LOGGED or not isinstance(message, str):
            return _goes_on()
        self._logged += 1
        level: Json = data.get("level")
        fields: Json = data.get("fields")
        message = message.encode("utf-8", "replace")[:LOG_BYTES].decode("utf-8", "ignore")
        room = LOG_BYTES - len(message.encode())
        line = Logged(
            at=read_time(data.get("at"), at),
            level=level if isinstance(level, str) and level in _LEVELS else "info",
            message=message,
            fields=fields if is_object(fields) and fields and len(_encode(fields)) <= room else None,
        )
        return _goes_on(line)

    def _message(self, name: str, words: Json, at: datetime) -> Message | None:
        if not isinstance(words, str) or not words:
            return None
        return Message(id=f"{self._outgoing.task.id}-{name}", role=Role.AGENT, parts=(Text(text=words),), at=at)


def ask_of(data: JsonObject) -> int | None:
    """The number of a question, where it has one."""
    number: Json = data.get("ask")
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None


def _is_told(event: TaskEvent) -> bool:
    return isinstance(event, StatusChanged | ArtifactChunk | Logged)


def _goes_on(*events: TaskEvent) -> Heard:
    return Heard(events=events, settled=False)


def _ends(*events: TaskEvent) -> Heard:
    return Heard(events=events, settled=True)
