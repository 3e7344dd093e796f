"""Large events in pieces: what is too much for one of them goes in several, each appended to the one before.

Words are cut anywhere, an artifact's parts between them; data and a file stay whole, however large they are.
"""

from collections.abc import Iterator
from typing import Final

import msgspec

from dragoman.model.json import Json, JsonArray, JsonObject, is_array, is_object

PIECE_BYTES: Final = 512 * 1024
_FEW: Final = PIECE_BYTES // 8  # so few characters are never what makes something large


def pieces(event: str, data: JsonObject) -> Iterator[JsonObject]:
    """The data of an event, or of those that say the same in pieces."""
    parts = data.get("parts")
    if event == "artifact" and is_array(parts) and _size(data) > PIECE_BYTES:
        yield from _artifact(data, parts)
    elif event == "chunk":
        yield from _cut(data, "content")
    else:
        yield data


def _artifact(data: JsonObject, parts: JsonArray) -> Iterator[JsonObject]:
    groups = list(_groups(parts))
    following = {name: data[name] for name in ("id", "mime_type") if name in data}
    for place, group in enumerate(groups):
        shown = data if place == 0 else following
        append = place > 0 or bool(data.get("append", False))
        last = place == len(groups) - 1 and bool(data.get("last", True))
        yield {**shown, "parts": group, "append": append, "last": last}


def _groups(parts: JsonArray) -> Iterator[JsonArray]:
    group: JsonArray = []
    size = 0
    for part in (small for large in parts for small in _cut(large, "text")):
        more = _size(part)
        if group and size + more > PIECE_BYTES:
            yield group
            group, size = [], 0
        group.append(part)
        size += more
    yield group


def _cut(value: Json, name: str) -> Iterator[Json]:
    """An object whose words of that name are too many, as several; any other as it is."""
    text = value.get(name) if is_object(value) else None
    if not isinstance(text, str) or len(text) < _FEW or _size(value) <= PIECE_BYTES:
        yield value
        return
    middle = len(text) // 2
    yield from _cut({**value, name: text[:middle]}, name)
    yield from _cut({**value, name: text[middle:]}, name)


def _size(value: Json) -> int:
    return len(msgspec.json.encode(value))
