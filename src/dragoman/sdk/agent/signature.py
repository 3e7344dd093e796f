"""A function's signature as the schema of a skill or tool: what it takes, what of it is handed in, what it gives.

A struct is made of the parameters; a call's input is converted by it, so that handlers see typed values. Parameters
annotated `Context` or `Message` are handed in by whoever calls and are not published.
"""

import functools
import inspect
import typing
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
)
from enum import StrEnum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, NamedTuple, Union

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.model.errors import InputRefused
from dragoman.model.json import Json, JsonObject
from dragoman.sdk.agent.schema import (
    converted,
    expectation,
    inlined,
    is_field,
    output_schema_of,
    schema_of,
    schemas_of,
    to_json,
    with_notes,
)
from dragoman.sdk.annotations import annotations_of, parameters_of
from dragoman.sdk.content import Message
from dragoman.sdk.work.context import Context

Function = Callable[..., object]

_NOTHING: Final = inspect.Parameter.empty
_INPUT: Final = "_Input"
_STREAMS: Final = (AsyncGenerator, AsyncIterable, AsyncIterator, Generator)
_ITERATORS: Final = (*_STREAMS, Iterable, Iterator)


class Handed(StrEnum):
    """What is handed in to a handler beside its input."""

    CONTEXT = "context"
    MESSAGE = "message"


class Parameter(NamedTuple):
    """One parameter: its type with what was noted beside it, and what is handed in for it, if anything."""

    name: str
    kind: object
    default: object
    handed: Handed | None
    by_position: bool


class Bound(NamedTuple):
    """What a function is called with."""

    args: tuple[object, ...]
    kwargs: dict[str, object]


class Signature:
    """What a function takes and gives, read once when it is published."""

    def __init__(self, function: Function, *, name: str | None = None, strict: bool = False) -> None:
        self.parameters, self._rest, returned = _read(function)
        self.name = name or name_of(function)
        self._strict = strict
        if strict and self._rest is not _NOTHING:
            raise TypeError(f"{self.name}: strict=True and **{_rest_name(function)} contradict each other")
        self._published = [each for each in self.parameters if each.handed is None]
        self._struct = self._made()
        self.input_schema: JsonObject = self._schema()
        self.output_schema = None if _says_nothing(returned) else output_schema_of(returned)

    def bind(self, given: JsonObject, handed: dict[Handed, object]) -> Bound:
        """The arguments for an input object. Raises InputRefused naming the field and what was expected."""
        names = {each.name for each in self._published}
        others = {name: value for name, value in given.items() if name not in names}
        if self._strict and others:
            raise _refused(self.name, next(iter(others)), "unknown; this skill takes no other fields")
        try:
            made = converted({name: value for name, value in given.items() if name in names}, self._struct)
        except msgspec.ValidationError as error:
            raise _refused(self.name, *expectation(error)) from None
        args: list[object] = []
        kwargs: dict[str, object] = {}
        for each in self.parameters:
            value = handed.get(each.handed, UNSET) if each.handed else getattr(made, each.name)
            if value is UNSET and each.by_position and each.default is not _NOTHING:
                value = each.default
            if each.by_position:
                args.append(value)
            elif value is not UNSET:
                kwargs[each.name] = value
        if self._rest is not _NOTHING:
            kwargs |= self._others(others)
        return Bound(tuple(args), kwargs)

    def _others(self, given: JsonObject) -> JsonObject:
        try:
            return converted(given, dict[str, self._rest])
        except msgspec.ValidationError as error:
            raise _refused(self.name, *expectation(error)) from None

    def _made(self) -> type[msgspec.Struct]:
        fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
        for each in self._published:
            if each.default is _NOTHING:
                fields.append((each.name, each.kind))
            else:
                # What is left out stays out: the function has its own default.
                fields.append((each.name, Union[each.kind, UnsetType], UNSET))  # noqa: UP007 - types in variables
        return msgspec.defstruct(_INPUT, fields, kw_only=True)

    def _schema(self) -> JsonObject:
        kinds: list[object] = [self._struct] if self._rest in (_NOTHING, Any) else [self._struct, self._rest]
        try:
            schemas, definitions = schemas_of(kinds)
        except TypeError as error:
            raise self._unusable() or error from None
        schema = inlined(schemas[0], definitions)
        for each in self._published:
            if each.default is not _NOTHING and (shown := _shown_default(each.default)) is not UNSET:
                schema["properties"][each.name] = {**schema["properties"][each.name], "default": shown}
        if not schema["required"]:
            del schema["required"]
        if self._strict:
            schema["additionalProperties"] = False
        elif self._rest is not _NOTHING:
            schema["additionalProperties"] = schemas[1] if len(schemas) > 1 else True
            schema = inlined({name: value for name, value in schema.items() if name != "$defs"}, definitions)
        return schema

    def _unusable(self) -> TypeError | None:
        """What is wrong, and with which parameter."""
        kinds = [(each.name, each.kind) for each in self._published]
        for name, kind in [*kinds, *([("**", self._rest)] if self._rest is not _NOTHING else [])]:
            try:
                schema_of(kind)
            except TypeError as error:
                cause = str(error).rpartition("\n")[2]
                return TypeError(f"{self.name}: parameter {name!r} cannot be published: {cause}")
        return None


