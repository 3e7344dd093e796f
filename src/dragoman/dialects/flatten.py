"""Parts and the one JSON object that some dialects know instead.

An answer of one object is that object; one text is the schema's one text property, else `{"text": …}`; anything else
is `{"parts": […]}`, each part in a shape of its own, so nothing is lost.
"""

from base64 import b64encode
from collections.abc import Mapping
from typing import assert_never

from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.fit import only_string_property
from dragoman.model.json import Json, JsonObject, is_object


def answer_object(parts: tuple[Part, ...], schema: Mapping[str, Json] | None) -> JsonObject:
    """The answer as one object; texts that follow each other are one text."""
    if not parts:
        return {}
    if len(parts) == 1 and isinstance(parts[0], Data) and is_object(parts[0].value):
        return parts[0].value
    if all(isinstance(part, Text) for part in parts):
        text = "".join(part.text for part in parts if isinstance(part, Text))
        return {only_string_property(schema, required=False) or "text": text}
    return {"parts": [plain_part(part) for part in parts]}


def plain_part(part: Part) -> JsonObject:
    """One part as a small object: kind, content, and what is known of it."""
    shown: JsonObject
    match part:
        case Text():
            shown = {"kind": "text", "text": part.text}
        case Data():
            shown = {"kind": "data", "data": part.value}
        case Blob():
            shown = {"kind": "file", "file": _file({"bytes": b64encode(part.raw).decode()}, part)}
        case Link():
            shown = {"kind": "file", "file": _file({"uri": part.url}, part)}
        case _ as never:
            assert_never(never)
    if part.metadata:
        shown["metadata"] = part.metadata
    return shown


def _file(shown: JsonObject, part: Blob | Link) -> JsonObject:
    if part.filename:
        shown["name"] = part.filename
    if part.media_type:
        shown["mimeType"] = part.media_type
    return shown
