"""`@tool`: a function that a model may call. It stays the same function, and says what it takes.

Not published: `agent.skill(function)` does that.
"""

from collections.abc import Callable
from typing import Final, ParamSpec, Protocol, TypeVar, overload

import msgspec

from dragoman.model.json import JsonObject
from dragoman.sdk.agent.signature import Function, Signature, description_of, name_of

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)

_ATTRIBUTE: Final = "__dragoman_tool__"


class Tool(Protocol[P, R_co]):
    """A function with what a model has to know of it."""

    name: str
    description: str
    input_schema: JsonObject

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co:
        """Call the function."""
        ...

    def to_openai_schema(self) -> JsonObject:
        """The tool as chat completions take it."""
        ...


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A function that a model may call, and all that is known of it."""

    name: str
    description: str
    function: Function
    signature: Signature
    given_schema: JsonObject | None = None  # in place of the signature's

    @property
    def input_schema(self) -> JsonObject:
        """What the function takes."""
        return self.signature.input_schema if self.given_schema is None else self.given_schema

    def to_openai_schema(self) -> JsonObject:
        """The tool as chat completions take it."""
        function: JsonObject = {"name": self.name, "parameters": self.input_schema}
        if self.description:
            function["description"] = self.description
        return {"type": "function", "function": function}


@overload
def tool(function: Callable[P, R_co], /) -> Tool[P, R_co]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, input_schema: JsonObject | None = None
) -> Callable[[Callable[P, R_co]], Tool[P, R_co]]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: JsonObject | None = None,
) -> object:
    """Make a function a tool: its schema comes from its type hints, its description from its docstring.

    Raises TypeError naming the parameter whose type has no JSON form.
    """

    def made(function: Function) -> Function:
        described = _described(function, name, description, input_schema)
        for attribute, value in (
            (_ATTRIBUTE, described),
            ("name", described.name),
            ("description", described.description),
            ("input_schema", described.input_schema),
            ("to_openai_schema", described.to_openai_schema),
        ):
            setattr(function, attribute, value)
        return function

    return made if function is None else made(function)


def describe(function: Function) -> Described:
    """What is known of a tool; of a function that was never made one, too."""
    known = getattr(function, _ATTRIBUTE, None)
    if not isinstance(known, Described):
        return _described(function, None, None, None)
    if known.function is function:
        return known
    # Of a method the decorator saw the function alone, with its `self`.
    return _described(function, known.name, known.description, known.given_schema)


def _described(
    function: Function, name: str | None, description: str | None, input_schema: JsonObject | None
) -> Described:
    shown = name or name_of(function)
    return Described(
        name=shown,
        description=description_of(function) if description is None else description,
        function=function,
        signature=Signature(function, name=shown),
        given_schema=input_schema,
    )