def name_of(function: Function) -> str:
    """What a function is called; a partial is called as what it is made of."""
    inner = function.func if isinstance(function, functools.partial) else function
    return getattr(inner, "__name__", None) or type(inner).__name__


def description_of(function: Function) -> str:
    """The first paragraph of a function's docstring, in one line."""
    inner = function.func if isinstance(function, functools.partial) else function
    written = inspect.getdoc(inner) if hasattr(inner, "__name__") else inspect.getdoc(type(inner))
    return " ".join((written or "").strip().partition("\n\n")[0].split())


def is_async(function: Function) -> bool:
    """Whether a function runs in the loop: `async def`, with or without `yield`."""
    inner = _code(function)
    return inspect.iscoroutinefunction(inner) or inspect.isasyncgenfunction(inner)


def handed_in(kind: object) -> Handed | None:
    """What is handed in for a parameter of that type."""
    if typing.get_origin(kind) is Annotated:
        kind = typing.get_args(kind)[0]
    if typing.get_origin(kind) in (Union, UnionType):
        others = [member for member in typing.get_args(kind) if member is not NoneType]
        kind = others[0] if len(others) == 1 else kind
    if isinstance(kind, type) and issubclass(kind, Context):
        return Handed.CONTEXT
    return Handed.MESSAGE if kind is Message else None


def _read(function: Function) -> tuple[list[Parameter], Any, object]:
    """Its parameters, the type of `**rest` (or nothing), and what it returns. Raises TypeError."""
    name = name_of(function)
    hints = _hints(function)
    parameters: list[Parameter] = []
    rest: Any = _NOTHING
    for each in parameters_of(function).values():
        kind = with_notes(Any if hints.get(each.name) is object else hints.get(each.name, Any))
        match each.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                raise TypeError(f"{name}: *{each.name} cannot be published; callers name what they send")
            case inspect.Parameter.VAR_KEYWORD:
                rest = kind
                continue
            case _:
                by_position = each.kind is inspect.Parameter.POSITIONAL_ONLY
        default = each.default
        if is_field(default):
            kind, default = with_notes(Annotated[kind, default]), _field_default(default)
        parameters.append(Parameter(each.name, kind, default, handed_in(kind), by_position))
    return parameters, rest, hints.get("return", _NOTHING)


def _hints(function: Function) -> dict[str, Any]:
    """The annotations, those written as text too. Raises TypeError naming the one that cannot be read."""
    code = _code(function)
    # Type checkers alone may import these two: a handler's module need not have them when it runs.
    names = {"Context": Context, "Message": Message, **getattr(code, "__globals__", {})}
    try:
        return typing.get_type_hints(code, names, include_extras=True)
    except Exception:  # noqa: BLE001, S110 - an annotation is an expression: it raises what it likes
        pass  # Which one it was is found out below, unless it lacks nothing but one of those two.
    hints: dict[str, Any] = {}
    for name, written in _written(function).items():
        try:
            alone = type("_", (), {"__annotations__": {name: written}})
            hints |= typing.get_type_hints(alone, names, include_extras=True)
        except Exception as error:  # noqa: BLE001 - an annotation is an expression: it raises what it likes
            raise TypeError(
                f"{name_of(function)}: the annotation of {name!r} cannot be read: {type(error).__name__}: {error}"
            ) from None
    return hints


def _written(function: Function) -> Mapping[str, Any]:
    """The annotations, not evaluated where they cannot be. Raises TypeError."""
    try:
        return annotations_of(_code(function))
    except Exception as error:  # noqa: BLE001 - an annotation is an expression: it raises what it likes
        raise TypeError(
            f"{name_of(function)}: its annotations cannot be read: {type(error).__name__}: {error}"
        ) from None


def _code(function: Function) -> Function:
    """The function that annotations and defaults were written at."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    if inspect.isfunction(function) or inspect.ismethod(function):
        return function
    return type(function).__call__ if hasattr(type(function), "__call__") else function  # noqa: B004 - the method is wanted


def _rest_name(function: Function) -> str:
    kinds = parameters_of(function).values()
    return next(each.name for each in kinds if each.kind is inspect.Parameter.VAR_KEYWORD)


def _says_nothing(returned: object) -> bool:
    if returned in (_NOTHING, Any, None, NoneType, Message):
        return True
    return (typing.get_origin(returned) or returned) in _ITERATORS


def _field_default(field: object) -> object:
    default = getattr(field, "default", _NOTHING)
    return _NOTHING if default is Ellipsis or type(default).__name__ == "PydanticUndefinedType" else default


def _shown_default(default: object) -> Json:
    try:
        return to_json(default)
    except TypeError:
        return UNSET  # Optional all the same; only what stands in its place cannot be told.


def _refused(skill: str, path: str, message: str) -> InputRefused:
    where = path or "input"
    return InputRefused(
        f"The input does not fit {skill}: {where}: {message}", errors=[{"path": where, "message": message}], skill=skill
    )
