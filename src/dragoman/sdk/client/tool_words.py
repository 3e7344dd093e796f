"""What comes of a tool, in words for a model: its result as text, its failure with what can be done about it."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from dragoman.model.errors import (
    AgentNotFound,
    AgentTimeout,
    AgentUnavailable,
    BadRequest,
    CallLoop,
    DragomanError,
    NotAuthenticated,
    NotAuthorized,
    Overloaded,
    RateLimited,
    SkillNotFound,
)
from dragoman.model.json import Json, is_array, is_object
from dragoman.sdk.client.results import CallResult, parts_of_result
from dragoman.sdk.content import Data, File, Part, Text
from dragoman.sdk.errors import HubUnreachable, InputRequired

MOST_CHARACTERS: Final = 256 * 1024  # of one result
MOST_FAULTS: Final = 10  # that are told of one input
NOTHING: Final = "Done. There is nothing to show for it."


def value_of(result: CallResult) -> Json:
    """What a tool gives: text where the result is text, one value where it is one, None for nothing, else all of it."""
    parts = parts_of_result(result)
    if not parts:
        return None
    if all(isinstance(part, Text) for part in parts):
        return "".join(part.text for part in parts if isinstance(part, Text))
    if len(parts) == 1 and isinstance(parts[0], Data) and not is_object(parts[0].value):
        return parts[0].value
    return result


def words_of(value: Json) -> str:
    """The same for a model: text as it is, files by their names, everything else as JSON."""
    if value is None:
        return NOTHING
    parts = parts_of_result(value) if isinstance(value, CallResult) else (Data(value),)
    words = value if isinstance(value, str) else "\n".join(map(_words_of_part, parts))
    return words if len(words) <= MOST_CHARACTERS else f"{words[:MOST_CHARACTERS]}… (cut)"


def words_of_error(error: DragomanError) -> str:
    """What went wrong and what a model can do about it: `RATE_LIMITED: Too many calls. Try again in 5 s, …`."""
    said = [error.message.strip(), *_faults(error)]
    return " ".join((f"{error.code}:", *map(_sentence, said), _next_step(error)))


def _words_of_part(part: Part) -> str:
    match part:
        case Text(text=text):
            return text
        case Data(value=value):
            return msgspec.json.encode(value).decode()
        case File():
            facts = [part.name, part.mime_type, part.uri or f"{len(part.bytes or b'')} bytes"]
            return f"[file: {', '.join(fact for fact in facts if fact)}]"


def _faults(error: DragomanError) -> list[str]:
    """Each failing place of an input, where the message does not name it already."""
    told: Json = error.details.get("errors")
    faults = [each for each in told if is_object(each)] if is_array(told) else []
    shown = [f"{each.get('path', 'input')}: {each.get('message', 'wrong')}" for each in faults[:MOST_FAULTS]]
    return [each for each in shown if each not in error.message]


def _sentence(said: str) -> str:
    return said if said.endswith((".", "!", "?")) else f"{said}."


def _later(error: DragomanError) -> str:
    wait_s = error.retry_after_s
    return f"Try again in {wait_s} s, or use another tool." if wait_s else "Try again later, or use another tool."


# The first of these that an error is says what is next.
_NEXT: Final[Mapping[type[DragomanError], Callable[[DragomanError], str]]] = {
    InputRequired: lambda error: "Call this tool again with the answer among its arguments; ask the user if need be.",
    BadRequest: lambda error: "Correct the arguments and call again.",
    NotAuthenticated: lambda error: "This tool cannot be used; use another one.",
    NotAuthorized: lambda error: "This tool may not be used; use another one.",
    AgentNotFound: lambda error: "This tool is gone; use another one.",
    SkillNotFound: lambda error: "This tool is gone; use another one.",
    RateLimited: _later,
    Overloaded: _later,
    AgentUnavailable: _later,
    AgentTimeout: lambda error: "Ask for less at once, or use another tool.",
    CallLoop: lambda error: "That agent already waits for this answer; do it without this tool.",
    HubUnreachable: lambda error: "No tool works until that is mended; say so.",
}


def _next_step(error: DragomanError) -> str:
    for error_class, next_step in _NEXT.items():
        if isinstance(error, error_class):
            return next_step(error)
    return "Trying again may help." if error.retryable else "Do not repeat this call; use another tool or say so."
