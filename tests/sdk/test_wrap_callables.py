"""Any callable as an agent: plain, async, with `yield`, an object; by words or by the types of its parameters."""

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from dragoman import Agent, Context, Data, File, Message, Text
from dragoman.errors import AgentError, InputRefused
from tests.support.run import run


def plain(text: str) -> str:
    """Says it again."""
    return f"plain {text}"


async def awaited(text: str) -> str:
    return f"awaited {text}"


def yielding(text: str) -> Iterator[str]:
    yield "yielding "
    yield text


async def streaming(text: str) -> AsyncIterator[str]:
    yield "streaming "
    yield text


# As many are written: no types.
untyped: Any = eval("lambda question: f'untyped {question}'")  # noqa: S307 - pyright has no word for it


class Thing:
    """An object that can be called."""

    def __call__(self, text: str) -> str:
        return f"thing {text}"

    async def method(self, text: str) -> str:
        return f"method {text}"


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (plain, "plain hi"),
        (awaited, "awaited hi"),
        (yielding, "yielding hi"),
        (streaming, "streaming hi"),
        (untyped, "untyped hi"),
        (Thing(), "thing hi"),
        (Thing().method, "method hi"),
        (functools.partial(plain), "plain hi"),
    ],
)
def test_what_it_returns_or_yields_is_the_answer(function: Any, said: str) -> None:
    agent = Agent.wrap(function, name="It")
    assert run(agent.test.call(message="hi")).result == said
    assert run(agent.test.call("chat", {"text": "hi"})).result == said
    assert run(agent.test.call("chat", {"anything": "hi"})).result == said, "the text of its only field"


@pytest.mark.parametrize("function", [yielding, streaming])
def test_what_it_yields_is_told_as_it_comes(function: Any) -> None:
    tried = run(Agent.wrap(function).test.call(message="hi"))
    assert [event.data["content"] for event in tried.events if event.name == "chunk"] == [f"{function.__name__} ", "hi"]


def test_it_is_named_and_described_as_it_is_written() -> None:
    card = Agent.wrap(plain).card()
    assert (card["id"], card["name"], card["description"]) == ("agt_plain", "plain", "Says it again.")
    assert Agent.wrap(Thing()).name == "Thing"


def test_parameters_with_types_are_the_input() -> None:
    def add(a: int, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    agent = Agent.wrap(add, skill="add")
    (skill,) = agent.card()["skills"]
    assert skill["input_schema"]["required"] == ["a"] and skill["output_schema"]["type"] == "object"
    assert run(agent.test.call("add", {"a": 2})).result == {"sum": 3}
    with pytest.raises(InputRefused, match="a: required"):
        run(agent.test.call("add", {}))


def test_context_and_message_are_handed_in() -> None:
    async def tell(message: Message, ctx: Context) -> str:
        return f"{message.text} from {ctx.caller.id}"

    assert run(Agent.wrap(tell).test.call(message="hi", caller="ada")).result == "hi from ada"


def test_fields_without_a_name_of_their_own_are_taken_too() -> None:
    def anything(**fields: Any) -> dict[str, Any]:
        return fields

    assert run(Agent.wrap(anything).test.call("chat", {"a": 1, "b": "two"})).result == {"a": 1, "b": "two"}


def test_words_first_and_then_a_value_is_the_value() -> None:
    async def report(text: str) -> AsyncIterator[Any]:
        yield "working"
        yield {"words": 2}

    assert run(Agent.wrap(report).test.call(message="hi")).result == {"words": 2}


def test_several_values_are_parts_beside_the_last() -> None:
    async def report(text: str) -> AsyncIterator[Any]:
        yield File(bytes=b"1", name="one.txt")
        yield File(bytes=b"2", name="two.txt")
        yield {"files": 2}

    tried = run(Agent.wrap(report).test.call(message="hi"))
    assert tried.result == {"files": 2}
    assert [part.name for part in tried.artifacts[0].parts if isinstance(part, File)] == ["one.txt", "two.txt"]


@pytest.mark.parametrize("number", [0, 1])
def test_what_it_raises_is_told_by_its_name(number: int) -> None:
    def fail(text: str) -> str:
        raise ValueError("the password is 1234")

    async def fail_late(text: str) -> AsyncIterator[str]:
        yield "half"
        raise ValueError("the password is 1234")

    with pytest.raises(AgentError, match=r"^chat failed: ValueError"):
        run(Agent.wrap((fail, fail_late)[number]).test.call("chat", {"text": "hi"}))


def test_a_stop_iteration_is_an_error_like_any_other() -> None:
    def stop(text: str) -> str:
        return next(iter(()))

    with pytest.raises(AgentError, match="failed: RuntimeError"):
        run(Agent.wrap(stop).test.call(message="hi"))


def test_words_and_data_are_both_said() -> None:
    message = Message(parts=(Text("Count these:"), Data({"a": 1})))
    assert run(Agent.wrap(plain).test.call(message=message)).result == 'plain Count these:\n{"a":1}'


def test_a_parameter_without_a_json_form_is_refused_at_once() -> None:
    def odd(text: str, thing: Context | complex) -> str:
        return text

    with pytest.raises(TypeError, match="thing"):
        Agent.wrap(odd)
