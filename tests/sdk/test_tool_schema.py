"""What tools take and say, without a hub: schemas that every framework accepts, results and failures in words."""

from typing import Any

import pytest

from dragoman.errors import (
    AgentError,
    AgentNotFound,
    AgentTimeout,
    CallLoop,
    DragomanError,
    HubUnreachable,
    InputRefused,
    InputRequired,
    NotAuthorized,
    RateLimited,
)
from dragoman.model.objects import plain_part
from dragoman.model.tool_inputs import IN_WORDS
from dragoman.sdk.client.results import CallResult
from dragoman.sdk.client.tool_schema import Form, takes_of
from dragoman.sdk.client.tool_words import MOST_CHARACTERS, value_of, words_of, words_of_error
from dragoman.sdk.content import Data, File, Text, to_model

NAME: dict[str, Any] = {"name": {"type": "string"}}
NAMED: dict[str, Any] = {"type": "object", "properties": NAME}


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"type": "object", "title": "Input"}, True])
def test_a_skill_that_says_nothing_of_its_input_is_talked_to(schema: Any) -> None:
    takes = takes_of(schema)
    assert takes.schema == IN_WORDS
    assert takes.content(takes.given({"message": "hello"})) == (None, "hello")
    assert takes.content(takes.given({"size": 48})) == ({"size": 48}, None)
    with pytest.raises(InputRefused, match="message: required"):
        takes.content(takes.given(None))


@pytest.mark.parametrize(
    ("schema", "shown"),
    [
        (NAMED, NAMED),
        ({"properties": NAME}, NAMED),
        ({"type": ["object", "null"], "properties": NAME, "$schema": "…", "title": "T"}, NAMED),
        ({**NAMED, "anyOf": [{"required": ["name"]}]}, NAMED),
        ({"$ref": "#/$defs/In", "$defs": {"In": NAMED}}, {**NAMED, "$defs": {"In": NAMED}}),
        ({"type": "object", "additionalProperties": True}, {"type": "object", "properties": {}, "additionalProperties": True}),  # noqa: E501
    ],
)  # fmt: skip
def test_an_object_stays_one_without_what_models_refuse(schema: Any, shown: Any) -> None:
    takes = takes_of(schema)
    assert (takes.schema, takes.form) == (shown, Form.OBJECT)
    assert takes.content({"name": "Ada"}) == ({"name": "Ada"}, None)


OTHERS: list[tuple[Any, Any, Any]] = [
    ({"type": "string"}, "hello", (None, "hello")),
    ({"type": "array", "items": {"$ref": "#/$defs/I"}, "$defs": {"I": {}}}, [1], (None, Data([1]))),
    ({"anyOf": [NAMED, {"type": "object", "properties": {}}]}, {"name": "Ada"}, ({"name": "Ada"}, None)),
]


@pytest.mark.parametrize(("schema", "given", "content"), OTHERS)
def test_anything_else_is_put_into_a_field(schema: Any, given: Any, content: Any) -> None:
    takes = takes_of(schema)
    assert takes.schema["properties"].keys() == {"input"}
    assert takes.schema["required"] == ["input"]
    assert takes.schema.get("$defs") == schema.get("$defs")
    assert takes.content(takes.given({"input": given})) == content


def test_null_for_what_may_be_left_out_is_left_out() -> None:
    properties = {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}, "c": {}, "d": {"type": "string"}}
    takes = takes_of({"type": "object", "properties": properties, "required": ["d"]})
    assert takes.given({"a": None, "b": None, "c": None, "d": None, "e": None}) == {"b": None, "c": None, "d": None, "e": None}  # noqa: E501  # fmt: skip


@pytest.mark.parametrize("written", ["{", "[1]", "3", '"a"'])
def test_arguments_that_are_no_object_are_refused(written: str) -> None:
    with pytest.raises(InputRefused, match=r"not JSON|no JSON object"):
        takes_of(NAMED).given(written)
    assert takes_of(NAMED).given("") == takes_of(NAMED).given(None) == {}


def result(*parts: Text | Data | File) -> CallResult:
    return CallResult({"parts": [plain_part(part) for part in to_model(parts)]}, {})


@pytest.mark.parametrize(
    ("given", "value", "words"),
    [
        (CallResult({"text": "hello"}, {}), "hello", "hello"),
        (CallResult({"a": [1]}, {}), {"a": [1]}, '{"a":[1]}'),
        (CallResult({}, {}), None, "Done. There is nothing to show for it."),
        (result(Data([1, 2])), [1, 2], "[1,2]"),
        (result(Data(3)), 3, "3"),
        (result(Text("a"), Text("b")), "ab", "ab"),
    ],
)
def test_a_result_is_text_where_it_is_text(given: CallResult, value: Any, words: str) -> None:
    assert value_of(given) == value
    assert words_of(value_of(given)) == words


def test_of_a_file_a_model_reads_the_name_alone() -> None:
    given = result(
        Text("Look:"), Data({"n": 1}), File(bytes=b"png", name="a.png", mime_type="image/png"), File(uri="https://x/y")
    )
    assert words_of(value_of(given)) == 'Look:\n{"n":1}\n[file: a.png, image/png, 3 bytes]\n[file: https://x/y]'


def test_a_long_result_is_cut() -> None:
    assert words_of("x" * (MOST_CHARACTERS + 1)) == "x" * MOST_CHARACTERS + "… (cut)"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            InputRefused("The input does not fit", errors=[{"path": "n", "message": "too small"}]),
            "VALIDATION_ERROR: The input does not fit. n: too small. Correct the arguments and call again.",
        ),
        (RateLimited("Slowly", retry_after_s=7), "RATE_LIMITED: Slowly. Try again in 7 s, or use another tool."),
        (AgentTimeout("Late"), "AGENT_TIMEOUT: Late. Ask for less at once, or use another tool."),
        (AgentError("Broken"), "AGENT_ERROR: Broken. Do not repeat this call; use another tool or say so."),
        (AgentError("Broken", retryable=True), "AGENT_ERROR: Broken. Trying again may help."),
        (AgentNotFound("Gone!"), "AGENT_NOT_FOUND: Gone! This tool is gone; use another one."),
        (NotAuthorized("No"), "AUTHORIZATION_ERROR: No. This tool may not be used; use another one."),
        (HubUnreachable("Dark"), "HUB_UNREACHABLE: Dark. No tool works until that is mended; say so."),
        (
            InputRequired("Which size?"),
            "INPUT_REQUIRED: Which size? Call this tool again with the answer among its arguments; "
            "ask the user if need be.",
        ),
        (
            CallLoop("Round"),
            "CALL_LOOP: Round. That agent already waits for this answer; do it without this tool.",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, DragomanError) else "",
)
def test_a_failure_says_what_a_model_can_do_about_it(error: DragomanError, words: str) -> None:
    assert words_of_error(error) == words
