"""One call carried out by its handler: every kind of handler, every end."""

import asyncio
import contextvars
import logging
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from dragoman.model.errors import AgentError, AgentTimeout, AgentUnavailable, InputRefused
from dragoman.model.json import JsonObject
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.content import Data, File, Message, Text
from dragoman.sdk.scope import current
from dragoman.sdk.work.context import Context
from tests.contracts.manual_clock import ManualClock
from tests.sdk.working import Told, call_of, worked, working

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
agent = Agent("Worker", concurrency=2)


@agent.skill
async def coroutine(query: str, count: int = 2) -> dict[str, Any]:
    return {"found": [query] * count}


@agent.skill
async def chunks(count: int, result: bool = False) -> AsyncIterator[object]:
    for each in range(count):
        yield f"{each} "
    if result:
        yield {"count": count}


@agent.skill
def plain(query: str) -> str:
    return f"{query} in {threading.current_thread().name.rpartition('_')[0]}"


@agent.skill
def plain_chunks(count: int) -> Iterator[object]:
    for each in range(count):
        yield str(each)
    yield [count]


class Counter:
    def __init__(self) -> None:
        self.calls = 0

    async def count(self, step: int = 1) -> int:
        self.calls += step
        return self.calls


counter = Counter()
agent.skill(counter.count)


async def _told(skill: str | None, given: JsonObject | None = None, **more: Any) -> list[tuple[str, JsonObject]]:
    return (await worked(agent, call_of(skill, given, **more))).events


def _completed(result: object) -> tuple[str, JsonObject]:
    return "complete", {"status": "completed", "result": result}


def test_an_async_function_answers_with_what_it_returns() -> None:
    assert asyncio.run(_told("coroutine", {"query": "x"})) == [("start", {}), _completed({"found": ["x", "x"]})]


def test_each_text_that_is_yielded_is_a_chunk() -> None:
    said = [("chunk", {"content": "0 "}), ("chunk", {"content": "1 "})]
    assert asyncio.run(_told("chunks", {"count": 2})) == [("start", {}), *said, ("complete", {"status": "completed"})]


def test_a_last_value_that_is_no_text_is_the_result() -> None:
    assert asyncio.run(_told("chunks", {"count": 1, "result": True}))[-1] == _completed({"count": 1})


def test_a_plain_function_runs_in_a_thread() -> None:
    assert asyncio.run(_told("plain", {"query": "x"}))[-1] == _completed("x in dragoman-skill")


def test_a_plain_generator_is_drawn_in_threads() -> None:
    events = asyncio.run(_told("plain_chunks", {"count": 2}))
    assert events == [("start", {}), ("chunk", {"content": "0"}), ("chunk", {"content": "1"}), _completed([2])]


def test_a_bound_method_keeps_its_object() -> None:
    before = counter.calls
    assert asyncio.run(_told("count", {"step": 5}))[-1] == _completed(before + 5)


def test_files_and_several_parts_are_an_artifact_and_not_a_result() -> None:
    maker = Agent("Maker")

    @maker.skill
    async def draw() -> list[Text | File]:
        return [Text("see"), File(bytes=b"x", name="a.png")]

    events = asyncio.run(worked(maker, call_of("draw"))).events
    parts = [{"text": "see"}, {"file": {"bytes": "eA==", "name": "a.png"}}]
    assert events == [
        ("start", {}),
        ("artifact", {"id": "result", "parts": parts, "append": False, "last": True}),
        ("complete", {"status": "completed"}),
    ]


def test_nothing_that_is_yielded_is_lost() -> None:
    maker = Agent("Maker")

    @maker.skill
    async def rows() -> AsyncIterator[object]:
        yield "two rows"
        yield {"row": 1}
        yield Data({"row": 2})

    @maker.skill
    async def letter() -> AsyncIterator[object]:
        yield "here it is"
        yield File(uri="u")

    told = asyncio.run(worked(maker, call_of("rows")))
    assert told.all("chunk") == [{"content": "two rows"}]
    assert told.all("artifact") == [
        {"id": "parts", "parts": [{"data": {"row": 1}}], "append": False, "last": False},
        {"id": "parts", "parts": [{"data": {"row": 2}}], "append": True, "last": False},
    ]
    assert told.last == ("complete", {"status": "completed"})
    # Words that were streamed are `result`: what comes beside them must not take their place.
    (beside,) = asyncio.run(worked(maker, call_of("letter"))).all("artifact")
    assert beside["id"] == "parts"


