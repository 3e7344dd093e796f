"""Types as JSON Schema, and JSON values as those types: all that msgspec knows, and pydantic's models by their methods.

Pydantic is not imported: a class is one of its models if it has `model_json_schema`, `model_validate`, `model_dump`.
"""

import typing
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Final, TypeGuard, Union

import msgspec

from dragoman.model.json import Json, JsonObject, is_array, is_object

REF: Final = "#/$defs/"

_BOUNDS: Final = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


def schemas_of(types: Sequence[object]) -> tuple[list[JsonObject], JsonObject]:
    """The JSON Schemas of some types, and the definitions that they share, without the titles that nobody wrote.

    Raises TypeError for a type that has no JSON form.
    """
    shown, components = msgspec.json.schema_components(types, schema_hook=_schema_hook, ref_template=REF + "{name}")
    definitions: JsonObject = {name: _untitled(schema, name) for name, schema in components.items()}
    schemas = [_lifted(schema, definitions) for schema in shown]
    for name in list(components):
        definitions[name] = _lifted(definitions[name], definitions)
    return schemas, definitions


def schema_of(kind: object) -> JsonObject:
    """The JSON Schema of one type, whole in itself. Raises TypeError for a type that has no JSON form."""
    (schema,), definitions = schemas_of([kind])
    return inlined(schema, definitions)


def inlined(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> JsonObject:
    """A schema with what its top refers to in its place, and with those definitions that it then still needs."""
    ref = schema.get("$ref")
    if isinstance(ref, str) and ref.removeprefix(REF) in definitions:
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        schema = {**definitions[ref.removeprefix(REF)], **beside}
    needed = _needed(schema, definitions)
    kept = {name: definitions[name] for name in definitions if name in needed}
    return {**schema, "$defs": kept} if kept else dict(schema)


def output_schema_of(kind: object) -> JsonObject | None:
    """What callers may count on in an answer of that type, told as the one object that every answer is.

    A text is the object with a `text`, unless files stand beside it; what is no object has no schema.
    """
    if kind is str:
        return {"type": "object", "properties": {"text": {"type": "string"}}}
    try:
        schema = schema_of(kind)
    except TypeError:
        return None  # What a handler returns is its own business: parts, a framework's object, a promise of either.
    return schema if _is_object_schema(schema, schema.get("$defs", {})) else None


def converted(value: Json, kind: object, *, strict: bool = True) -> Json:
    """A JSON value as that type. Raises msgspec.ValidationError, which says what was expected, and where."""
    try:
        return msgspec.convert(value, kind, strict=strict, dec_hook=_from_json)  # pyright: ignore[reportArgumentType, reportUnknownVariableType] - any type form
    except msgspec.ValidationError as error:
        if "got `float`" not in str(error):
            raise
    # JSON knows one kind of number: 5.0 is the integer that the schema asks for.
    return msgspec.convert(_whole(value), kind, strict=strict, dec_hook=_from_json)  # pyright: ignore[reportArgumentType] - any type form


def to_json(value: object) -> Json:
    """A value as JSON has it. Raises TypeError for one that has no JSON form."""
    return msgspec.to_builtins(value, str_keys=True, enc_hook=_to_json)


def expectation(error: msgspec.ValidationError) -> tuple[str, str]:
    """Where a value is wrong (a path, empty for the whole), and what was expected."""
    message, _, at = str(error).rpartition(" - at `$")
    path = at.rstrip("`").removeprefix(".") if message else ""
    message = (message or str(error)).replace("`", "")
    missing = "Object missing required field "
    if message.startswith(missing):
        name = message.removeprefix(missing)
        return f"{path}.{name}" if path else name, "required"
    return path, message[:1].lower() + message[1:]


def with_notes(kind: object) -> object:
    """An annotation with what was noted beside its type in forms that msgspec does not read.

    A text is a description; pydantic's Field gives its description, bounds, lengths and pattern.
    """
    if typing.get_origin(kind) is not Annotated:
        return kind
    inner, *notes = typing.get_args(kind)
    metas = [note for note in notes if isinstance(note, msgspec.Meta)]
    words: JsonObject = {}
    bounds: JsonObject = {}
    for note in notes:
        if isinstance(note, str):
            words["description"] = note
        elif is_field(note):
            words |= {name: said for name in ("title", "description") if (said := getattr(note, name, None))}
            for each in getattr(note, "metadata", ()):
                bounds |= {name: value for name in _BOUNDS if (value := getattr(each, name, None)) is not None}
    made = _bounded(inner, msgspec.Meta(**bounds)) if bounds else inner
    for meta in (*metas, *([msgspec.Meta(**words)] if words else ())):
        made = Annotated[made, meta]
    return made


def is_field(value: object) -> bool:
    """Whether a value is what pydantic's `Field(…)` gives."""
    return type(value).__name__ == "FieldInfo" and type(value).__module__.partition(".")[0] == "pydantic"


def is_model(kind: object) -> TypeGuard[type]:
    """Whether a type is a pydantic model, or behaves like one."""
    return isinstance(kind, type) and hasattr(kind, "model_json_schema") and hasattr(kind, "model_validate")


def _bounded(kind: object, meta: msgspec.Meta) -> object:
    """A type with bounds; those of `int | None` are bounds of the int."""
    if typing.get_origin(kind) in (Union, UnionType):
        members = typing.get_args(kind)
        made = [member if member is NoneType else Annotated[member, meta] for member in members]
        return Union[tuple(made)]  # noqa: UP007 - made of a list
    return Annotated[kind, meta]


def _schema_hook(kind: type) -> JsonObject:
    if is_model(kind):
        return _untitled(kind.model_json_schema(), kind.__name__)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownArgumentType, reportUnknownVariableType] - looked for above
    raise NotImplementedError


