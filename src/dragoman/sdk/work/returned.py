"""What a handler returns or yields, as what its caller gets.

    str, Text                       text                dict, list, number, bool, Struct, dataclass, model   data
    File, Data, a list of parts     those parts         None, RunResult                    nothing; its content

One text or one value is the call's `result`; files, or several parts, are the artifact `result`.
"""

import sys
from collections.abc import Sequence
from typing import Final

import msgspec

from dragoman.model.errors import AgentError
from dragoman.model.json import Json, JsonObject
from dragoman.model.lifecycle import RESULT_ARTIFACT
from dragoman.sdk.agent.schema import to_json
from dragoman.sdk.content import Data, File, Message, Part, Text, part_to_wire

PARTS_ARTIFACT: Final = "parts"  # what stands beside words that were streamed, which are `result`


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a call ends with: a result, else parts (of which there may be none)."""

    result: Json = None
    parts: tuple[Part, ...] = ()


def parts_of(value: object) -> tuple[Part, ...]:
    """The parts that a value stands for. Raises AgentError for one that has no JSON form."""
    value = _content(value)
    if value is None:
        return ()
    if isinstance(value, Message):
        return value.parts
    listed = _listed(value)
    if listed is not None and any(isinstance(each, Text | Data | File) for each in listed):
        return tuple(_part(each) for each in listed)
    return (_part(value),)


def answer_of(value: object) -> Answer:
    """What a call that returned this ends with. Raises AgentError for a value that has no JSON form."""
    parts = parts_of(value)
    match parts:
        case (Text(text=text, metadata=None),):
            return Answer(result=text)
        # As a result a text would be words, and nothing would be no result at all.
        case (Data(value=data, metadata=None),) if data is not None and not isinstance(data, str):
            return Answer(result=data)
        case _:
            return Answer(parts=parts)


def artifact_data(
    parts: Sequence[Part],
    *,
    id: str = RESULT_ARTIFACT,
    name: str | None = None,
    description: str | None = None,
    mime_type: str | None = None,
    metadata: JsonObject | None = None,
    append: bool = False,
    last: bool = True,
) -> JsonObject:
    """An `artifact` event's data."""
    shown: JsonObject = {"id": id, "parts": [part_to_wire(part) for part in parts], "append": append, "last": last}
    said = {"name": name, "description": description, "mime_type": mime_type, "metadata": metadata}
    return shown | {name: value for name, value in said.items() if value}


def _part(value: object) -> Part:
    match _content(value):
        case Text() | File() as part:
            return part
        case Data(value=inner, metadata=metadata):
            return Data(_json(inner), metadata)
        case str(text):
            return Text(text)
        case other:
            return Data(_json(other))


def _json(value: object) -> Json:
    try:
        return to_json(value)
    except (TypeError, ValueError, RecursionError):
        raise AgentError(f"The agent returned a {type(value).__name__}, which has no JSON form.") from None


def _listed(value: object) -> Sequence[object] | None:
    return value if isinstance(value, list | tuple) else None  # pyright: ignore[reportUnknownVariableType] - of whatever


def _content(value: object) -> object:
    """A model's answer is its words; it can be one only if the file that makes them was imported."""
    made = getattr(sys.modules.get("dragoman.sdk.run.run"), "RunResult", None)
    if isinstance(made, type) and isinstance(value, made):
        return getattr(value, "content", None)
    return value
