"""Parts, messages and artifacts as AgentVault has them: written strictly, read from agents as they come.

Published clients reject a whole task for one unknown role, one address that is not http, one data part that is no
object. What has no form there is wrapped in a data part that says so in its media type, and unwrapped on the way back;
names and descriptions of artifacts stand in the hub's block of their metadata.
"""

from typing import Final, assert_never
from urllib.parse import urlsplit

from dragoman.dialects.hints import HINTS, without_hints
from dragoman.dialects.shapes import read_part as read_any_part
from dragoman.model.content import Artifact, Blob, Data, Link, Message, Part, Role, Text
from dragoman.model.errors import ContentRefused
from dragoman.model.json import Json, JsonArray, JsonObject, is_array, is_object

JSON: Final = "application/json"
VALUE: Final = "application/json; wrapped=value"  # content.value is the data
LINK: Final = "application/json; wrapped=link"  # content is a file part whose address is not http
APPEND: Final = "append"  # in the hub's block of an artifact's metadata: it is a further piece
KIND: Final = "result"  # the type of an artifact that has none of its own
MAX_URL: Final = 2083  # longer ones the published client refuses
ROLES: Final = {Role.USER: "user", Role.AGENT: "assistant", Role.SYSTEM: "system", Role.TOOL: "tool"}
_READ_ROLES: Final = {word: role for role, word in ROLES.items()} | {"agent": Role.AGENT}
_FILE_MEMBERS: Final = frozenset({"url", "mediaType", "filename"})
_EMPTY: Final[JsonObject] = {"type": "text", "content": ""}


def is_web_url(url: str) -> bool:
    """Whether the published client takes this for the address of a file."""
    if len(url) > MAX_URL or not url.isprintable() or " " in url:
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


# -- going out


def wire_message(message: Message, metadata: JsonObject | None = None) -> JsonObject:
    """A message; an empty one has one empty text, as at least one part is demanded. `metadata`: in place of its own."""
    shown: JsonObject = {"role": ROLES[message.role], "parts": [wire_part(part) for part in message.parts] or [_EMPTY]}
    told = message.metadata if metadata is None else metadata
    if told is not None:
        shown["metadata"] = told
    return shown


def wire_part(part: Part) -> JsonObject:
    """One part. Raises ContentRefused for a file inside, which this wire has no place for."""
    match part:
        case Text():
            return {"type": "text", "content": part.text}
        case Data():
            if is_object(part.value):
                return {"type": "data", "content": part.value, "mediaType": part.media_type or JSON}
            return {"type": "data", "content": {"value": part.value}, "mediaType": VALUE}
        case Link():
            if is_web_url(part.url):
                return {"type": "file", **_file(part)}
            return {"type": "data", "content": _file(part), "mediaType": LINK}
        case Blob():
            raise ContentRefused("AgentVault carries files by their address only.")
        case _ as never:
            assert_never(never)


def wire_artifact(artifact: Artifact) -> JsonObject:
    """An artifact: a lone part is its content or address, several are a list of parts."""
    shown: JsonObject = {"id": artifact.id, "type": artifact.kind or KIND}
    about: JsonObject = {}
    if artifact.name is not None:
        about["name"] = artifact.name
    if artifact.description is not None:
        about["description"] = artifact.description
    if artifact.extensions:
        about["extensions"] = artifact.extensions
    match artifact.parts:
        case ():
            pass
        case (Text() as part,):
            shown |= _with_type({"content": part.text}, part)
        case (Data() as part,) if _is_plain(part.value):
            shown |= _with_type({"content": part.value}, part)
        case (Link() as part,) if is_web_url(part.url):
            shown |= _with_type({"url": part.url}, part)
            if part.filename is not None:
                about["filename"] = part.filename
        case parts:
            shown["content"] = [wire_part(part) for part in parts]
    metadata = {**(artifact.metadata or {}), HINTS: about} if about else artifact.metadata
    if metadata is not None:
        shown["metadata"] = metadata
    return shown


