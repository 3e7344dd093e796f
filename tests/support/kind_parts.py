"""Parts with a `kind`, as the stubs of A2A 0.3 and of dotted write and read them, without the hub's code."""

from base64 import b64decode, b64encode
from collections.abc import Iterable
from typing import Any

from dragoman.model.json import is_object
from tests.support.speaking import Content, File

COMPAT = "data_part_compat"


def parts_of(content: Content) -> list[dict[str, Any]]:
    """What is said, as parts."""
    parts: list[dict[str, Any]] = []
    if content.text is not None:
        parts.append({"kind": "text", "text": content.text})
    if is_object(content.data):
        parts.append({"kind": "data", "data": content.data})
    elif content.data is not None:
        parts.append({"kind": "data", "data": {"value": content.data}, "metadata": {COMPAT: True}})
    if content.file is not None:
        parts.append({"kind": "file", "file": _shown(content.file)})
    return parts


def contents_of(parts: Iterable[dict[str, Any]]) -> tuple[Content, ...]:
    """What parts say, each for itself."""
    return tuple(_content(part) for part in parts)


def text_of(parts: Iterable[dict[str, Any]]) -> str | None:
    """The words in a message: its texts, or the text in an object."""
    for part in parts:
        if part["kind"] == "text":
            return part["text"]
        if part["kind"] == "data" and isinstance(part["data"].get("text"), str):
            return part["data"]["text"]
    return None


def _content(part: dict[str, Any]) -> Content:
    match part:
        case {"kind": "text", "text": str(text)}:
            return Content(text=text)
        case {"kind": "data", "data": {"value": value}, "metadata": {"data_part_compat": True}}:
            return Content(data=value)
        case {"kind": "data", "data": data} if is_object(data):
            return Content(data=data)
        case {"kind": "file", "file": {"bytes": str(raw), **more}} if "uri" not in more:
            return Content(file=File(raw=b64decode(raw, validate=True), **_about(more)))
        case {"kind": "file", "file": {"uri": str(uri), **more}} if "bytes" not in more:
            return Content(file=File(uri=uri, **_about(more)))
        case _:
            raise AssertionError(f"no part that these dialects know: {part}")


def _about(file: dict[str, Any]) -> dict[str, Any]:
    return {"name": file.get("name"), "media_type": file.get("mimeType")}


def _shown(file: File) -> dict[str, str]:
    shown = {"bytes": b64encode(file.raw).decode()} if file.raw is not None else {"uri": file.uri or ""}
    if file.name:
        shown["name"] = file.name
    if file.media_type:
        shown["mimeType"] = file.media_type
    return shown
