"""What a wire can carry, and content made to fit it.

A `Feature` exists only if code branches on it. Fitting is pure: it returns parts, or says what cannot be carried.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import assert_never

import msgspec

from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.errors import ContentRefused
from dragoman.model.json import Json, JsonObject, is_object


class Feature(StrEnum):
    """What a target offers: by its dialect, narrowed by its card."""

    ANSWERS = "answers"  # the reply to a send can hold the outcome
    REPORTS = "reports"  # the agent posts its progress to the hub
    STREAM = "stream"  # send and receive events in one request
    SUBSCRIBE = "subscribe"  # events of an existing task
    GET = "get"  # poll an existing task
    CANCEL = "cancel"
    CONTINUE = "continue"  # answer its question
    PARTS = "parts"  # several parts in one message
    INLINE = "inline"  # file bytes inside


def fit_parts(parts: tuple[Part, ...], features: frozenset[Feature], *, text_only: bool) -> tuple[Part, ...]:
    """The parts as a target with these features takes them: one object, several parts, or text alone.

    Raises ContentRefused for what the wire has no place for.
    """
    if Feature.PARTS not in features:
        return (Data(value=input_object(parts, None)),)
    if text_only and len(parts) == 1 and isinstance(parts[0], Data):
        return (Text(text=_text_of(parts[0].value)),)
    if Feature.INLINE not in features and any(isinstance(part, Blob) for part in parts):
        raise ContentRefused("The target takes no files inside a message.", reason="inline_file")
    return parts


def input_object(parts: tuple[Part, ...], schema: Mapping[str, Json] | None) -> JsonObject:
    """Parts as the one input object of a skill: a lone object is it, a lone text becomes its one text property.

    Raises ContentRefused where the parts have no such form.
    """
    if len(parts) == 1:
        match parts[0]:
            case Data(value=value) if is_object(value):
                return value
            case Text(text=text):
                return _object_of_text(text, schema)
            case Data() | Blob() | Link():
                pass
            case _ as never:
                assert_never(never)
    raise ContentRefused("The skill takes one JSON object as its input.", reason="not_an_object")


def only_string_property(schema: Mapping[str, Json] | None, *, required: bool) -> str | None:
    """The name of a schema's one string property: the one required, or (for answers) the only one there is."""
    if schema is None:
        return None
    properties = schema.get("properties")
    if not is_object(properties):
        return None
    wanted: Json = schema.get("required", []) if required else list(properties)
    names = [name for name in wanted if is_object(kind := properties.get(name)) and kind.get("type") == "string"]
    return names[0] if len(names) == 1 else None


def _text_of(value: Json) -> str:
    """A JSON value as text: the value of a lone text property, else the JSON itself."""
    if is_object(value) and len(value) == 1:
        (only,) = value.values()
        if isinstance(only, str):
            return only
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _object_of_text(text: str, schema: Mapping[str, Json] | None) -> JsonObject:
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=JsonObject)
        except (msgspec.DecodeError, RecursionError):
            pass  # Text that only looks like JSON is text.
    return {only_string_property(schema, required=True) or "text": text}
