"""What a handler may do about its call, and knows of it."""

import asyncio
import logging
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, assert_type

import msgspec
import pytest

from dragoman.model.json import JsonObject
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import Artifact, File, Message, Text
from dragoman.sdk.errors import HubUnreachable
from dragoman.sdk.work.context import Context
from dragoman.sdk.work.incoming import Caller, Reference
from tests.contracts.manual_clock import ManualClock
from tests.sdk.working import Told, call_of, worked, working

FILE = {"file": {"uri": "u"}}
FORM = {"type": "object", "properties": {"words": {"type": "integer"}}, "required": ["words"]}


def said(text: str) -> JsonObject:
    return {"id": "m", "role": "user", "parts": [{"text": text}]}


def test_progress_is_clamped_and_may_be_words_alone() -> None:
    agent = Agent("Reporting")

    @agent.skill
    async def report(ctx: Context) -> None:
        await ctx.progress(0.5, "half way")
        await ctx.progress(7)
        await ctx.progress(-1)
        await ctx.progress(message="still there")

    assert asyncio.run(worked(agent, call_of("report"))).all("progress") == [
        {"progress": 0.5, "message": "half way"},
        {"progress": 1.0},
        {"progress": 0.0},
        {"message": "still there"},
    ]


def test_chunks_are_the_answer_where_nothing_is_returned() -> None:
    agent = Agent("Streaming")

    @agent.skill
    async def speak(ctx: Context) -> None:
        await ctx.stream("one ")
        await ctx.stream("")
        await ctx.stream("two")

    told = asyncio.run(worked(agent, call_of("speak")))
    assert told.all("chunk") == [{"content": "one "}, {"content": "two"}]
    assert told.last == ("complete", {"status": "completed"})


def test_an_artifact_has_an_id_and_may_come_in_pieces() -> None:
    agent = Agent("Making")
    ids: list[str] = []

    @agent.skill
    async def make(ctx: Context) -> None:
        ids.append(await ctx.artifact({"a": 1}))
        ids.append(await ctx.artifact("more", append=True, last=False))
        ids.append(await ctx.artifact(File(uri="u"), name="plan", mime_type="image/png"))
        ids.append(await ctx.artifact("x", id="own", name="named"))
        ids.append(await ctx.artifact(["one", Text("two")]))

    told = asyncio.run(worked(agent, call_of("make")))
    assert ids == ["artifact-1", "artifact-1", "plan", "own", "artifact-2"]
    assert told.all("artifact") == [
        {"id": "artifact-1", "parts": [{"data": {"a": 1}}], "append": False, "last": True},
        {"id": "artifact-1", "parts": [{"text": "more"}], "append": True, "last": False},
        {"id": "plan", "name": "plan", "mime_type": "image/png", "parts": [FILE], "append": False, "last": True},
        {"id": "own", "name": "named", "parts": [{"text": "x"}], "append": False, "last": True},
        {"id": "artifact-2", "parts": [{"text": "one"}, {"text": "two"}], "append": False, "last": True},
    ]  # fmt: skip


def test_usage_adds_up() -> None:
    agent = Agent("Costly")

    @agent.skill
    async def spend(fail: bool, ctx: Context) -> str:
        ctx.usage(input_tokens=5, cost_usd=0.5)
        ctx.usage(input_tokens=2, output_tokens=1, model="m")
        if fail:
            raise ValueError
        return "done"

    sums = {"input_tokens": 7, "output_tokens": 1, "cost_usd": 0.5, "model": "m"}
    told = asyncio.run(worked(agent, call_of("spend", {"fail": False})))
    assert told.all("usage") == [sums]
    assert told.last[1]["usage"] == sums
    assert asyncio.run(worked(agent, call_of("spend", {"fail": True}))).all("usage") == [sums]


