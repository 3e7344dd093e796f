"""Values and a skill's input schema: what a text stands for, and what does not fit.

Checks what people get wrong before anything is sent: missing and unknown names, types, fixed values. The hub checks
the whole schema afterwards.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from dragoman.model.json import Json, JsonObject, is_array, is_object

WORDS: Final = {
    "string": "a text", "integer": "an integer", "number": "a number", "boolean": "true or false", "null": "null",
    "object": "a JSON object", "array": "a JSON array",
}  # fmt: skip
DEPTH: Final = 16  # of references that lead to references
_NOTHING: Final = object()


class NotFitting(Exception):
    """A value that the schema does not take; the message says what it takes."""


def converted(text: str, schema: JsonObject, root: JsonObject, depth: int = 0) -> Json:
    """The value that a text stands for under a schema; without one it is the text. Raises NotFitting."""
    schema = _resolved(schema, root)
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if is_array(branches) and depth < DEPTH:
            return _first_fitting(text, [b for b in branches if is_object(b)], root, depth)
    allowed = schema.get("enum")
    if is_array(allowed):
        parsed = _parsed(text)
        found = [one for one in allowed if one == text or (parsed is not _NOTHING and _same(one, parsed))]
        if not found:
            raise NotFitting("one of " + ", ".join(json.dumps(one, ensure_ascii=False) for one in allowed))
        return found[0]
    types = _types(schema)
    if not types:
        return text
    for kind in types:
        value = _as(kind, text)
        if value is not _NOTHING:
            return value
    raise NotFitting(_expected(types))


def text_name(schema: JsonObject) -> str:
    """Where a lone text belongs: the one required string of the schema, else `text`."""
    required = schema.get("required")
    names = [str(name) for name in required] if is_array(required) else []
    properties = properties_of(schema)
    texts = [name for name in names if _types(_resolved(properties.get(name, {}), schema)) == ["string"]]
    return texts[0] if len(texts) == 1 else "text"


def schema_lines(schema: JsonObject) -> list[str]:
    """One line for each property: name, type, whether it is needed, its default and description."""
    return [schema_line(name, one, schema) for name, one in properties_of(schema).items()]


def misfits(value: JsonObject, schema: JsonObject, problems: dict[str, str]) -> dict[str, str]:
    """What is wrong with each name of an input, `problems` found while converting it among them."""
    found: dict[str, str] = {}
    required = schema.get("required")
    properties = properties_of(schema)
    for name in required if is_array(required) else ():
        if name not in value:
            found[str(name)] = "required"
    closed = schema.get("additionalProperties") is False
    for name, one in value.items():
        if name in problems:
            found[name] = problems[name]
        elif name not in properties:
            if closed:
                found[name] = "unknown; it takes " + (", ".join(properties) or "nothing")
        else:
            wrong = _misfit(one, properties[name], schema)
            if wrong:
                found[name] = f"expected {wrong}, got {quoted(one)}"
    return found


def _misfit(value: Json, schema: JsonObject, root: JsonObject, depth: int = 0) -> str | None:
    """What was expected instead, or None."""
    schema = _resolved(schema, root)
    for word in ("anyOf", "oneOf"):
        branches = schema.get(word)
        if is_array(branches) and depth < DEPTH:
            tried = [_misfit(value, b, root, depth + 1) for b in branches if is_object(b)]
            return None if None in tried else " or ".join(dict.fromkeys(one for one in tried if one)) or None
    allowed = schema.get("enum")
    if is_array(allowed) and not any(_same(one, value) for one in allowed):
        return "one of " + ", ".join(json.dumps(one, ensure_ascii=False) for one in allowed)
    types = _types(schema)
    return None if not types or any(_is(kind, value) for kind in types) else _expected(types)


def schema_line(name: str, one: JsonObject, schema: JsonObject) -> str:
    """One property: name, type, whether it is needed, default and description."""
    resolved = _resolved(one, schema)
    required = schema.get("required")
    allowed = resolved.get("enum")
    kind = " | ".join(map(_shown, allowed)) if is_array(allowed) else " or ".join(_types(resolved)) or "any"
    facts = ["required"] if is_array(required) and name in required else []
    if "default" in resolved:
        facts.append(f"default {_shown(resolved['default'])}")
    line = f"{name}: {kind}" + (f", {', '.join(facts)}" if facts else "")
    described = resolved.get("description") or one.get("description")
    return f"{line}  {described}" if described else line


def no_constant(text: str) -> Json:
    """Refuse NaN and Infinity, which are no JSON."""
    raise ValueError(f"{text} is no JSON value")


def _parsed(text: str) -> Json:
    try:
        return json.loads(text, parse_constant=no_constant)
    except ValueError:
        return _NOTHING


def _first_fitting(text: str, branches: Sequence[JsonObject], root: JsonObject, depth: int) -> Json:
    expected: list[str] = []
    # A text fits every string: kinds that need more are tried first.
    for branch in sorted(branches, key=lambda one: "string" in _types(_resolved(one, root))):
        try:
            return converted(text, branch, root, depth + 1)
        except NotFitting as error:
            expected.append(str(error))
    raise NotFitting(" or ".join(dict.fromkeys(expected)) or "something else")


def _as(kind: str, text: str) -> Json:
    if kind == "string":
        return text
    value = _parsed(text)
    if kind == "number" and isinstance(value, int) and not isinstance(value, bool):
        return value
    return value if value is not _NOTHING and _is(kind, value) else _NOTHING


def _is(kind: str, value: Json) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return not isinstance(value, bool) and (isinstance(value, int) or _is_whole(value))
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "null":
            return value is None
        case "object":
            return is_object(value)
        case "array":
            return is_array(value)
        case _:
            return True


def _is_whole(value: Json) -> bool:
    return isinstance(value, float) and value.is_integer()


def _same(one: Json, other: Json) -> bool:
    """Equal as JSON, where true is not 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other


def _types(schema: JsonObject) -> list[str]:
    kind = schema.get("type")
    kinds = [str(one) for one in kind] if is_array(kind) else [kind] if isinstance(kind, str) else []
    return sorted(kinds, key=lambda one: one == "string")  # a text fits every string: tried last


def _expected(types: Sequence[str]) -> str:
    return " or ".join(WORDS.get(kind, kind) for kind in types)


def properties_of(schema: JsonObject) -> dict[str, JsonObject]:
    """The schema of each name."""
    found = schema.get("properties")
    return {name: one for name, one in found.items() if is_object(one)} if is_object(found) else {}


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    for _ in range(DEPTH):
        reference = schema.get("$ref")
        if not isinstance(reference, str) or not reference.startswith("#/"):
            break
        target = _pointed(root, reference[2:].split("/"))
        if target is None:
            break
        schema = target
    return schema


def _pointed(root: JsonObject, steps: Sequence[str]) -> JsonObject | None:
    place: Json = root
    for step in _unescaped(steps):
        if not is_object(place) or step not in place:
            return None
        place = place[step]
    return place if is_object(place) else None


def _unescaped(steps: Sequence[str]) -> Iterator[str]:
    return (step.replace("~1", "/").replace("~0", "~") for step in steps)


def _shown(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def quoted(value: Json) -> str:
    """A value as a message shows it: as JSON, and not too long."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 40 else shown[:39] + "…"
