"""What a tool gives back, both ways: content blocks and structured content, and the parts of an answer."""

import binascii
from base64 import b64decode, b64encode
from typing import Final, assert_never

import msgspec

from dragoman.dialects.mcp.protocol import member, text_in
from dragoman.dialects.text import path_segment
from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.json import Json, JsonObject, is_array, is_object

DEFAULT_MEDIA: Final = "application/octet-stream"
_WEB: Final = ("https://", "http://")
_encode = msgspec.json.Encoder().encode


# -- from a tool


def parts_of(result: JsonObject) -> tuple[Part, ...]:
    """The answer of a tool: its structured content with the files beside it, or else every block."""
    blocks: Json = result.get("content")
    parts = [_part(block) for block in blocks if is_object(block)] if is_array(blocks) else []
    found = [part for part in parts if part is not None]
    structured: Json = result.get("structuredContent")
    if structured is None:
        return tuple(found)
    # The words beside it say the same once more, for those who read nothing else.
    return (Data(value=structured), *(part for part in found if isinstance(part, Blob | Link)))


def words_of(result: JsonObject) -> str:
    """The words of a tool's answer."""
    blocks: Json = result.get("content")
    texts = [text_in(block, "text") for block in blocks if is_object(block)] if is_array(blocks) else []
    return "\n".join(text for text in texts if text)


def _part(block: JsonObject) -> Part | None:
    match block.get("type"):
        case "text":
            return Text(text=text_in(block, "text"))
        case "image" | "audio":
            return _file(text_in(block, "data"), text_in(block, "mimeType"), "")
        case "resource":
            return _resource(member(block, "resource"))
        case "resource_link":
            return _link(block)
        case _:
            return Data(value=block)


def _resource(resource: JsonObject) -> Part | None:
    """What is embedded: a file, whose name is the last piece of its address."""
    name = text_in(resource, "uri").rstrip("/").rpartition("/")[2]
    media = text_in(resource, "mimeType")
    if "blob" in resource:
        return _file(text_in(resource, "blob"), media, name)
    raw = text_in(resource, "text").encode("utf-8", "replace")
    return Blob(raw=raw, media_type=media or "text/plain", filename=name or None)


def _file(encoded: str, media: str, name: str) -> Blob | None:
    try:
        raw = b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return None
    return Blob(raw=raw, media_type=media or DEFAULT_MEDIA, filename=name or None)


def _link(block: JsonObject) -> Part:
    """A file elsewhere; an address that only its server understands stays what the server said."""
    url = text_in(block, "uri")
    if not url.startswith(_WEB):
        return Data(value=block)
    return Link(url=url, media_type=text_in(block, "mimeType") or None, filename=text_in(block, "name") or None)


# -- to a client


def block_of(part: Part, index: int) -> JsonObject:
    """One part as a block; `index` names a file that has no name."""
    match part:
        case Text():
            return {"type": "text", "text": part.text}
        case Data():
            return {"type": "text", "text": _encode(part.value).decode()}
        case Blob():
            return _blob_block(part, index)
        case Link():
            shown: JsonObject = {"type": "resource_link", "uri": part.url, "name": part.filename or f"file-{index}"}
            if part.media_type:
                shown["mimeType"] = part.media_type
            return shown
        case _ as never:
            assert_never(never)


def _blob_block(part: Blob, index: int) -> JsonObject:
    media, data = part.media_type or DEFAULT_MEDIA, b64encode(part.raw).decode()
    kind = media.partition("/")[0]
    if kind in ("image", "audio"):
        return {"type": kind, "data": data, "mimeType": media}
    name = part.filename or f"file-{index}"
    return {"type": "resource", "resource": {"uri": f"file:///{path_segment(name)}", "mimeType": media, "blob": data}}