def test_a_message_without_a_skill_goes_to_the_only_one_as_its_input() -> None:
    single = Agent("Single")

    @single.skill
    async def search(query: str, count: int = 1) -> str:
        return f"{query}{count}"

    async def said(*parts: JsonObject) -> tuple[str, JsonObject]:
        message = {"id": "m", "role": "user", "parts": list(parts)}
        return (await worked(single, call_of(None, message=message))).last

    assert asyncio.run(said({"text": "tides"})) == _completed("tides1")
    assert asyncio.run(said({"text": '{"query": "a", "count": 2}'})) == _completed("a2")
    assert asyncio.run(said({"data": {"query": "b"}})) == _completed("b1")
    name, data = asyncio.run(said({"text": "a"}, {"file": {"uri": "u"}}))
    assert (name, data["code"]) == ("error", "VALIDATION_ERROR")


def test_without_a_default_the_skills_are_listed() -> None:
    name, data = asyncio.run(_told(None, message={"role": "user", "parts": [{"text": "x"}]}))[-1]
    assert (name, data["code"]) == ("error", "SKILL_NOT_FOUND")
    assert "metadata.skill. It has: coroutine, chunks, plain, plain_chunks, count." in data["message"]
    name, data = asyncio.run(_told("nope"))[-1]
    assert data["message"].startswith("Agent agt_worker has no skill 'nope'. It has: coroutine")


def test_input_that_does_not_fit_is_refused_with_the_field() -> None:
    name, data = asyncio.run(_told("coroutine", {"count": 2}))[-1]
    assert (name, data["code"], data["retryable"]) == ("error", "VALIDATION_ERROR", False)
    assert data["details"]["errors"] == [{"path": "query", "message": "required"}]


def test_our_errors_keep_their_code_and_whether_trying_again_helps() -> None:
    failing = Agent("Failing")
    errors = {
        "refused": InputRefused("no"),
        "away": AgentUnavailable("away"),
        "again": AgentError("busy", retryable=True),
        "never": AgentError("broken"),
        "wrapped": ExceptionGroup("several", [AgentTimeout("slow")]),
    }

    @failing.skill
    async def fail(which: str) -> None:
        raise errors[which]

    async def code(which: str) -> tuple[str, bool, str]:
        _, data = (await worked(failing, call_of("fail", {"which": which}))).last
        return data["code"], data["retryable"], data["message"]

    assert asyncio.run(code("refused")) == ("VALIDATION_ERROR", False, "no")
    assert asyncio.run(code("away")) == ("AGENT_UNAVAILABLE", True, "away")
    assert asyncio.run(code("again")) == ("AGENT_ERROR", True, "busy")
    assert asyncio.run(code("never")) == ("AGENT_ERROR", False, "broken")
    assert asyncio.run(code("wrapped")) == ("AGENT_TIMEOUT", True, "slow")


