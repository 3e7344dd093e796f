"""Signatures as JSON Schema, and input objects as arguments."""

import dataclasses
import enum
import functools
import json
import sys
import textwrap
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.errors import InputRefused
from dragoman.sdk.agent.signature import Handed, Signature
from dragoman.sdk.content import File, Message
from dragoman.sdk.work.context import Context

CARD = json.loads((Path(__file__).parents[1] / "examples" / "platform" / "agent-card.json").read_text())
NOTHING: dict[Handed, object] = {}


class Color(enum.StrEnum):
    RED = "red"
    BLUE = "blue"


class Point(msgspec.Struct):
    """A place."""

    x: int
    y: int = 0


@dataclasses.dataclass
class Size:
    width: float


class Box(TypedDict):
    point: Point


class Title:
    """What pydantic's models look like to us."""

    def __init__(self, text: str) -> None:
        self.text = text

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {
            "$defs": {"Point": {"title": "Point", "type": "string"}},
            "title": "Title",
            "type": "object",
            "properties": {
                "text": {"title": "Text", "type": "string"},
                "at": {"title": "Where it is", "$ref": "#/$defs/Point"},
            },
        }

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> "Title":
        if not isinstance(value.get("text"), str):
            raise ValueError("text: should be a string")
        return cls(value["text"])

    def model_dump(self, *, mode: str) -> dict[str, Any]:
        return {"text": self.text, "mode": mode}


def test_the_documents_own_skill_has_the_documents_own_schema() -> None:
    async def web_search(query: Annotated[str, "Search query"], max_results: int = 10) -> dict[str, Any]:
        return {}

    assert Signature(web_search).input_schema == CARD["skills"][0]["input_schema"]


def test_what_is_handed_in_is_not_published() -> None:
    def ask(query: str, ctx: Context, said: Message, maybe: Context | None = None) -> None: ...

    signature = Signature(ask)
    assert signature.input_schema == {
        "type": "object",
        "properties": {"query": {"type": "string"}},
        "required": ["query"],
    }
    bound = signature.bind({"query": "x"}, {Handed.CONTEXT: "c", Handed.MESSAGE: "m"})
    assert bound.kwargs == {"query": "x", "ctx": "c", "said": "m", "maybe": "c"}


