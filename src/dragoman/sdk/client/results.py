"""What a caller gets: the result of a call, the events of a stream, how a call stands, an agent that was found."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.objects import PARTS, read_plain_part
from dragoman.model.steps import as_object
from dragoman.sdk.content import Artifact, Data, Part, Text, from_model
from dragoman.sdk.errors import CallCancelled, error_of_reply

EventType = Literal["start", "progress", "chunk", "complete"]


class CallResult(dict[str, Any]):
    """The result of a call, a dict like any other, with what else is known of the call as attributes."""

    def __init__(self, result: JsonObject, answer: JsonObject) -> None:
        """Keep the result; `answer` is all that the hub said of the call."""
        super().__init__(result)
        self.id: str = str(answer.get("call_id") or answer.get("id") or "")
        self.usage: JsonObject = _object(answer, "usage")
        self.timing: JsonObject = _object(answer, "timing")
        self.trace: JsonObject = _object(answer, "trace")

    @property
    def text(self) -> str:
        """Its words: those of its text parts, or its one value where that is text; else nothing."""
        if len(self) == 1 and isinstance(value := next(iter(self.values())), str):
            return value
        return "".join(part.text for part in parts_of_result(self) if isinstance(part, Text))

    @property
    def data(self) -> Json:
        """Its value: what the skill returned where that was a list, a number or the like; else the result itself."""
        return next((part.value for part in parts_of_result(self) if isinstance(part, Data)), None)

    @property
    def artifacts(self) -> tuple[Artifact, ...]:
        """What the agent made, in parts: files as files, text as text."""
        parts = parts_of_result(self)
        return (Artifact(id="result", parts=parts),) if parts else ()


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened in a call."""

    type: EventType
    call_id: str
    seq: int = 0  # its number in the call
    content: str = ""  # of a chunk: a piece of text
    progress: float | None = None  # of progress: from 0 to 1
    message: str | None = None  # of progress: what the agent says
    result: CallResult | None = None  # of complete


class CallStatus(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a call stands."""

    call_id: str
    status: str
    progress: float | None = None
    message: str | None = None
    awaiting: str | None = None  # "input" or "auth", where the agent asked for it
    timing: JsonObject = {}
    usage: JsonObject = {}
    trace: JsonObject = {}

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.status in ("completed", "failed", "cancelled")


class FoundAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An agent as a search shows it."""

    id: str
    name: str = ""
    skills: list[str] = []
    rating: float = 0.0
    response_time_p95_ms: int = 0
    availability: float = 0.0
    dialect: str = ""
    status: str = ""


def result_of_answer(status: int, headers: Mapping[str, str], answer: Json) -> CallResult:
    """The result of an ended call. Raises what it failed with."""
    if 200 <= status < 300 and is_object(answer):
        match answer.get("status"):
            case "completed":
                return completed(answer.get("result"), answer)
            case "cancelled":
                raise cancelled(answer)
            case _:
                pass
    raise error_of_reply(status, headers, answer)


def completed(result: Json, answer: JsonObject) -> CallResult:
    """A result, with what is known of its call."""
    return CallResult({} if result is None else as_object(result), answer)


def cancelled(answer: JsonObject) -> CallCancelled:
    """The end of a call that was cancelled."""
    error = CallCancelled()
    error.call_id = str(answer.get("call_id") or answer.get("id") or "") or None
    trace_id = _object(answer, "trace").get("trace_id")
    error.trace_id = str(trace_id) if trace_id else None
    return error


def status_of_answer(answer: JsonObject) -> CallStatus:
    """How a call stands, by the answer to a poll."""
    return msgspec.convert(answer, CallStatus)


def parts_of_result(result: JsonObject) -> tuple[Part, ...]:
    """A result as parts: the parts it lists, its lone text, or itself."""
    if not result:
        return ()
    if result.keys() == {"text"} and isinstance(result["text"], str):
        return (Text(result["text"]),)
    listed = result[PARTS] if result.keys() == {PARTS} else None
    parts = [read_plain_part(part) for part in listed] if is_array(listed) else [None]
    known = [part for part in parts if part is not None]
    return from_model(known) if len(known) == len(parts) else (Data(dict(result)),)


def _object(answer: JsonObject, name: str) -> JsonObject:
    value: Json = answer.get(name)
    return value if is_object(value) else {}
