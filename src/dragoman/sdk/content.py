"""What agents and callers say to each other, as handlers see it: text, data, files, and messages made of them.

Each has one JSON form, the one that travels between a hub and an agent that connected to it:

    {"text": "…"} | {"data": any} | {"file": {"name"?, "mime_type"?, "bytes": base64 | "uri": "…"}}   + "metadata"?
"""

import binascii
import builtins
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Final, Literal, assert_never

import msgspec

from dragoman.model import content as model
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_array, is_object
from dragoman.model.objects import parts_of_object

Speaker = Literal["user", "agent"]

_SHOWN: Final = 40  # how much of a text is shown where a part is printed


class Text(msgspec.Struct, frozen=True, omit_defaults=True):
    """Plain text."""

    text: str
    metadata: JsonObject | None = None


class Data(msgspec.Struct, frozen=True, omit_defaults=True):
    """Any JSON value."""

    value: Json
    metadata: JsonObject | None = None


class File(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file: its bytes, or the address where it is."""

    bytes: builtins.bytes | None = None
    uri: str | None = None
    name: str | None = None
    mime_type: str | None = None
    metadata: JsonObject | None = None

    def __post_init__(self) -> None:
        if (self.bytes is None) == (self.uri is None):
            raise ValueError("A File has either bytes= or uri=.")

    def __repr__(self) -> str:
        held = f"uri={self.uri!r}" if self.bytes is None else f"bytes=<{len(self.bytes)} bytes>"
        named = "".join(
            f", {key}={value!r}" for key, value in (("name", self.name), ("mime_type", self.mime_type)) if value
        )
        return f"File({held}{named})"


Part = Text | Data | File


class Message(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One turn of a conversation."""

    id: str = ""
    role: Speaker = "user"
    parts: tuple[Part, ...] = ()
    metadata: JsonObject | None = None

    @property
    def text(self) -> str:
        """Its words, those of several parts line by line."""
        return "\n".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def data(self) -> Json:
        """The value of its first data part, else None."""
        return next((part.value for part in self.parts if isinstance(part, Data)), None)

    @property
    def files(self) -> tuple[File, ...]:
        """Its files."""
        return tuple(part for part in self.parts if isinstance(part, File))


class Artifact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that an agent made."""

    id: str
    parts: tuple[Part, ...] = ()
    name: str | None = None
    description: str | None = None
    mime_type: str | None = None
    metadata: JsonObject | None = None

    @property
    def text(self) -> str:
        """Its words, put together as they came."""
        return "".join(part.text for part in self.parts if isinstance(part, Text))

    @property
    def data(self) -> Json:
        """The value of its first data part, else None."""
        return next((part.value for part in self.parts if isinstance(part, Data)), None)


# -- to JSON and back


def part_to_wire(part: Part) -> JsonObject:
    """A part as it travels."""
    shown: JsonObject
    match part:
        case Text():
            shown = {"text": part.text}
        case Data():
            shown = {"data": part.value}
        case File():
            shown = {"file": _file_to_wire(part)}
        case _ as never:
            assert_never(never)
    if part.metadata:
        shown["metadata"] = part.metadata
    return shown


def part_from_wire(value: Json) -> Part:
    """The part that travelled like this. Raises BadParams for what is none."""
    if not is_object(value):
        raise BadParams("A part is an object with text, data or file.")
    metadata: Json = value.get("metadata")
    kept = metadata if is_object(metadata) else None
    match value:
        case {"text": str(text)}:
            return Text(text, kept)
        case {"data": data}:
            return Data(data, kept)
        case {"file": file} if is_object(file):
            return _file_from_wire(file, kept)
        case _:
            raise BadParams("A part is an object with text, data or file.")


def message_to_wire(message: Message) -> JsonObject:
    """A message as it travels."""
    shown: JsonObject = {"role": message.role, "parts": [part_to_wire(part) for part in message.parts]}
    if message.id:
        shown["id"] = message.id
    if message.metadata:
        shown["metadata"] = message.metadata
    return shown


def message_from_wire(value: Json) -> Message:
    """The message that travelled like this. Raises BadParams for what is none."""
    if not is_object(value) or not is_array(value.get("parts")):
        raise BadParams("A message is an object with parts.")
    said, metadata = value.get("id"), value.get("metadata")
    return Message(
        id=said if isinstance(said, str) else "",
        role="agent" if value.get("role") == "agent" else "user",
        parts=tuple(part_from_wire(part) for part in value["parts"]),
        metadata=metadata if is_object(metadata) else None,
    )


def artifact_to_wire(artifact: Artifact) -> JsonObject:
    """An artifact as it travels."""
    shown: JsonObject = {"id": artifact.id, "parts": [part_to_wire(part) for part in artifact.parts]}
    for name in ("name", "description", "mime_type", "metadata"):
        if value := getattr(artifact, name):
            shown[name] = value
    return shown


def artifact_from_wire(value: Json) -> Artifact:
    """The artifact that travelled like this. Raises BadParams for what is none."""
    if not is_object(value) or not is_array(value.get("parts")):
        raise BadParams("An artifact is an object with parts.")
    metadata = value.get("metadata")
    words = {name: said for name in ("name", "description", "mime_type") if isinstance(said := value.get(name), str)}
    return Artifact(
        id=str(value.get("id", "")),
        parts=tuple(part_from_wire(part) for part in value["parts"]),
        metadata=metadata if is_object(metadata) else None,
        **words,
    )


# -- the hub's own parts, whose rules for input objects hold here too


def to_model(parts: Sequence[Part]) -> tuple[model.Part, ...]:
    """The same parts in the hub's own form."""
    return tuple(_to_model(part) for part in parts)


def from_model(parts: Sequence[model.Part]) -> tuple[Part, ...]:
    """Parts of the hub's own form, as handlers see them."""
    return tuple(_from_model(part) for part in parts)


def message_of_input(value: Json) -> Message:
    """An input object as the message it stands for: its lone text, the parts it lists, else the object itself."""
    if is_object(value) and len(value) == 1 and isinstance(text := value.get("text"), str):
        return Message(parts=(Text(text),))
    return Message(parts=from_model(parts_of_object(value)))


def message_of(said: "str | Part | Message | Json") -> Message:
    """What somebody says as a message: words, a part, or any JSON value."""
    match said:
        case Message():
            return said
        case Text() | Data() | File():
            return Message(parts=(said,))
        case str():
            return Message(parts=(Text(said),))
        case _:
            return Message(parts=(Data(said),))


def _file_to_wire(file: File) -> JsonObject:
    shown: JsonObject = {"uri": file.uri} if file.bytes is None else {"bytes": b64encode(file.bytes).decode()}
    if file.name:
        shown["name"] = file.name
    if file.mime_type:
        shown["mime_type"] = file.mime_type
    return shown


def _file_from_wire(file: JsonObject, metadata: JsonObject | None) -> File:
    named, mime_type = file.get("name"), file.get("mime_type")
    uri, encoded = file.get("uri"), file.get("bytes")
    raw: bytes | None = None
    if isinstance(encoded, str):
        try:
            raw = b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise BadParams("A file's bytes are base64.") from None
    if (raw is None) == (not isinstance(uri, str)):
        raise BadParams("A file has either bytes or a uri.")
    return File(
        bytes=raw,
        uri=uri if isinstance(uri, str) else None,
        name=named if isinstance(named, str) else None,
        mime_type=mime_type if isinstance(mime_type, str) else None,
        metadata=metadata,
    )


def _to_model(part: Part) -> model.Part:
    match part:
        case Text(text=text, metadata=metadata):
            return model.Text(text=text, metadata=metadata)
        case Data(value=value, metadata=metadata):
            return model.Data(value=value, metadata=metadata)
        case File(bytes=raw, name=name, mime_type=mime_type, metadata=metadata) if raw is not None:
            return model.Blob(raw=raw, filename=name, media_type=mime_type, metadata=metadata)
        case File(uri=uri, name=name, mime_type=mime_type, metadata=metadata):
            return model.Link(url=uri or "", filename=name, media_type=mime_type, metadata=metadata)
        case _ as never:
            assert_never(never)


def _from_model(part: model.Part) -> Part:
    match part:
        case model.Text(text=text, metadata=metadata):
            return Text(text, metadata)
        case model.Data(value=value, metadata=metadata):
            return Data(value, metadata)
        case model.Blob(raw=raw):
            return File(bytes=raw, name=part.filename, mime_type=part.media_type, metadata=part.metadata)
        case model.Link(url=url):
            return File(uri=url, name=part.filename, mime_type=part.media_type, metadata=part.metadata)
        case _ as never:
            assert_never(never)