def test_log_lines_are_kept_here_and_told_to_the_hub_within_bounds(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent("Talkative")

    @agent.skill
    async def talk(ctx: Context) -> None:
        ctx.log.info("began", size=3, odd=object)
        ctx.log.warning("é" * 5000, dropped="x")
        ctx.log.error("fields", much="y" * 5000)
        for each in range(200):
            ctx.log.debug("line", each=each)

    with caplog.at_level(logging.INFO, "dragoman.agent"):
        told = asyncio.run(worked(agent, call_of("talk"), ManualClock()))
    lines = told.all("log")
    assert lines[0] == {
        "level": "info",
        "message": "began",
        "fields": {"size": 3, "odd": str(object)},
        "at": "2026-07-01T12:00:00.000Z",
    }
    assert [line["level"] for line in lines[1:4]] == ["warning", "error", "debug"]
    assert lines[1]["message"].endswith("é…") and "fields" not in lines[2]
    assert len(lines) == 100
    assert all(len(msgspec.json.encode(line)) <= 2048 for line in lines)
    first = caplog.records[0]
    assert first.message == "began" and getattr(first, "fields")["call_id"] == "a2a_call_1"  # noqa: B009


def test_what_is_noted_is_told_while_the_handler_works_and_from_threads() -> None:
    agent = Agent("Noting")

    @agent.skill
    def note(ctx: Context) -> None:
        ctx.log.info("from a thread")
        while not ctx.cancelled:
            pass

    async def noted() -> list[str]:
        async with working(agent, call_of("note")) as told:
            await told.until("log")
            told.work.cancel("seen")
        return told.names

    assert asyncio.run(noted()) == ["start", "log", "cancelled"]


# -- questions


class Form(msgspec.Struct):
    words: int


def _asking() -> Agent:
    agent = Agent("Asking")

    @agent.skill
    async def ask(ctx: Context, timeout_s: float | None = None) -> list[object]:
        words = assert_type(await ctx.ask("How many?", int, timeout_s), int)
        name = assert_type(await ctx.ask("Whose?"), str)
        tone: Literal["a", "b"] = await ctx.ask("Which?", Literal["a", "b"])
        return [words, name, tone, assert_type(await ctx.ask("All?", Form), Form)]

    return agent


def test_a_question_waits_for_its_answer_and_has_it_as_its_type() -> None:
    async def asked() -> Told:
        async with working(_asking(), call_of("ask")) as told:
            assert not told.work.asking
            for count, answer in enumerate(("5", "Ann", "a", '{"words": 9}'), 1):
                await told.until("ask", count)
                assert told.work.asking
                told.work.answer(said(answer))
                assert not told.work.asking
        return told

    told = asyncio.run(asked())
    assert told.all("ask") == [
        {"ask": 0, "prompt": "How many?", "schema": {"type": "integer"}},
        {"ask": 1, "prompt": "Whose?"},
        {"ask": 2, "prompt": "Which?", "schema": {"enum": ["a", "b"]}},
        {"ask": 3, "prompt": "All?", "schema": FORM},
    ]  # fmt: skip
    assert told.last[1]["result"] == [5, "Ann", "a", {"words": 9}]


def test_an_answer_that_does_not_fit_is_asked_for_again() -> None:
    async def asked() -> list[JsonObject]:
        async with working(_asking(), call_of("ask", answers=[said("lots")])) as told:
            await told.until("ask")
            told.work.answer(said("many"))
            await told.until("ask", 2)
            for answer in ("7", "Ann", "b", '{"words": 9}'):
                told.work.answer(said(answer))
        return told.all("ask")

    first, second = asyncio.run(asked())
    assert (first["ask"], second["ask"]) == (1, 2)
    assert first["prompt"] == second["prompt"] == "How many? (The answer does not fit: expected int, got str.)"


def test_what_was_answered_before_a_crash_is_not_asked_again() -> None:
    async def asked() -> Told:
        async with working(_asking(), call_of("ask", answers=[said("5"), said("Ann")])) as told:
            await told.until("ask")
            told.work.answer(said("a"))
            await told.until("ask", 2)
            told.work.answer(said('{"words": 1}'))
        return told

    told = asyncio.run(asked())
    assert [each["ask"] for each in told.all("ask")] == [2, 3]
    assert told.last[1]["result"] == [5, "Ann", "a", {"words": 1}]


def test_an_answer_may_be_there_before_its_question() -> None:
    async def asked() -> Told:
        told = Told(_asking(), call_of("ask"), ManualClock())
        for answer in ("5", "Ann", "a", '{"words": 1}'):
            told.work.answer(said(answer))
        await told.work.run()
        return told

    assert asyncio.run(asked()).names == ["start", "complete"]


def test_a_question_may_wait_only_so_long() -> None:
    async def asked() -> tuple[str, JsonObject]:
        clock = ManualClock()
        async with working(_asking(), call_of("ask", {"timeout_s": 5}), clock) as told:
            await told.until("ask")
            await asyncio.sleep(0)
            clock.advance(5)
        assert not told.work.asking
        return told.last

    name, data = asyncio.run(asked())
    assert (name, data["code"], data["message"]) == ("error", "AGENT_TIMEOUT", "No answer came within 5 s.")


def test_a_call_may_be_cancelled_while_it_asks() -> None:
    async def asked() -> list[str]:
        async with working(_asking(), call_of("ask")) as told:
            await told.until("ask")
            told.work.cancel("enough")
        assert not told.work.asking
        return told.names

    assert asyncio.run(asked()) == ["start", "ask", "cancelled"]


def test_questions_at_once_get_their_answers_in_turn() -> None:
    agent = Agent("Asking")

    @agent.skill
    async def ask(ctx: Context) -> list[str]:
        return list(await asyncio.gather(ctx.ask("One?"), ctx.ask("Two?")))

    async def asked() -> Told:
        async with working(agent, call_of("ask")) as told:
            await told.until("ask", 2)
            told.work.answer(said("1"))
            assert told.work.asking
            told.work.answer(said("2"))
        return told

    assert asyncio.run(asked()).last[1]["result"] == ["1", "2"]


def test_authentication_elsewhere_is_asked_for_and_what_follows_is_returned() -> None:
    agent = Agent("Careful")

    @agent.skill
    async def enter(ctx: Context) -> str:
        await ctx.ask("Ready?")
        return (await ctx.require_auth("Sign in at https://x.example")).text

    async def asked() -> Told:
        async with working(agent, call_of("enter", answers=[said("yes")])) as told:
            await told.until("auth")
            told.work.answer(said("done"))
        return told

    told = asyncio.run(asked())
    assert told.all("auth") == [{"ask": 1, "message": "Sign in at https://x.example"}]
    assert told.last[1]["result"] == "done"


# -- what is known


def test_everything_that_the_hub_says_of_a_call_is_there() -> None:
    agent = Agent("Knowing")
    seen: list[Context] = []

    @agent.skill
    async def look(query: str, ctx: Context, message: Message) -> None:
        assert ctx.message is message
        assert ctx.remaining_s == 30.0
        seen.append(ctx)

    more: dict[str, Any] = {
        "attempt": 3,
        "caller": {"id": "agt_a", "name": "Ann", "kind": "agent", "dialect": "a2a-1.0", "scopes": ["a2a:call"]},
        "message": {"id": "m1", "role": "user", "parts": [{"data": {"query": "x"}}], "metadata": {"k": 1}},
        "history": [said("before"), {"id": "m0", "role": "agent", "parts": [{"text": "answer"}]}],
        "references": [{"call_id": "c0", "artifacts": [{"id": "r", "name": "R", "parts": [{"text": "made"}]}]}],
        "deadline": "2026-07-01T12:00:30Z",
        "trace_id": "trace_1",
    }
    asyncio.run(worked(agent, call_of("look", {"query": "x"}, **more), ManualClock()))
    (ctx,) = seen
    assert (ctx.call_id, ctx.attempt, ctx.skill, ctx.conversation_id) == ("a2a_call_1", 3, "look", "conv_1")
    assert (ctx.trace_id, ctx.priority, ctx.metadata) == ("trace_1", "high", {"user_id": "u"})
    assert ctx.caller == Caller(id="agt_a", name="Ann", kind="agent", dialect="a2a-1.0", scopes=("a2a:call",))
    assert [(each.role, each.text) for each in ctx.history] == [("user", "before"), ("agent", "answer")]
    made = Artifact(id="r", name="R", parts=(Text("made"),))
    assert ctx.references == (Reference(call_id="c0", artifacts=(made,)),)
    assert ctx.message.data == {"query": "x"} and ctx.message.metadata == {"k": 1}
    assert ctx.deadline == datetime(2026, 7, 1, 12, 0, 30, tzinfo=UTC)
    assert repr(ctx) == "<Context of a2a_call_1>"


def test_a_bare_call_is_filled_with_what_is_known() -> None:
    agent = Agent("Knowing")
    seen: list[Context] = []

    @agent.skill
    async def look(ctx: Context) -> None:
        seen.append(ctx)

    asyncio.run(worked(agent, {"call_id": "c", "skill": "look", "input": {"text": "hi"}, "caller_agent_id": "agt_b"}))
    (ctx,) = seen
    assert (ctx.caller.id, ctx.caller.kind, ctx.conversation_id) == ("agt_b", "anonymous", "c")
    assert (ctx.deadline, ctx.remaining_s, ctx.history, ctx.references) == (None, None, (), ())
    assert ctx.message.text == "hi"


def test_the_time_left_runs_down_and_never_below_nothing() -> None:
    agent = Agent("Timed")
    left: list[float | None] = []

    @agent.skill(timeout_s=10)
    async def wait(ctx: Context) -> None:
        left.append(ctx.remaining_s)
        assert ctx.deadline == clock.now() + timedelta(seconds=30)
        clock.advance(4)
        left.append(ctx.remaining_s)
        clock.advance(20)
        left.append(ctx.remaining_s)

    clock = ManualClock()
    asyncio.run(worked(agent, call_of("wait"), clock))
    assert left == [10.0, 6.0, 0.0]


def test_without_a_hub_there_are_no_other_agents() -> None:
    agent = Agent("Calling")

    @agent.skill
    async def pass_on(how: str, ctx: Context) -> object:
        if how == "call":
            return await ctx.call(skill="other", input={})
        if how == "stream":
            return [event async for event in ctx.stream_call("agt_other", "other", {})]
        return [found async for found in ctx.discover("other", limit=1)]

    for how in ("call", "stream", "discover"):
        with pytest.raises(HubUnreachable, match=r"agent\.test\.call"):
            asyncio.run(agent.test.call("pass_on", {"how": how}))
