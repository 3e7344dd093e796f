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
