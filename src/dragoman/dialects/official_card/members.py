"""Members of a stranger's card, taken out by name in either spelling; what has another type counts as absent."""

from typing import Final

from dragoman.dialects.text import shown_text
from dragoman.model.errors import BadParams
from dragoman.model.json import Json, JsonObject, is_array, is_object

MAX_WORD: Final = 256


def text(holder: JsonObject, *names: str) -> str | None:
    """The first of these members that is a text with something in it."""
    for name in names:
        found = holder.get(name)
        if isinstance(found, str) and found:
            return found
    return None


def flag(holder: JsonObject, *names: str) -> bool:
    """Whether one of these members is true."""
    return any(holder.get(name) is True for name in names)


def member(holder: JsonObject, *names: str) -> JsonObject:
    """The first of these members that is an object; an empty one where none is."""
    for name in names:
        found = holder.get(name)
        if is_object(found):
            return found
    return {}


def objects(value: Json) -> list[JsonObject]:
    """The objects in a list."""
    return [item for item in value if is_object(item)] if is_array(value) else []


def words(value: Json, limit: int = MAX_WORD) -> tuple[str, ...]:
    """The texts in a list, each fit to be shown."""
    return tuple(shown_text(word, limit) for word in value if isinstance(word, str)) if is_array(value) else ()


def without(holder: JsonObject, known: frozenset[str]) -> JsonObject:
    """What is left of an object without the members that are known, in either spelling."""
    return {name: value for name, value in holder.items() if _camel(name) not in known}


def bad_card(field: str, message: str) -> BadParams:
    """A card that cannot be used, and which member is why."""
    path = f"agent_card.{field}"
    return BadParams(f"{path}: {message}", errors=[{"path": path, "message": message}])


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)
