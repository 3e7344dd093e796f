"""`agent.test`: skills tried here and now."""

import asyncio

import pytest

from dragoman.model.errors import AgentError, AgentTimeout, InputRefused, SkillNotFound
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import Artifact, Data, File, Message, Text
from dragoman.sdk.errors import InputRequired
from dragoman.sdk.work.context import Context

agent = Agent("Tried")


@agent.skill
async def report(topic: str, ctx: Context) -> str:
    """Write a report"""
    words = await ctx.ask("How many words?", int)
    await ctx.artifact("draft ", name="draft", last=False)
    await ctx.artifact("two", name="draft", append=True)
    await ctx.progress(1.0)
    ctx.usage(input_tokens=words)
    return f"{words} words about {topic}"


@agent.skill
async def speak(ctx: Context) -> None:
    await ctx.stream("one ")
    await ctx.stream("two")


@agent.skill(name="sum_of")
def add(first: int) -> int:
    return first


@agent.skill
async def draw() -> list[File | Text]:
    return [Text("see"), File(uri="u")]


@agent.skill
async def fail(how: str, ctx: Context) -> None:
    if how == "refuse":
        ctx.refuse("not today")
    if how == "wait":
        await asyncio.Event().wait()
    raise {"own": InputRefused("no"), "other": ZeroDivisionError("1/0")}[how]


@agent.on_message
async def chat(message: Message, ctx: Context) -> str:
    return f"{message.text} after {[turn.text for turn in ctx.history]} in {ctx.conversation_id} by {ctx.caller.id}"


def test_a_call_gives_its_result_and_all_that_was_told() -> None:
    tried = asyncio.run(agent.test.call("report", {"topic": "tides"}, answers=["five", "5"]))
    assert tried.result == "5 words about tides" == tried.text
    assert [event.name for event in tried.events] == [
        "start", "ask", "ask", "artifact", "artifact", "progress", "usage", "complete",
    ]  # fmt: skip
    assert tried.artifacts == (Artifact(id="draft", name="draft", parts=(Text("draft "), Text("two"))),)
    assert tried.usage == {"input_tokens": 5}


def test_an_answer_may_be_words_data_a_part_or_a_message() -> None:
    for answer in ("5", 5, Data(5), {"words": 5}, Message(parts=(Text("5"),))):
        tried = asyncio.run(agent.test.call("report", {"topic": "x"}, answers=[answer]))
        assert tried.result == "5 words about x"


def test_streamed_words_and_parts_are_the_answer_too() -> None:
    assert asyncio.run(agent.test.call("speak")).result == "one two"
    drawn = asyncio.run(agent.test.call("draw"))
    assert (drawn.result, drawn.text) == (None, "see")
    assert drawn.artifacts[0].parts == (Text("see"), File(uri="u"))


def test_a_message_may_be_said_in_a_conversation() -> None:
    history = [Message(role="user", parts=(Text("before"),))]
    tried = asyncio.run(agent.test.call(message="hi", history=history, conversation_id="c1", caller="agt_ann"))
    assert tried.result == "hi after ['before'] in c1 by agt_ann"


def test_what_a_call_fails_with_is_raised() -> None:
    with pytest.raises(InputRefused, match="topic: required"):
        asyncio.run(agent.test.call("report", {}))
    with pytest.raises(InputRefused, match="does not fit sum_of: first: expected int, got str"):
        asyncio.run(agent.test.call("sum_of", {"first": "1"}))
    with pytest.raises(SkillNotFound, match="It has: chat, report"):
        asyncio.run(agent.test.call("nope"))
    with pytest.raises(InputRefused, match=r"^no$"):
        asyncio.run(agent.test.call("fail", {"how": "own"}))
    with pytest.raises(AgentError, match="fail failed: ZeroDivisionError") as caught:
        asyncio.run(agent.test.call("fail", {"how": "other"}))
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    with pytest.raises(AgentError, match="not today") as rejected:
        asyncio.run(agent.test.call("fail", {"how": "refuse"}))
    assert rejected.value.details == {"reason": "rejected"}
    with pytest.raises(AgentTimeout):
        asyncio.run(agent.test.call("fail", {"how": "wait"}, timeout_s=0.01))


def test_a_question_without_an_answer_is_raised() -> None:
    with pytest.raises(InputRequired, match="How many words") as caught:
        asyncio.run(agent.test.call("report", {"topic": "x"}))
    assert caught.value.question == "How many words?"
