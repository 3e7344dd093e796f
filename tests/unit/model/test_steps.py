"""Steps: which are good, and what each one is given."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.content import Blob, Data, Text
from dragoman.model.errors import BadParams, TooLarge
from dragoman.model.operations import Step
from dragoman.model.steps import MOST_REFERENCES, MOST_STEPS, Then, check_steps, input_of, parts_of_input

MOST = 1000
RESULTS: dict[str, Any] = {
    "0": {"a": [10, {"b/c": {"~": "deep"}}], "": "empty key", "01": "not an index"},
    "-": ["x", "y"],
    "w": {"text": "hi"},
}

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=12,
)


def given_to(value: Any) -> Any:
    return input_of(Step(skill="s", input=value), RESULTS, MOST)


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("0", RESULTS["0"]),
        ("0#", RESULTS["0"]),
        ("-", ["x", "y"]),
        ("-#/1", "y"),
        ("0#/a/0", 10),
        ("0#/a/1/b~1c/~0", "deep"),
        ("0#/", "empty key"),
        ("0#/01", "not an index"),
        ("w#/text", "hi"),
    ],
)
def test_a_reference_is_replaced_by_what_it_names(reference: str, found: Any) -> None:
    assert given_to({"$from": reference}) == found
    assert given_to({"in": [{"a": {"$from": reference}}]}) == {"in": [{"a": found}]}


@pytest.mark.parametrize("reference", ["0#/b", "0#/a/2", "0#/a/-", "0#/a/01", "0#/a/0/x", "w#/text/0", "0#/a/٣"])
def test_a_reference_to_nothing_is_refused_when_it_is_looked_up(reference: str) -> None:
    with pytest.raises(BadParams):
        given_to({"$from": reference})


def test_without_an_input_a_step_is_given_the_result_before() -> None:
    assert input_of(Step(skill="s"), RESULTS, MOST) == ["x", "y"]
    assert given_to({}) == {}


@given(values)
def test_what_refers_to_nothing_stays_as_it_is(value: Any) -> None:
    wrapped = {"kept": value, "$from": 1}
    check_steps((Step(skill="s", input=wrapped),), "then")
    assert given_to(wrapped) == wrapped


@given(values)
def test_any_result_is_found_again_anywhere(value: Any) -> None:
    results = {"0": {"at": [value]}, "-": None}
    step = Step(skill="s", input={"x": [{"y": {"$from": "0#/at/0"}}]})
    check_steps((step,), "then")
    assert input_of(step, results, 10_000) == {"x": [{"y": value}]}


def test_results_are_counted_before_they_are_copied() -> None:
    big = {"0": "x" * 400, "-": None}
    two = [{"$from": "0"}] * 2
    assert input_of(Step(skill="s", input={"all": two}), big, MOST) == {"all": [big["0"]] * 2}
    with pytest.raises(TooLarge):
        input_of(Step(skill="s", input={"all": [*two, {"$from": "0"}]}), big, MOST)


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ({"a": 1}, (Data(value={"a": 1}),)),
        ([1], (Data(value={"results": [1]}),)),
        ("hi", (Text(text="hi"),)),
        (3, (Data(value={"value": 3}),)),
        (None, (Data(value={"value": None}),)),
        ({"parts": [{"kind": "file", "file": {"bytes": "aGk="}}]}, (Blob(raw=b"hi"),)),
    ],
)
def test_an_input_becomes_the_parts_of_a_message(value: Any, parts: tuple[Any, ...]) -> None:
    assert parts_of_input(value) == parts


def test_as_many_steps_and_references_as_there_may_be() -> None:
    step = Step(skill="s", input={"all": [{"$from": "0"}] * MOST_REFERENCES})
    half = (step,) * (MOST_STEPS // 2)
    good: Then = (*half, half)
    check_steps(good, "then")
    with pytest.raises(BadParams):
        check_steps((*good, step), "then")
