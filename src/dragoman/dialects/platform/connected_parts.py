"""Parts, messages and artifacts as they travel between the hub and an agent that connected to it, both ways.

{"text": "…"} | {"data": any} | {"file": {"name"?, "mime_type"?, "bytes": base64 | "uri": "…"}}   + "metadata"?
"""

import binascii
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, assert_never

from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_array, is_object

# Only two speak here: whoever is not the agent stands on the other side.
_ROLES: Final[Mapping[Role, str]] = {
    Role.USER: "user",
    Role.AGENT: "agent",
    Role.SYSTEM: "user",
    Role.TOOL: "user",
}


def message_object(message: Message, hidden: str = "") -> JsonObject:
    """A message as an agent is sent it, without the metadata of that name."""
    shown: JsonObject = {
        "id": message.id,
        "role": _ROLES[message.role],
        "parts": [part_object(part) for part in message.parts],
    }
    metadata = {name: value for name, value in (message.metadata or {}).items() if name != hidden}
    if metadata:
        shown["metadata"] = metadata
    return shown


def artifact_object(artifact: Artifact) -> JsonObject:
    """An artifact as an agent is sent it."""
    shown: JsonObject = {"id": artifact.id, "parts": [part_object(part) for part in artifact.parts]}
    for name in ("name", "description", "metadata"):
        if value := getattr(artifact, name):
            shown[name] = value
    return shown


def part_object(part: Part) -> JsonObject:
    """One part as an agent is sent it."""
    shown: JsonObject
    match part:
        case Text():
            shown = {"text": part.text}
        case Data():
            shown = {"data": part.value}
        case Blob():
            shown = {"file": _file({"bytes": b64encode(part.raw).decode()}, part)}
        case Link():
            shown = {"file": _file({"uri": part.url}, part)}
        case _ as never:
            assert_never(never)
    if part.metadata:
        shown["metadata"] = part.metadata
    return shown


def read_artifact(data: JsonObject) -> Artifact:
    """An artifact, or a piece of one, as an agent tells it. Raises BadParams."""
    artifact_id: Json = data.get("id")
    if not isinstance(artifact_id, str) or not artifact_id:
        raise _wrong("id", "expected a text")
    parts: Json = data.get("parts")
    if not is_array(parts):
        raise _wrong("parts", "expected a list")
    media_type = _text_or_none(data, "mime_type")
    metadata: Json = data.get("metadata")
    return Artifact(
        id=artifact_id,
        parts=tuple(_read_part(part, f"parts[{index}]", media_type) for index, part in enumerate(parts)),
        name=_text_or_none(data, "name"),
        description=_text_or_none(data, "description"),
        metadata=metadata if is_object(metadata) else None,
    )


def _read_part(value: Json, path: str, media_type: str | None) -> Part:
    if not is_object(value):
        raise _wrong(path, "expected an object with text, data or file")
    given: Json = value.get("metadata")
    metadata = given if is_object(given) and given else None
    text: Json = value.get("text")
    if isinstance(text, str):
        return Text(text=text, media_type=media_type, metadata=metadata)
    if "data" in value:
        return Data(value=value["data"], media_type=media_type, metadata=metadata)
    file: Json = value.get("file")
    if not is_object(file):
        raise _wrong(path, "expected text, data or file")
    name, kind = _text_or_none(file, "name"), _text_or_none(file, "mime_type") or media_type
    if isinstance(uri := file.get("uri"), str):
        return Link(url=uri, filename=name, media_type=kind, metadata=metadata)
    raw: Json = file.get("bytes")
    try:
        if isinstance(raw, str):
            return Blob(raw=b64decode(raw, validate=True), filename=name, media_type=kind, metadata=metadata)
    except (binascii.Error, ValueError):
        pass
    raise _wrong(f"{path}.file", "expected bytes in base64, or a uri")


def _file(shown: JsonObject, part: Blob | Link) -> JsonObject:
    if part.filename:
        shown["name"] = part.filename
    if part.media_type:
        shown["mime_type"] = part.media_type
    return shown


def _text_or_none(data: JsonObject, name: str) -> str | None:
    value: Json = data.get(name)
    return value if isinstance(value, str) and value else None


def _wrong(path: str, message: str) -> BadParams:
    return BadParams(f"artifact.{path}: {message}", errors=[{"path": f"artifact.{path}", "message": message}])
