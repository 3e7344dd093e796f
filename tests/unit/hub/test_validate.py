"""Skills' schemas: strangers' data, compiled once, and harmless."""

import time
from typing import Any

import pytest

from dragoman.hub.validate import compile_skill, filled
from dragoman.model.agent import AgentCard, Skill
from dragoman.model.compiled import Compiled
from dragoman.model.errors import BadParams

CARD = AgentCard(id="a", name="a")
SEARCH = {
    "type": "object",
    "properties": {
        "query": {"type": "string"},
        "max_results": {"type": "integer", "default": 10},
        "where": {"type": "object", "properties": {"lang": {"type": "string", "default": "en"}}},
    },
    "required": ["query"],
}


def compiled(schema: dict[str, Any]) -> Compiled:
    return compile_skill(CARD, Skill(id="s", name="s", input_schema=schema))


def test_each_failing_path_is_named() -> None:
    check = compiled(SEARCH).input
    assert check is not None
    assert check({"query": "x"}) == []
    assert {error["path"] for error in check({"max_results": "ten"})} == {"max_results", "query"}
    assert check({"query": "x", "where": {"lang": 1}})[0]["path"] == "where.lang"


def test_defaults_are_filled_in_without_touching_what_was_sent() -> None:
    given: dict[str, Any] = {"query": "x", "where": {}}
    assert filled(given, compiled(SEARCH).defaults) == {"query": "x", "max_results": 10, "where": {"lang": "en"}}
    assert given == {"query": "x", "where": {}}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://169.254.169.254/latest"},
        {"$ref": "file:///etc/passwd"},
        {"type": 7},
        {"properties": {"x": {"description": "y" * 70_000}}},
        {"pattern": "("},
    ],
)
def test_a_schema_that_cannot_be_used_is_refused_by_name(schema: dict[str, Any]) -> None:
    with pytest.raises(BadParams) as caught:
        compiled(schema)
    assert caught.value.details["errors"][0]["path"] == "agent_card.skills.s.input_schema"


def test_a_schema_nested_too_deep_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(40):
        schema = {"properties": {"x": schema}}
    with pytest.raises(BadParams):
        compiled(schema)


def test_a_catastrophic_pattern_costs_no_time() -> None:
    check = compiled({"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}).input
    assert check is not None
    began = time.process_time()
    assert check({"x": "a" * 50_000 + "b"})
    assert time.process_time() - began < 1.0
