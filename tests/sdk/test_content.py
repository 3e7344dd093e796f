"""Parts and messages: their JSON form both ways, and what a handler's value becomes."""

import dataclasses
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.errors import AgentError, BadParams
from dragoman.sdk.client.results import CallResult
from dragoman.sdk.content import (
    Artifact,
    Data,
    File,
    Message,
    Part,
    Text,
    artifact_from_wire,
    artifact_to_wire,
    from_model,
    message_from_wire,
    message_of,
    message_of_input,
    message_to_wire,
    part_from_wire,
    part_to_wire,
    to_model,
)
from dragoman.sdk.work.returned import Answer, answer_of, parts_of

metadata = st.none() | st.dictionaries(st.text(), st.integers(), min_size=1, max_size=2)
names = st.none() | st.text(min_size=1)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(Text, st.text(), metadata),
    st.builds(Data, st.none() | st.text() | st.lists(st.integers()), metadata),
    st.builds(File, bytes=st.binary(), name=names, mime_type=names, metadata=metadata),
    st.builds(File, uri=st.text(), name=names, mime_type=names, metadata=metadata),
)


@given(st.lists(parts, max_size=3), st.text(), metadata)
def test_what_travels_arrives_as_it_was(said: list[Part], name: str, extra: dict[str, int] | None) -> None:
    message = Message(id=name, role="agent", parts=tuple(said), metadata=extra)
    assert message_from_wire(_travelled(message_to_wire(message))) == message
    artifact = Artifact(id=name, parts=tuple(said), name=name or None, metadata=extra)
    assert artifact_from_wire(_travelled(artifact_to_wire(artifact))) == artifact
    assert from_model(to_model(said)) == tuple(said)


def _travelled(value: dict[str, Any]) -> Any:
    return msgspec.json.decode(msgspec.json.encode(value))


def test_a_part_has_one_form() -> None:
    assert part_to_wire(Text("hi")) == {"text": "hi"}
    assert part_to_wire(Data({"a": 1}, {"m": 1})) == {"data": {"a": 1}, "metadata": {"m": 1}}
    assert part_to_wire(File(bytes=b"x", name="n", mime_type="t/x")) == {
        "file": {"bytes": "eA==", "name": "n", "mime_type": "t/x"}
    }
    assert part_to_wire(File(uri="https://x.example/a")) == {"file": {"uri": "https://x.example/a"}}


@pytest.mark.parametrize(
    "wrong",
    [None, "text", {}, {"text": 5}, {"file": {}}, {"file": {"bytes": "%"}}, {"file": {"bytes": "eA==", "uri": "u"}}],
)
def test_what_is_no_part_is_refused(wrong: Any) -> None:
    with pytest.raises(BadParams):
        part_from_wire(wrong)
    with pytest.raises(BadParams):
        message_from_wire({"role": "user", "parts": [wrong]})


def test_a_file_has_bytes_or_an_address_and_does_not_print_its_bytes() -> None:
    with pytest.raises(ValueError, match="either bytes= or uri="):
        File(name="n")
    with pytest.raises(ValueError, match="either bytes= or uri="):
        File(bytes=b"x", uri="u")
    assert repr(File(bytes=b"secret", name="n")) == "File(bytes=<6 bytes>, name='n')"


def test_a_message_tells_its_words_and_its_data() -> None:
    message = Message(parts=(Text("one"), Data({"a": 1}), Text("two"), Data(2), File(uri="u")))
    assert (message.text, message.data, message.files) == ("one\ntwo", {"a": 1}, (File(uri="u"),))
    assert (Message().text, Message().data) == ("", None)
    assert message_of("hi") == Message(parts=(Text("hi"),))
    assert message_of({"a": 1}) == Message(parts=(Data({"a": 1}),))


def test_an_input_object_is_the_message_it_stands_for() -> None:
    assert message_of_input({"text": "hi"}).parts == (Text("hi"),)
    assert message_of_input({"a": 1}).parts == (Data({"a": 1}),)
    shown = {"parts": [{"kind": "text", "text": "see"}, {"kind": "file", "file": {"uri": "u", "mimeType": "t/x"}}]}
    assert message_of_input(shown).parts == (Text("see"), File(uri="u", mime_type="t/x"))


class Point(msgspec.Struct):
    x: int


@dataclasses.dataclass
class Size:
    width: int


class Model:
    def model_dump(self, *, mode: str) -> dict[str, str]:
        return {"mode": mode}


FILE = File(uri="u")
DAY = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "became", "answer"),
    [
        (None, (), Answer()),
        ("words", (Text("words"),), Answer(result="words")),
        ({"a": 1}, (Data({"a": 1}),), Answer(result={"a": 1})),
        ([1, "b"], (Data([1, "b"]),), Answer(result=[1, "b"])),
        ([], (Data([]),), Answer(result=[])),
        (5, (Data(5),), Answer(result=5)),
        (False, (Data(False),), Answer(result=False)),
        (Point(1), (Data({"x": 1}),), Answer(result={"x": 1})),
        ([Point(1)], (Data([{"x": 1}]),), Answer(result=[{"x": 1}])),
        (Size(2), (Data({"width": 2}),), Answer(result={"width": 2})),
        ({"m": Model()}, (Data({"m": {"mode": "json"}}),), Answer(result={"m": {"mode": "json"}})),
        (DAY, (Data("2026-01-02T00:00:00Z"),), Answer(parts=(Data("2026-01-02T00:00:00Z"),))),
        (CallResult({"a": 1}, {}), (Data({"a": 1}),), Answer(result={"a": 1})),
        (Text("words"), (Text("words"),), Answer(result="words")),
        (Text("words", {"m": 1}), (Text("words", {"m": 1}),), Answer(parts=(Text("words", {"m": 1}),))),
        (Data(Point(1)), (Data({"x": 1}),), Answer(result={"x": 1})),
        (Data("words"), (Data("words"),), Answer(parts=(Data("words"),))),
        (Data(None), (Data(None),), Answer(parts=(Data(None),))),
        (FILE, (FILE,), Answer(parts=(FILE,))),
        ([FILE, "b", {"a": 1}], (FILE, Text("b"), Data({"a": 1})), Answer(parts=(FILE, Text("b"), Data({"a": 1})))),
        (Message(parts=(Text("a"), FILE)), (Text("a"), FILE), Answer(parts=(Text("a"), FILE))),
    ],
)  # fmt: skip
def test_what_a_handler_returns_becomes_what_its_caller_gets(
    value: object, became: tuple[Part, ...], answer: Answer
) -> None:
    assert parts_of(value) == became
    assert answer_of(value) == answer


def test_what_has_no_json_form_is_named() -> None:
    with pytest.raises(AgentError, match="returned a object, which has no JSON form"):
        parts_of(object())
    with pytest.raises(AgentError):
        answer_of({"deep": {"inside": object()}})
