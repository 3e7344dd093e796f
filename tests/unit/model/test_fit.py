"""Content made to fit what a target takes: nothing is lost silently."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects import DIALECTS
from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.fit import Feature, changed, fit_parts
from dragoman.model.objects import answer_object, input_object, parts_of_object

PARTS = frozenset({Feature.PARTS, Feature.INLINE})
ONE_TEXT = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "n": {"type": "integer"}},
    "required": ["query"],
}


def test_an_object_is_the_input_itself() -> None:
    assert input_object((Data(value={"a": 1}),), None) == {"a": 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [("hello", {"query": "hello"}), ('{"query": "x"}', {"query": "x"}), ("{not json", {"query": "{not json"})],
)
def test_a_text_becomes_the_one_text_property_or_the_object_it_is(text: str, expected: dict[str, str]) -> None:
    assert input_object((Text(text=text),), ONE_TEXT) == expected
    assert input_object((Text(text="hello"),), None) == {"text": "hello"}


def at_hub(index: int, part: Blob) -> str:
    return f"http://hub/{index}/{len(part.raw)}"


def fitted(parts: tuple[Part, ...], features: frozenset[Feature], *, text_only: bool = False) -> tuple[Part, ...]:
    return fit_parts(parts, features, text_only=text_only, host=at_hub)


@pytest.mark.parametrize("parts", [(Text(text="a"), Text(text="b")), (Blob(raw=b"x"),), (Data(value=[1]),)])
def test_what_is_no_object_is_listed_part_by_part_where_only_one_is_taken(parts: tuple[Part, ...]) -> None:
    (only,) = fitted(parts, frozenset())
    assert isinstance(only, Data)
    assert len(only.value["parts"]) == len(parts)


def test_a_list_of_parts_with_a_file_in_it_becomes_those_parts_again() -> None:
    parts = (Text(text="a"), Blob(raw=b"x", filename="f", media_type="text/plain"), Link(url="http://x/"))
    assert parts_of_object(input_object(parts, None)) == parts


@pytest.mark.parametrize(
    "value",
    [
        {"parts": []},
        {"parts": [{"kind": "text", "text": "a"}]},
        {"parts": [{"kind": "file", "file": {"uri": "http://x/", "bytes": "AA=="}}]},
        {"parts": [{"kind": "file", "file": {"bytes": "not base64"}}]},
        {"parts": [{"kind": "file", "file": {"uri": "http://x/"}, "more": 1}]},
        {"parts": [{"kind": "file", "file": {"uri": "http://x/"}}, 1]},
        {"parts": [{"kind": "file", "file": {"uri": "http://x/"}}], "more": 1},
        [1],
    ],
)
def test_any_other_value_stays_the_value_it_is(value: object) -> None:
    assert parts_of_object(value) == (Data(value=value),)


def test_a_target_of_text_alone_gets_the_words_or_the_json() -> None:
    assert fitted((Data(value={"q": "hi"}),), PARTS, text_only=True) == (Text(text="hi"),)
    assert fitted((Data(value={"q": "hi", "n": 1}),), PARTS, text_only=True) == (Text(text='{"q":"hi","n":1}'),)
    assert fitted((Data(value={"q": "hi"}),), PARTS) == (Data(value={"q": "hi"}),)


def test_bytes_become_a_link_to_the_hub_where_the_wire_has_no_place_for_them() -> None:
    text, file = Text(text="a"), Blob(raw=b"x", filename="f", media_type="text/plain")
    link = Link(url="http://hub/1/1", filename="f", media_type="text/plain")
    assert fitted((text, file), frozenset({Feature.PARTS})) == (text, link)


ANY: tuple[tuple[Part, ...], ...] = (
    (Data(value={"a": 1}),),
    (Data(value={"a": 1}, metadata={"m": 1}),),
    (Data(value=[1]),),
    (Text(text="a"),),
    (Text(text="a", metadata={"m": 1}),),
    (Text(text="a"), Text(text="b")),
    (),
    (Blob(raw=b"x"),),
    (Text(text="a"), Blob(raw=b"x")),
    (Link(url="http://x/"),),
)
TO_AN_OBJECT: tuple[tuple[str, ...], ...] = (
    *((), ("part:metadata",), ("part:data",), ("part:text",), ("part:text", "part:metadata")),
    *(("parts:several",), ("parts:none",), (), (), ()),
)


@pytest.mark.parametrize(("parts", "facets"), [*zip(ANY, TO_AN_OBJECT, strict=True)])
def test_what_was_changed_is_said_by_its_facet_and_a_file_that_is_listed_is_not(
    parts: tuple[Part, ...], facets: tuple[str, ...]
) -> None:
    assert changed(parts, fitted(parts, frozenset())) == facets
    assert changed(parts, fitted(parts, PARTS)) == ()
    linked = ("part:blob",) if any(isinstance(part, Blob) for part in parts) else ()
    assert changed(parts, fitted(parts, frozenset({Feature.PARTS}))) == linked
    as_text = ("part:data",) if len(parts) == 1 and isinstance(parts[0], Data) else ()
    assert changed(parts, fitted(parts, PARTS, text_only=True))[:1] == as_text


@pytest.mark.parametrize("slug", DIALECTS)
def test_what_is_changed_for_a_dialect_stands_in_its_table(slug: str) -> None:
    dialect = DIALECTS[slug]
    declared = {loss.facet for loss in dialect.losses}
    said = {facet for parts in ANY for facet in changed(parts, fitted(parts, dialect.features))}
    assert said <= declared
    assert bool(said) == (not dialect.features >= PARTS)


def test_an_answer_is_always_one_object() -> None:
    assert answer_object((), None) == {}
    assert answer_object((Text(text="a"), Text(text="b")), None) == {"text": "ab"}
    summary = {"type": "object", "properties": {"summary": {"type": "string"}}}
    assert answer_object((Text(text="a"),), summary) == {"summary": "a"}
    several = answer_object((Text(text="a"), Blob(raw=b"\x00", filename="f"), Link(url="http://x/")), None)
    assert several == {
        "parts": [
            {"kind": "text", "text": "a"},
            {"kind": "file", "file": {"bytes": "AA==", "name": "f"}},
            {"kind": "file", "file": {"uri": "http://x/"}},
        ]
    }


@given(st.lists(st.one_of(st.builds(Text, text=st.text()), st.builds(Data, value=st.integers())), max_size=4))
def test_any_answer_has_a_form(parts: list[Part]) -> None:
    assert isinstance(answer_object(tuple(parts), None), dict)
