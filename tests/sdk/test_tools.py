"""`@tool`: the same function, with what a model has to know of it."""

import asyncio
import inspect
from typing import Annotated, Any, assert_type

import pytest

from dragoman.sdk.agent.tools import describe, tool


@tool
async def population(city: Annotated[str, "Where"], year: int = 2026) -> int:
    """Inhabitants of a city.

    Which nobody counts twice.
    """
    return len(city) * year


@tool(name="sum_of", description="Adds")
def add(first: int, second: int) -> int:
    return first + second


def plain(text: str) -> str:
    """Says it again"""
    return text


def untold(text: str) -> str:
    return text


SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "Where"}, "year": {"type": "integer", "default": 2026}},
    "required": ["city"],
}


@pytest.mark.req("P-64")
def test_a_tool_takes_its_schema_from_type_hints_and_docstring() -> None:
    assert (population.name, population.description) == ("population", "Inhabitants of a city.")
    assert population.input_schema == SCHEMA
    assert population.to_openai_schema() == {
        "type": "function",
        "function": {"name": "population", "description": "Inhabitants of a city.", "parameters": SCHEMA},
    }


@pytest.mark.req("P-64")
def test_a_tool_may_be_given_a_name_and_a_description() -> None:
    assert (add.name, add.description) == ("sum_of", "Adds")
    assert add.to_openai_schema()["function"]["parameters"]["required"] == ["first", "second"]


@pytest.mark.req("P-64")
def test_a_tool_is_still_the_same_function() -> None:
    assert tool(plain) is plain
    assert inspect.isfunction(population) and inspect.iscoroutinefunction(population)
    assert list(inspect.signature(population).parameters) == ["city", "year"]
    assert asyncio.run(_called()) == 4 * 2026
    assert_type(add(1, 2), int)
    assert add(1, 2) == 3


async def _called() -> int:
    return assert_type(await population("Oslo"), int)


@pytest.mark.req("P-64")
def test_what_has_no_json_form_is_named_at_once() -> None:
    def odd(place: object, thing: slice) -> None: ...

    with pytest.raises(TypeError, match="odd: parameter 'thing'"):
        tool(odd)


class Kit:
    factor = 3

    @tool
    def times(self, number: int) -> int:
        return number * self.factor

    def plus(self, number: int) -> int:
        return number + self.factor


def test_any_function_can_be_described() -> None:
    assert describe(population).input_schema == SCHEMA
    assert describe(untold).name == "untold"
    assert list(describe(Kit().plus).input_schema["properties"]) == ["number"]
    assert describe(untold).to_openai_schema()["function"].keys() == {"name", "parameters"}


def test_the_tools_of_a_class_are_described_without_their_self() -> None:
    method: Any = Kit.__dict__["times"].__get__(Kit())
    described = describe(method)
    assert described.name == "times" and list(described.input_schema["properties"]) == ["number"]
    assert described.function(number=2) == 6