def _with_type(shown: JsonObject, part: Part) -> JsonObject:
    return shown if part.media_type is None else {**shown, "mediaType": part.media_type}


def _file(part: Link) -> JsonObject:
    shown = _with_type({"url": part.url}, part)
    return shown if part.filename is None else {**shown, "filename": part.filename}


def _is_plain(value: Json) -> bool:
    """Whether data can stand as an artifact's content: it would not be read as absent, as text or as parts."""
    return value is not None and not isinstance(value, str) and not (is_array(value) and _are_parts(value))


# -- coming in


def read_data(content: JsonObject, media_type: str | None) -> Part:
    """A data part, or what was wrapped in one."""
    if media_type == VALUE and content.keys() == {"value"}:
        return Data(value=content["value"])
    if media_type == LINK and (url := _text(content, "url")) and content.keys() <= _FILE_MEMBERS:
        return Link(url=url, media_type=_text(content, "mediaType"), filename=_text(content, "filename"))
    return Data(value=content, media_type=None if media_type == JSON else media_type)


def read_part(part: Json) -> Part:
    """One part as an agent sent it; one that cannot be read is kept as data."""
    if is_object(part) and part.get("type") == "data" and "content" in part:
        content, media_type = part["content"], _text(part, "mediaType")
        return read_data(content, media_type) if is_object(content) else Data(value=content)
    return read_any_part(part)


def read_message(message: JsonObject, message_id: str) -> Message:
    """A message as an agent sent it."""
    parts, metadata = message.get("parts"), message.get("metadata")
    return Message(
        id=message_id,
        role=_READ_ROLES.get(str(message.get("role")), Role.AGENT),
        parts=tuple(read_part(part) for part in parts) if is_array(parts) else (),
        metadata=without_hints(metadata) if is_object(metadata) else None,
    )


def read_artifact(artifact: JsonObject, missing_id: str) -> Artifact:
    """An artifact as an agent sent it."""
    metadata = artifact.get("metadata")
    about = block_of(metadata)
    extensions = about.get("extensions")
    return Artifact(
        id=_text(artifact, "id") or missing_id,
        parts=_parts_of(artifact, _text(about, "filename")),
        name=_text(about, "name"),
        description=_text(about, "description"),
        kind=_text(artifact, "type"),
        extensions=tuple(str(word) for word in extensions) if is_array(extensions) else (),
        metadata=without_hints(metadata) if is_object(metadata) else None,
    )


def block_of(metadata: Json) -> JsonObject:
    """The hub's own block in a metadata, where there is one."""
    block: Json = metadata.get(HINTS) if is_object(metadata) else None
    return block if is_object(block) else {}


def _parts_of(artifact: JsonObject, filename: str | None) -> tuple[Part, ...]:
    content, url, media_type = artifact.get("content"), _text(artifact, "url"), _text(artifact, "mediaType")
    found: list[Part] = []
    if isinstance(content, str):
        found.append(Text(text=content, media_type=media_type))
    elif is_array(content) and _are_parts(content):
        found += [read_part(part) for part in content]
    elif content is not None:
        found.append(Data(value=content, media_type=media_type))
    if url is not None:
        found.append(Link(url=url, media_type=media_type, filename=filename))
    return tuple(found)


def _are_parts(content: JsonArray) -> bool:
    """Whether a list is one of parts: several, or a single one that was wrapped; any other list is data."""
    if len(content) == 1 and is_object(content[0]) and content[0].get("mediaType") not in (VALUE, LINK):
        return False
    return bool(content) and all(_is_part(each) for each in content)


def _is_part(value: Json) -> bool:
    if not is_object(value):
        return False
    match value.get("type"):
        case "text":
            return isinstance(value.get("content"), str)
        case "data":
            return is_object(value.get("content"))
        case "file":
            return isinstance(value.get("url"), str)
        case _:
            return False


def _text(value: JsonObject, name: str) -> str | None:
    found = value.get(name)
    return found if isinstance(found, str) and found else None