def _from_json(kind: type, value: Json) -> object:
    if not is_model(kind):
        raise NotImplementedError
    try:
        return kind.model_validate(value)  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - looked for above
    except ValueError as error:
        raise ValueError(_shown(error)) from None


def _shown(error: ValueError) -> str:
    """A pydantic error in one line."""
    errors = getattr(error, "errors", None)
    if not callable(errors):
        return str(error)
    listed: Json = errors()
    told = [each for each in listed if is_object(each)] if is_array(listed) else []
    return "; ".join(f"{'.'.join(map(str, each.get('loc', ())))}: {each.get('msg', '')}".strip(": ") for each in told)


def _to_json(value: object) -> Json:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _whole(value: Json) -> Json:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if is_object(value):
        return {name: _whole(each) for name, each in value.items()}
    return [_whole(each) for each in value] if is_array(value) else value


def _untitled(schema: JsonObject, name: str) -> JsonObject:
    """A schema without the titles that were made up from names of types and fields."""
    shown = {key: value for key, value in schema.items() if not (key == "title" and value == name)}
    properties = shown.get("properties")
    if is_object(properties):
        shown["properties"] = {
            field: _untitled(kind, field.replace("_", " ").title()) if is_object(kind) else kind
            for field, kind in properties.items()
        }
    definitions = shown.get("$defs")
    if is_object(definitions):
        shown["$defs"] = {each: _untitled(kind, each) for each, kind in definitions.items()}
    return shown


def _lifted(schema: Json, definitions: JsonObject) -> Json:
    """A schema whose inner definitions stand with the others, where references look for them."""
    if is_array(schema):
        return [_lifted(each, definitions) for each in schema]
    if not is_object(schema):
        return schema
    inner = schema.get("$defs")
    if is_object(inner):
        renamed: dict[str, str] = {}
        for name, kind in inner.items():
            free = name
            while definitions.get(free, kind) != kind:
                free += "_"
            definitions[free] = kind
            renamed[name] = free
        schema = _renamed({name: value for name, value in schema.items() if name != "$defs"}, renamed)
    return {name: _lifted(value, definitions) for name, value in schema.items()}


def _renamed(schema: Json, names: Mapping[str, str]) -> Json:
    if is_array(schema):
        return [_renamed(each, names) for each in schema]
    if not is_object(schema):
        return schema
    shown = {name: _renamed(value, names) for name, value in schema.items()}
    ref = shown.get("$ref")
    if isinstance(ref, str) and ref.removeprefix(REF) in names:
        shown["$ref"] = REF + names[ref.removeprefix(REF)]
    return shown


def _needed(schema: Json, definitions: Mapping[str, JsonObject]) -> set[str]:
    needed: set[str] = set()
    waiting: list[Json] = [schema]
    while waiting:
        each = waiting.pop()
        if is_array(each):
            waiting += each
        elif is_object(each):
            ref = each.get("$ref")
            name = ref.removeprefix(REF) if isinstance(ref, str) else ""
            if name in definitions and name not in needed:
                needed.add(name)
                waiting.append(definitions[name])
            waiting += each.values()
    return needed


def _is_object_schema(schema: JsonObject, definitions: Mapping[str, JsonObject]) -> bool:
    if schema.get("type") == "object":
        return True
    options = schema.get("anyOf")
    if is_array(options):
        return bool(options) and all(is_object(each) and _is_object_schema(each, definitions) for each in options)
    ref = schema.get("$ref")
    named = definitions.get(ref.removeprefix(REF)) if isinstance(ref, str) else None
    return named is not None and _is_object_schema(named, definitions)
