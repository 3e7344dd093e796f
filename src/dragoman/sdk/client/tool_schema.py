"""What a tool takes: a skill's input schema as the object schema that every framework wants, and back to an input.

    a schema that says nothing              {"message": a text}    said to the agent in words
    an object                               as it is; what models' interfaces refuse at its top is left out
    anything else, or one of several        {"input": …}           with the schema inside

The hub checks every input against the skill's own schema: what is left out here is told to the model when it errs.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

import msgspec

from dragoman.model.errors import InputRefused
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.tool_inputs import IN_WORDS, MESSAGE, lacks_text
from dragoman.sdk.content import Data

INPUT: Final = "input"

_NOTES: Final = frozenset({"type", "title", "description", "examples", "$comment", "$schema", "$id"})
_LEFT_OUT: Final = frozenset({"$schema", "$id", "title", "anyOf", "oneOf", "allOf", "not", "if", "then", "else"})
_CHOICES: Final = frozenset({"anyOf", "oneOf", "allOf"})
_DEFINITIONS: Final = ("$defs", "definitions")


class Form(StrEnum):
    """What becomes of the arguments: the skill's input, what their one field holds, or words for the agent."""

    OBJECT = "object"
    INSIDE = "inside"
    WORDS = "words"


class Takes(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool takes, and how it becomes the input of its skill."""

    schema: JsonObject
    form: Form

    def given(self, arguments: Mapping[str, Json] | str | None) -> JsonObject:
        """The arguments that a model gave, as an object or as JSON, without those that are null for being left out.

        Raises InputRefused.
        """
        read = _read(arguments)
        required, properties = self.schema.get("required", ()), self.schema["properties"]
        return {
            name: value
            for name, value in read.items()
            if value is not None or name in required or name not in properties or _may_be_null(properties[name])
        }

    def content(self, given: JsonObject) -> tuple[JsonObject | None, str | Data | None]:
        """What a call says to the skill: its input or, where that is no object, a message. Raises InputRefused."""
        value: Json = given
        if self.form is Form.INSIDE:
            value = given.get(INPUT, given)
        elif self.form is Form.WORDS:
            if not given:
                raise lacks_text(MESSAGE)
            value = given.get(MESSAGE, given)  # A model that knows the agent may say what it takes all the same.
        if is_object(value):
            return value, None
        return None, value if isinstance(value, str) else Data(value)

    def inside(self) -> "Takes":
        """The same with all of it in one field, for those whose names are taken."""
        return self if self.form is not Form.OBJECT else Takes(schema=_in_a_field(self.schema), form=Form.INSIDE)


def takes_of(schema: Json) -> Takes:
    """What the tool of a skill with that input schema takes."""
    whole = _followed(schema) if is_object(schema) else {}
    kinds: Json = whole.get("type", "object")
    is_an_object = kinds == "object" or (is_array(kinds) and "object" in kinds)
    if is_an_object and not whole.keys() - _NOTES:
        return Takes(schema=IN_WORDS, form=Form.WORDS)
    properties: Json = whole.get("properties")
    if not is_an_object or not (is_object(properties) or not whole.keys() & _CHOICES):
        return Takes(schema=_in_a_field(whole), form=Form.INSIDE)
    kept = {name: value for name, value in whole.items() if name not in _LEFT_OUT}
    return Takes(
        schema={**kept, "type": "object", "properties": properties if is_object(properties) else {}}, form=Form.OBJECT
    )


def _followed(schema: JsonObject) -> JsonObject:
    """The schema that a lone reference at the top leads to."""
    reference = schema.get("$ref")
    if isinstance(reference, str):
        place, _, name = reference.removeprefix("#/").partition("/")
        definitions: Json = schema.get(place)
        found: Json = definitions.get(name) if place in _DEFINITIONS and is_object(definitions) else None
        if is_object(found):
            return {**found, place: definitions}
    return schema


def _in_a_field(schema: JsonObject) -> JsonObject:
    # References lead from the top: what they lead to stays there.
    above = {name: schema[name] for name in _DEFINITIONS if name in schema}
    inner = {name: value for name, value in schema.items() if name not in (*above, "$schema", "$id")}
    return {"type": "object", "properties": {INPUT: inner}, "required": [INPUT], **above}


def _read(arguments: Mapping[str, Json] | str | None) -> Mapping[str, Json]:
    if isinstance(arguments, str):
        try:
            read: Json = msgspec.json.decode(arguments) if arguments.strip() else {}
        except (msgspec.DecodeError, RecursionError):
            raise InputRefused("The arguments are not JSON") from None
        if not is_object(read):
            raise InputRefused("The arguments are no JSON object")
        return read
    return {} if arguments is None else arguments


def _may_be_null(kind: Json) -> bool:
    """Whether null may be meant; where the schema leaves it open, it may."""
    kinds: Json = kind.get("type") if is_object(kind) else None
    return kinds in (None, "null") or (is_array(kinds) and "null" in kinds)
