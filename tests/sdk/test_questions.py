"""Answers as the type that was asked for."""

from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.sdk.content import Data, Message, Text, message_of
from dragoman.sdk.work.questions import answer_as


class Form(msgspec.Struct):
    words: int
    tone: str = "plain"


@pytest.mark.parametrize(
    ("said", "kind", "meant"),
    [
        ("hello", None, "hello"),
        ({"answer": "hello"}, None, "hello"),
        ({"a": 1, "b": 2}, None, '{"a":1,"b":2}'),
        (5, None, "5"),
        ("5", str, "5"),
        ("5", int, 5),
        (" 5 \n", int, 5),
        ("5", float, 5.0),
        (5.0, int, 5),
        ({"answer": "5"}, int, 5),
        ({"text": 5}, int, 5),
        ("true", bool, True),
        ("Yes", bool, True),
        ("n", bool, False),
        ("a", Literal["a", "b"], "a"),
        ('["x"]', list[str], ["x"]),
        ('{"words": 5}', Form, Form(5)),
        ({"words": 5}, Form, Form(5)),
        ({"form": {"words": 5, "tone": "warm"}}, Form, Form(5, "warm")),
        ({"a": 1}, dict[str, int], {"a": 1}),
        ("null", int | None, None),
        ("5", int | None, 5),
    ],
)  # fmt: skip
def test_an_answer_is_taken_as_people_write_it(said: Any, kind: Any, meant: Any) -> None:
    answer = answer_as(message_of(said), kind)
    assert answer == meant and type(answer) is type(meant)


@pytest.mark.parametrize(
    ("said", "kind"), [("lots", int), ("maybe", bool), ({"words": "many"}, Form), ("c", Literal["a"])]
)
def test_one_that_does_not_fit_says_what_was_expected(said: Any, kind: Any) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"[Ee]xpected|Invalid"):
        answer_as(message_of(said), kind)


def test_words_beside_data_are_the_second_choice() -> None:
    assert answer_as(Message(parts=(Text("5"), Data({"other": "thing", "more": 1}))), int) == 5


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.lists(st.integers()))
def test_a_value_comes_back_from_its_json(value: Any) -> None:
    kind: type[object] = value.__class__
    assert answer_as(message_of(msgspec.json.encode(value).decode()), kind) == value
