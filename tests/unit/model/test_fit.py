"""Content made to fit what a target takes: nothing is lost silently."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.dialects.flatten import answer_object
from dragoman.model.content import Blob, Data, Link, Part, Text
from dragoman.model.errors import ContentRefused
from dragoman.model.fit import Feature, fit_parts, input_object

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


@pytest.mark.parametrize("parts", [(), (Text(text="a"), Text(text="b")), (Blob(raw=b"x"),), (Data(value=[1]),)])
def test_what_is_no_object_is_refused_where_only_one_is_taken(parts: tuple[Part, ...]) -> None:
    with pytest.raises(ContentRefused):
        fit_parts(parts, frozenset(), text_only=False)


def test_a_target_of_text_alone_gets_the_words_or_the_json() -> None:
    assert fit_parts((Data(value={"q": "hi"}),), PARTS, text_only=True) == (Text(text="hi"),)
    assert fit_parts((Data(value={"q": "hi", "n": 1}),), PARTS, text_only=True) == (Text(text='{"q":"hi","n":1}'),)
    assert fit_parts((Data(value={"q": "hi"}),), PARTS, text_only=False) == (Data(value={"q": "hi"}),)


def test_bytes_are_refused_where_the_wire_has_no_place_for_them() -> None:
    with pytest.raises(ContentRefused):
        fit_parts((Text(text="a"), Blob(raw=b"x")), frozenset({Feature.PARTS}), text_only=False)


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