def test_every_kind_of_type_is_published_and_converted() -> None:
    def many(
        color: Color,
        point: Point,
        size: Size,
        box: Box,
        day: date,
        mode: Literal["a", "b"],
        raw: bytes,
        maybe: int | None,
    ) -> None: ...

    signature = Signature(many)
    schema = signature.input_schema
    assert schema["properties"]["point"] == {"$ref": "#/$defs/Point"}
    assert schema["$defs"]["Point"] == {
        "type": "object",
        "description": "A place.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    assert set(schema["$defs"]) == {"Color", "Point", "Size", "Box"}
    assert "title" not in str(schema)
    bound = signature.bind(
        {
            "color": "red", "point": {"x": 1}, "size": {"width": 2}, "box": {"point": {"x": 3}}, "day": "2026-01-02",
            "mode": "a", "raw": "eA==", "maybe": None,
        },
        NOTHING,
    )  # fmt: skip
    assert bound.kwargs == {
        "color": Color.RED, "point": Point(1), "size": Size(2.0), "box": {"point": Point(3)}, "day": date(2026, 1, 2),
        "mode": "a", "raw": b"x", "maybe": None,
    }  # fmt: skip


def test_a_default_is_published_and_left_to_the_function() -> None:
    sentinel = object()

    def search(tags: list[str] = ["a"], color: Color = Color.BLUE, other: Any = sentinel) -> None: ...  # noqa: B006

    signature = Signature(search)
    assert signature.input_schema["properties"] == {
        "tags": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        "color": {"$ref": "#/$defs/Color", "default": "blue"},
        "other": {},
    }
    assert "required" not in signature.input_schema
    assert signature.bind({}, NOTHING).kwargs == {}


def test_descriptions_and_bounds_come_from_what_is_noted_beside_a_type() -> None:
    def search(
        query: Annotated[str, msgspec.Meta(description="What", min_length=1)],
        tags: Annotated[list[str], "Which"] = [],  # noqa: B006
    ) -> None: ...

    assert Signature(search).input_schema["properties"] == {
        "query": {"type": "string", "description": "What", "minLength": 1},
        "tags": {"type": "array", "items": {"type": "string"}, "description": "Which", "default": []},
    }
    with pytest.raises(InputRefused, match="query: expected str of length >= 1"):
        Signature(search).bind({"query": ""}, NOTHING)


def test_unknown_fields_are_ignored_unless_the_skill_is_strict() -> None:
    def search(query: str) -> None: ...

    assert Signature(search).bind({"query": "x", "more": 1}, NOTHING).kwargs == {"query": "x"}
    strict = Signature(search, strict=True)
    assert strict.input_schema["additionalProperties"] is False
    with pytest.raises(InputRefused, match="more: unknown"):
        strict.bind({"query": "x", "more": 1}, NOTHING)


def test_a_rest_of_keywords_is_additional_properties() -> None:
    def points(name: str, **rest: Point) -> None: ...
    def anything(**rest: Any) -> None: ...

    signature = Signature(points)
    assert signature.input_schema["additionalProperties"] == {"$ref": "#/$defs/Point"}
    assert "Point" in signature.input_schema["$defs"]
    assert signature.bind({"name": "n", "a": {"x": 1}}, NOTHING).kwargs == {"name": "n", "a": Point(1)}
    with pytest.raises(InputRefused, match=r"expected int, got str"):
        signature.bind({"name": "n", "a": {"x": "1"}}, NOTHING)
    assert Signature(anything).input_schema == {"type": "object", "properties": {}, "additionalProperties": True}
    with pytest.raises(TypeError, match=r"strict=True and \*\*rest"):
        Signature(points, strict=True)


def test_what_cannot_be_published_is_named_when_it_is_decorated() -> None:
    class Socket: ...

    def several(*queries: str) -> None: ...
    def odd(query: str, socket: Socket) -> None: ...

    space: dict[str, Any] = {}
    exec("def unknown(query: 'Nowhere'): ...", space)  # noqa: S102 - no type checker lets it stand

    with pytest.raises(TypeError, match=r"several: \*queries cannot be published"):
        Signature(several)
    with pytest.raises(TypeError, match=r"odd: parameter 'socket' cannot be published: .*Socket"):
        Signature(odd)
    with pytest.raises(TypeError, match="unknown: the annotation of 'query' cannot be read"):
        Signature(space["unknown"])


def test_an_annotation_may_name_what_only_type_checkers_import() -> None:
    space = written(
        """
        def search(query: str, context: Context, told: Message | None = None) -> None: ...
        def unknown(query: str, place: list[Nowhere]) -> None: ...
        """
    )

    signature = Signature(space["search"])
    assert list(signature.input_schema["properties"]) == ["query"]
    assert [each.handed for each in signature.parameters] == [None, Handed.CONTEXT, Handed.MESSAGE]
    with pytest.raises(TypeError, match=r"unknown: the annotation of 'place' cannot be read: NameError: .*'Nowhere'"):
        Signature(space["unknown"])


def written(code: str) -> dict[str, Any]:
    """What a module of that text holds; before Python 3.14 it has to say that annotations are not evaluated."""
    space: dict[str, Any] = {}
    header = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
    exec(header + textwrap.dedent(code), space)  # noqa: S102 - no type checker lets it stand
    return space


def test_a_missing_or_wrong_field_is_named_with_what_was_expected() -> None:
    def search(query: str, place: Point, count: int = 1) -> None: ...

    signature = Signature(search)
    wrongs: list[tuple[dict[str, Any], str, str]] = [
        ({"place": {"x": 1}}, "query", "required"),
        ({"query": "x", "place": {}}, "place.x", "required"),
        ({"query": "x", "place": {"x": "1"}}, "place.x", "expected int, got str"),
        ({"query": "x", "place": {"x": 1}, "count": 1.5}, "count", "expected int, got float"),
        ({"query": "x", "place": {"x": 1}, "count": None}, "count", "expected int, got null"),
    ]
    for wrong, path, message in wrongs:
        with pytest.raises(InputRefused) as caught:
            signature.bind(wrong, NOTHING)
        assert caught.value.details["errors"] == [{"path": path, "message": message}]


def test_a_whole_number_with_a_point_is_the_integer_that_the_schema_admits() -> None:
    def search(count: int, share: float) -> None: ...

    assert Signature(search).bind({"count": 5.0, "share": 2}, NOTHING).kwargs == {"count": 5, "share": 2.0}


def test_models_are_taken_by_what_they_can_do() -> None:
    def show(title: Title, point: Point, titles: list[Title] | None = None) -> Title: ...

    signature = Signature(show)
    schema = signature.input_schema
    assert schema["properties"]["title"] == {
        "type": "object",
        "properties": {"text": {"type": "string"}, "at": {"title": "Where it is", "$ref": "#/$defs/Point_"}},
    }
    assert schema["$defs"]["Point_"] == {"type": "string"}
    assert schema["$defs"]["Point"]["type"] == "object"
    assert signature.output_schema is not None
    bound = signature.bind({"title": {"text": "t"}, "point": {"x": 1}}, NOTHING)
    assert isinstance(bound.kwargs["title"], Title) and bound.kwargs["title"].text == "t"
    with pytest.raises(InputRefused, match="title: text: should be a string"):
        signature.bind({"title": {}, "point": {"x": 1}}, NOTHING)


class Pages:
    async def read(self, page: int) -> str:
        return str(page)

    def __call__(self, page: int) -> str:
        return str(page)


def test_methods_partials_and_objects_are_functions_too() -> None:
    def two(first: int, /, second: str, *, third: bool = False) -> None: ...

    pages = {"page": {"type": "integer"}}
    assert Signature(Pages().read).input_schema["properties"] == pages
    assert Signature(Pages()).input_schema["properties"] == pages
    assert Signature(functools.partial(two, 1)).input_schema["properties"] == {
        "second": {"type": "string"},
        "third": {"type": "boolean", "default": False},
    }
    bound = Signature(two).bind({"first": 1, "second": "2", "third": True}, NOTHING)
    assert (bound.args, bound.kwargs) == ((1,), {"second": "2", "third": True})


def test_annotations_that_only_type_checkers_import_are_known() -> None:
    space: dict[str, Any] = {}
    exec("def ask(query: 'str', ctx: 'Context', said: 'Message | None' = None): ...", space)  # noqa: S102
    assert list(Signature(space["ask"]).input_schema["properties"]) == ["query"]


def answers_text() -> str: ...
def answers_object() -> dict[str, int]: ...
def answers_point() -> Point: ...
def answers_nothing() -> None: ...
def answers_number() -> int: ...
def answers_list() -> list[Point]: ...
def answers_file() -> list[File]: ...
def answers_maybe() -> Point | None: ...
def answers_any() -> Any: ...


async def answers_chunks():
    yield "x"


def answers_untold(): ...  # pyright: ignore


def test_what_is_returned_is_told_as_the_object_that_every_answer_is() -> None:
    assert Signature(answers_text).output_schema == {"type": "object", "properties": {"text": {"type": "string"}}}
    assert Signature(answers_object).output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}
    assert Signature(answers_point).output_schema == {
        "type": "object",
        "description": "A place.",
        "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
        "required": ["x"],
    }
    for silent in (
        answers_nothing, answers_number, answers_list, answers_file, answers_maybe, answers_any, answers_chunks,
        answers_untold,
    ):  # fmt: skip
        assert Signature(silent).output_schema is None, silent


class Everything(msgspec.Struct):
    name: str
    count: int
    share: float
    on: bool
    tags: list[str]
    inner: dict[str, int]
    color: Color
    maybe: int | None = None


@given(st.from_type(Everything))
def test_what_was_written_by_the_type_is_read_by_the_signature(made: Everything) -> None:
    def take(given: Everything, others: list[Everything]) -> None: ...

    sent = msgspec.json.decode(msgspec.json.encode({"given": made, "others": [made, made]}))
    if made.share != made.share or made.share in (float("inf"), float("-inf")):
        return  # JSON has no words for these
    assert Signature(take).bind(sent, NOTHING).kwargs == {"given": made, "others": [made, made]}


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["query", "place", "count", "x"]), json_values))
def test_whatever_comes_is_taken_or_refused_with_a_path(given: dict[str, Any]) -> None:
    def search(query: str, place: Point, count: int = 1, **rest: int) -> None: ...

    try:
        bound = Signature(search).bind(given, NOTHING)
    except InputRefused as refused:
        assert refused.details["errors"][0]["path"]
    else:
        assert isinstance(bound.kwargs["query"], str) and isinstance(bound.kwargs["place"], Point)