@pytest.mark.parametrize("how", ["async", "thread"])
@pytest.mark.parametrize("error", [ValueError("secret"), StopIteration("secret"), SystemExit("secret")])
def test_of_any_other_error_the_caller_gets_the_name_and_the_log_the_rest(
    how: str, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    failing = Agent("Failing")

    @failing.skill(name="async")
    async def fail() -> None:
        raise error

    @failing.skill(name="thread")
    def fail_too() -> None:
        raise error

    with caplog.at_level(logging.ERROR, "dragoman.agent"):
        name, data = asyncio.run(worked(failing, call_of(how))).last
    shown = "RuntimeError" if isinstance(error, StopIteration) else type(error).__name__
    assert (name, data["code"], data["message"]) == ("error", "AGENT_ERROR", f"{how} failed: {shown}")
    assert "secret" not in str(data)
    assert "secret" in caplog.text


def test_a_value_without_a_json_form_is_the_agents_error() -> None:
    odd = Agent("Odd")

    @odd.skill
    async def thing() -> object:
        return object()

    _, data = asyncio.run(worked(odd, call_of("thing"))).last
    assert data["message"] == "The agent returned a object, which has no JSON form."


def test_each_handler_has_a_task_and_a_context_of_its_own() -> None:
    shared = Agent("Shared")

    @shared.skill
    async def become(name: str) -> AsyncIterator[str]:
        before = WHO.get()
        WHO.set(name)
        yield f"{before} {name} "
        yield WHO.get()

    async def both() -> tuple[list[JsonObject], str]:
        first = await worked(shared, call_of("become", {"name": "a"}))
        second = await worked(shared, call_of("become", {"name": "b"}))
        return first.all("chunk") + second.all("chunk"), WHO.get()

    said, after = asyncio.run(both())
    assert [each["content"] for each in said] == ["nobody a ", "a", "nobody b ", "b"]
    assert after == "nobody"


@pytest.mark.req("P-42")
def test_the_scope_reaches_tasks_and_threads_of_a_handler() -> None:
    scoped = Agent("Scoped")

    def seen() -> list[object]:
        scope = current()
        assert scope is not None
        return [scope.call_id, scope.conversation_id, scope.trace_id, scope.span_id, scope.traceparent]

    async def seen_later() -> list[object]:
        return seen()

    @scoped.skill
    async def look() -> list[object]:
        return [*await asyncio.gather(seen_later(), asyncio.to_thread(seen)), seen()]

    @scoped.skill
    def look_in_thread() -> list[object]:
        return seen()

    traced: dict[str, Any] = {"trace_id": "trace_1", "span_id": "span_1", "traceparent": "00-1-2-01"}
    known = ["a2a_call_1", "conv_1", "trace_1", "span_1", "00-1-2-01"]
    assert asyncio.run(worked(scoped, call_of("look", **traced))).last == _completed([known, known, known])
    assert asyncio.run(worked(scoped, call_of("look_in_thread", **traced))).last == _completed(known)
    assert current() is None


# -- being ended


def _slow(cleaned: list[str], *, stubborn: asyncio.Event | None = None) -> Agent:
    slow = Agent("Slow")

    @slow.skill
    async def wait(ctx: Context) -> str:
        await ctx.progress(0.1)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cleaned.append(f"cancelled: {ctx.cancelled}")
            if stubborn is not None:
                await stubborn.wait()
            await ctx.progress(0.2)
            raise
        return "never"

    return slow


def test_a_cancelled_handler_cleans_up_and_then_the_call_is_cancelled() -> None:
    cleaned: list[str] = []

    async def cancelled() -> list[str]:
        async with working(_slow(cleaned), call_of("wait")) as told:
            await told.until("progress")
            told.work.cancel("enough")
        return told.names

    assert asyncio.run(cancelled()) == ["start", "progress", "progress", "cancelled"]
    assert cleaned == ["cancelled: True"]


def test_a_handler_that_does_not_end_is_waited_for_five_seconds() -> None:
    async def cancelled() -> list[str]:
        stubborn, clock = asyncio.Event(), ManualClock()
        async with working(_slow([], stubborn=stubborn), call_of("wait"), clock) as told:
            await told.until("progress")
            told.work.cancel("enough")
            clock.advance(4.9)
            await asyncio.sleep(0)
            assert told.names == ["start", "progress"]
            clock.advance(0.1)
            await told.until("cancelled")
            stubborn.set()
        return told.names

    # What it says afterwards is not told: a call has one last event.
    assert asyncio.run(cancelled()) == ["start", "progress", "cancelled"]


def test_a_call_that_is_cancelled_before_it_starts_never_starts() -> None:
    async def cancelled() -> list[str]:
        told = Told(agent, call_of("coroutine", {"query": "x"}), ManualClock())
        told.work.cancel("enough")
        await told.work.run()
        return told.names

    assert asyncio.run(cancelled()) == ["cancelled"]


def test_a_plain_function_has_to_look_whether_it_was_cancelled() -> None:
    looking = Agent("Looking")
    began, seen, cleaned_up = threading.Event(), threading.Event(), threading.Event()

    @looking.skill
    def look(ctx: Context) -> str:
        began.set()
        while not ctx.cancelled:
            threading.Event().wait(0.001)
        seen.set()
        cleaned_up.wait(5)
        return "seen"

    async def cancelled() -> list[str]:
        async with working(looking, call_of("look")) as told:
            await asyncio.to_thread(began.wait, 5)
            told.work.cancel("enough")
            await asyncio.to_thread(seen.wait, 5)
            assert told.names == ["start"]
            cleaned_up.set()
        return told.names

    assert asyncio.run(cancelled()) == ["start", "cancelled"]


@pytest.mark.parametrize(("timeout_s", "shown"), [(None, "30 s"), (2.0, "2 s")])
def test_a_handler_has_the_time_of_its_call_and_of_its_skill(timeout_s: float | None, shown: str) -> None:
    timed = Agent("Timed")

    @timed.skill(timeout_s=timeout_s)
    async def wait(ctx: Context) -> None:
        await ctx.progress(0.5)
        await asyncio.Event().wait()

    async def late() -> tuple[str, JsonObject]:
        clock = ManualClock()
        async with working(timed, call_of("wait"), clock) as told:
            await told.until("progress")
            clock.advance(1.9)
            assert told.names == ["start", "progress"]
            clock.advance(30)
        assert clock.timers == 0
        return told.last

    name, data = asyncio.run(late())
    assert (name, data["code"], data["retryable"]) == ("error", "AGENT_TIMEOUT", True)
    assert data["message"] == f"The agent was not done within {shown}."


def test_a_cancellation_that_nobody_asked_for_is_the_agents_error() -> None:
    odd = Agent("Odd")

    @odd.skill
    async def give_up() -> None:
        raise asyncio.CancelledError

    name, data = asyncio.run(worked(odd, call_of("give_up"))).last
    assert (name, data["message"]) == ("error", "give_up failed: CancelledError")


def test_who_carries_it_out_may_be_cancelled_itself() -> None:
    cleaned: list[str] = []

    async def abandoned() -> list[str]:
        told = Told(_slow(cleaned), call_of("wait"), ManualClock())
        task = asyncio.get_running_loop().create_task(told.work.run())
        await told.until("progress")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return told.names

    assert asyncio.run(abandoned()) == ["start", "progress", "progress"]
    assert cleaned == ["cancelled: False"]


def test_a_refused_call_is_rejected_with_the_handlers_words() -> None:
    picky = Agent("Picky")

    @picky.skill
    def judge(ctx: Context, message: Message) -> None:
        ctx.refuse(f"not {message.data['what']}")

    assert asyncio.run(worked(picky, call_of("judge", {"what": "that"}))).last == ("rejected", {"message": "not that"})


def test_a_call_that_makes_no_sense_is_an_error_and_no_crash() -> None:
    wrongs: list[dict[str, Any]] = [
        {"message": {"parts": 5}},
        {"message": {"parts": [{}]}},
        {"deadline": "soon"},
        {"history": [1]},
    ]
    for wrong in wrongs:
        name, data = asyncio.run(_told("coroutine", {"query": "x"}, **wrong))[-1]
        assert (name, data["code"]) == ("error", "VALIDATION_ERROR"), wrong
    odd: dict[str, Any] = {"caller": 5, "options": None, "context": [], "history": {}, "answers": [5], "attempt": "2"}
    assert asyncio.run(_told("coroutine", {"query": "x", "count": 0}, **odd))[-1] == _completed({"found": []})
