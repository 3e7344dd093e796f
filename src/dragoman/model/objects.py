"""Parts, and the one JSON object that some dialects know instead: each way, without loss.

To an object: a lone object is itself; texts are the schema's one text property, else `{"text": …}`; anything else is
`{"parts": […]}`, each part in a plain shape of its own. Back: an object is one data part, save one that holds files.
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, assert_never

import msgspec

from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.json import Json, JsonObject, is_array, is_object

PARTS: Final = "parts"


def input_object(parts: tuple[Part, ...], schema: Mapping[str, Json] | None) -> JsonObject:
    """Parts as the one input object of a skill; a lone text is the object it is the JSON of, where it is that."""
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
    return {PARTS: [plain_part(part) for part in parts]}


def answer_object(parts: tuple[Part, ...], schema: Mapping[str, Json] | None) -> JsonObject:
    """An answer as one object; texts that follow each other are one text."""
    if not parts:
        return {}
    if len(parts) == 1 and isinstance(parts[0], Data) and is_object(parts[0].value):
        return parts[0].value
    if all(isinstance(part, Text) for part in parts):
        text = "".join(part.text for part in parts if isinstance(part, Text))
        return {only_string_property(schema, required=False) or "text": text}
    return {PARTS: [plain_part(part) for part in parts]}


def parts_of_object(value: Json) -> tuple[Part, ...]:
    """An input or answer object as parts: the parts it lists, if a file is among them, else the object itself.

    Only with a file: that is the one form which becomes the same object again on the way to a target of this kind.
    """
    if is_object(value) and len(value) == 1 and is_array(listed := value.get(PARTS)):
        parts = [read_plain_part(part) for part in listed]
        if any(isinstance(part, Blob | Link) for part in parts) and None not in parts:
            return tuple(part for part in parts if part is not None)
    return (Data(value=value),)


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


def read_plain_part(value: Json) -> Part | None:
    """The part that `plain_part` shows like this; None for any other shape."""
    if not is_object(value) or not value.keys() <= _PART_MEMBERS:
        return None
    metadata: Json = value.get("metadata")
    if metadata is not None and not (is_object(metadata) and metadata):
        return None
    match value.get("kind"), value:
        case "text", {"text": str(text)} if "data" not in value and "file" not in value:
            return Text(text=text, metadata=metadata)
        case "data", {"data": data} if "text" not in value and "file" not in value:
            return Data(value=data, metadata=metadata)
        case "file", {"file": file} if "text" not in value and "data" not in value and is_object(file):
            return _read_file(file, metadata)
        case _:
            return None


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


_PART_MEMBERS: Final = frozenset({"kind", "text", "data", "file", "metadata"})
_FILE_MEMBERS: Final = frozenset({"bytes", "uri", "name", "mimeType"})


def _file(shown: JsonObject, part: Blob | Link) -> JsonObject:
    if part.filename:
        shown["name"] = part.filename
    if part.media_type:
        shown["mimeType"] = part.media_type
    return shown


def _read_file(file: JsonObject, metadata: JsonObject | None) -> Part | None:
    name, media_type = file.get("name"), file.get("mimeType")
    texts = all(isinstance(value, str) and (value or member == "bytes") for member, value in file.items())
    if not texts or not file.keys() <= _FILE_MEMBERS or ("bytes" in file) == ("uri" in file):
        return None
    if "uri" in file:
        return Link(url=file["uri"], filename=name, media_type=media_type, metadata=metadata)
    try:
        raw = b64decode(file["bytes"], validate=True)
    except (binascii.Error, ValueError):
        return None
    return Blob(raw=raw, filename=name, media_type=media_type, metadata=metadata)


def _object_of_text(text: str, schema: Mapping[str, Json] | None) -> JsonObject:
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=JsonObject)
        except (msgspec.DecodeError, RecursionError):
            pass  # Text that only looks like JSON is text.
    return {only_string_property(schema, required=True) or "text": text}
