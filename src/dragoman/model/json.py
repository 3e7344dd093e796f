"""The type of a JSON value: the one place where `Any` is meant."""

from typing import Any, TypeGuard

# A recursive alias would say more, but neither msgspec nor readers gain from it: JSON is what a stranger sent.
Json = Any
JsonObject = dict[str, Any]
JsonArray = list[Any]


def is_object(value: Json) -> TypeGuard[JsonObject]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Json) -> TypeGuard[JsonArray]:
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def is_deeper(value: Json, levels: int) -> bool:
    """Whether a JSON value is nested deeper than that."""
    if levels < 0:
        return True
    inner: list[Json] = list(value.values()) if is_object(value) else value if is_array(value) else []
    return any(is_deeper(item, levels - 1) for item in inner if isinstance(item, dict | list))
