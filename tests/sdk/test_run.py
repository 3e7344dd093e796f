"""An agent's model at work: rounds, tools, memory, usage, and the ways to let it work."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from dragoman import Agent, Context, errors, models, tool
from dragoman.sdk.run.models import ModelMessage, ModelReply, ModelRequest, Scripted, ScriptedModel, ToolCall, Usage
from dragoman.sdk.run.run import RunResult
from tests.sdk.working import call_of, worked
from tests.support.run import run


@tool
async def population(city: str) -> int:
    """Inhabitants of a city"""
    return {"Oslo": 709_000}.get(city, 0)


def asks(name: str, **arguments: Any) -> ToolCall:
    return ToolCall(name=name, arguments=arguments)


def guide(*replies: Scripted, **settings: Any) -> tuple[Agent, ScriptedModel]:
    model = models.scripted(replies)
    return Agent("Guide", "Answer with figures.", model=model, **settings), model


@pytest.mark.req("P-65")
def test_run_is_awaited_and_gives_content_steps_and_the_sum_of_usage() -> None:
    agent, model = guide(
        ModelReply(tool_calls=(asks("population", city="Oslo"),), usage=Usage(input_tokens=5, output_tokens=2)),
        ModelReply(text="709,000 people", usage=Usage(input_tokens=9, output_tokens=4, cost_usd=0.5)),
        tools=[population],
    )

    async def ask() -> RunResult:
        return await agent.run("How many people live in Oslo?")

    result = run(ask())
    assert result.content == str(result) == result.output == "709,000 people"
    assert [step.text for step in result.steps] == ["", "709,000 people"]
    assert result.steps[0].results == ("709000",)
    assert result.usage == Usage(input_tokens=14, output_tokens=6, cost_usd=0.5)
    first, second = model.requests
    assert first.instructions == "Answer with figures."
    assert first.messages == (ModelMessage(role="user", text="How many people live in Oslo?"),)
    assert [(each.name, each.description) for each in first.tools] == [("population", "Inhabitants of a city")]
    assert first.tools[0].input_schema["properties"] == {"city": {"type": "string"}}
    assert [message.role for message in second.messages] == ["user", "assistant", "tool"]
    assert second.messages[2].text == "709000"
    assert second.messages[2].tool_call_id == second.messages[1].tool_calls[0].id != ""


@pytest.mark.req("P-65")
def test_content_is_read_where_no_loop_runs_and_refused_where_one_does() -> None:
    agent, _ = guide("one", "two", "three")
    assert agent.run("x").content == "one"

    async def inside() -> str:
        running = agent.run("x")
        with pytest.raises(RuntimeError, match=r"await agent\.run"):
            _ = running.content
        first, again = await asyncio.gather(running, running)
        assert first is again
        return running.content

    assert run(inside()) == "two"
    assert run(agent.arun("x")).content == "three"


@pytest.mark.req("P-65")
def test_stream_gives_the_text_in_pieces() -> None:
    agent, _ = guide("a few words", ModelReply(text="whole"))

    async def pieces() -> list[str]:
        return [piece async for piece in agent.stream("x")]

    assert run(pieces()) == ["a ", "few ", "words"]


def test_without_a_model_the_error_says_what_to_do() -> None:
    agent = Agent("Guide")
    said = 'agent "Guide" has no model; pass model=… or define a skill'
    with pytest.raises(errors.NoModel) as raised:
        agent.run("x")
    assert str(raised.value) == said
    with pytest.raises(errors.NoModel):
        run(agent.arun("x"))


def test_a_model_is_any_async_function_or_generator() -> None:
    async def plain(request: ModelRequest) -> ModelReply:
        return ModelReply(text=f"heard {request.messages[-1].text}")

    async def bare(request: ModelRequest) -> str:
        return "only words"

    async def spoken(request: ModelRequest) -> AsyncIterator[str | ModelReply]:
        yield "by "
        yield "pieces"
        yield ModelReply(usage=Usage(input_tokens=1))

    async def unended(request: ModelRequest) -> AsyncIterator[str]:
        yield "no reply"

    answers = [run(Agent("A", model=model).arun("hi")) for model in (plain, bare, spoken, unended)]
    assert [each.content for each in answers] == ["heard hi", "only words", "by pieces", "no reply"]
    assert answers[2].usage == Usage(input_tokens=1)
    with pytest.raises(TypeError, match="function or a name"):
        run(Agent("A", model=7).arun("hi"))


def test_the_tools_of_a_round_run_at_once_and_plain_functions_in_threads() -> None:
    both = threading.Barrier(2, timeout=5)

    def left(n: int) -> dict[str, int]:
        both.wait()
        return {"left": n}

    async def right(n: int) -> str:
        await asyncio.to_thread(both.wait)
        return f"right {n}"

    agent, model = guide([asks("left", n=1), asks("right", n=2)], "done", tools=[left, right])
    result = run(agent.arun("x"))
    assert result.steps[0].results == ('{"left":1}', "right 2")
    assert [message.text for message in model.requests[1].messages[2:]] == ['{"left":1}', "right 2"]


def test_what_goes_wrong_with_a_tool_is_told_to_the_model() -> None:
    async def breaks(n: int) -> str:
        raise KeyError(f"no {n}")

    agent, model = guide(
        [asks("breaks", n=1), asks("breaks", n="many"), asks("nosuch"), ToolCall(name="breaks", arguments="{")],
        "done",
        tools=[breaks],
    )
    run(agent.arun("x"))
    told = [message.text for message in model.requests[1].messages[2:]]
    assert told[0] == "KeyError: 'no 1'"
    assert told[1].startswith("InputRefused: ")
    assert "n: " in told[1]
    assert told[2] == "There is no tool 'nosuch'. There are: breaks."
    assert told[3] == "The arguments of breaks are no JSON object."


def called_with(seen: list[int]) -> Callable[[int], None]:
    def note(n: int) -> None:
        seen.append(n)

    return note


def test_after_max_steps_there_is_an_answer_or_a_clear_end() -> None:
    agent, model = guide(asks("population", city="Oslo"), "forced", tools=[population], max_steps=2)
    assert run(agent.arun("x")).content == "forced"
    assert [request.final for request in model.requests] == [False, True]
    called: list[int] = []
    stubborn, model = guide(*[asks("note", n=n) for n in range(3)], tools=[tool(name="note")(called_with(called))])
    stubborn.max_steps = 3
    with pytest.raises(errors.AgentError, match=r"no answer within 3 steps"):
        run(stubborn.arun("x"))
    assert len(model.requests) == 3
    assert called == [0, 1]  # what nobody would hear of is not done


def test_a_conversation_is_remembered_and_others_are_not() -> None:
    agent, model = guide(*"abcd")
    for task, conversation in (("1", "c"), ("2", "c"), ("3", "other"), ("4", None)):
        run(agent.arun(task, conversation_id=conversation))
    seen = [[message.text for message in request.messages] for request in model.requests]
    assert seen == [["1"], ["1", "a", "2"], ["3"], ["4"]]


def test_inside_a_handler_the_memory_is_the_callers_own_and_usage_is_the_calls() -> None:
    agent, model = guide(*[ModelReply(text=f"answer {n}", usage=Usage(input_tokens=10)) for n in range(5)])

    def from_(caller: str, kind: str = "key", **more: Any) -> dict[str, Any]:
        return {**call_of("handle", {"task": caller}), "caller": {"id": caller, "kind": kind}, **more}

    async def serve() -> list[Any]:
        turn = {"role": "agent", "parts": [{"text": "before"}]}
        history = [{"role": "user", "parts": [{"text": "earlier"}]}, turn]
        return [
            await worked(agent, from_("ann")),
            await worked(agent, from_("ann", history=history)),
            await worked(agent, from_("bob")),
            await worked(agent, from_("carl", history=history)),
            await worked(agent, from_("x", "anonymous")),
        ]

    told = run(serve())
    seen = [[message.text for message in request.messages] for request in model.requests]
    # All of them name the same conversation.
    assert seen == [["ann"], ["ann", "answer 0", "ann"], ["bob"], ["earlier", "before", "carl"], ["x"]]
    name, data = told[0].last
    assert (name, data["result"], data["usage"]) == ("complete", "answer 0", {"input_tokens": 10})


def test_a_caller_hears_the_model_as_it_speaks_and_gets_the_whole_once() -> None:
    agent, _ = guide("one two three")
    told = run(worked(agent, call_of("handle", {"task": "x"})))
    assert [data["content"] for data in told.all("chunk")] == ["one ", "two "]
    assert told.last == ("complete", {"status": "completed", "result": "one two three"})


def test_a_plain_function_lets_the_model_work_in_its_thread() -> None:
    agent, _ = guide(ModelReply(text="from a thread", usage=Usage(output_tokens=3)))

    @agent.skill
    def ask(question: str) -> str:
        return agent.run(question).content

    told = run(worked(agent, call_of("ask", {"question": "x"})))
    expected = {"status": "completed", "result": "from a thread", "usage": {"output_tokens": 3}}
    assert told.last == ("complete", expected)


def test_a_tool_gets_the_context_of_the_call_and_is_refused_outside_of_one() -> None:
    async def whoami(ctx: Context, loud: bool = False) -> str:
        await ctx.progress(0.5, "looking")
        return ctx.caller.id.upper() if loud else ctx.caller.id

    agent, model = guide(asks("whoami", loud=True), "done", asks("whoami"), tools=[whoami])
    told = run(worked(agent, call_of("handle", {"task": "x"})))
    assert model.requests[0].tools[0].input_schema["properties"].keys() == {"loud"}
    assert model.requests[1].messages[2].text == "AGT_CALLER"
    assert told.all("progress") == [{"progress": 0.5, "message": "looking"}]
    with pytest.raises(TypeError, match="only a handler has one"):
        run(agent.arun("x"))


def test_the_model_is_told_the_deadline_of_the_call() -> None:
    agent, model = guide("fine", "fine")
    run(worked(agent, call_of("handle", {"task": "x"})))
    assert model.requests[0].deadline is not None
    run(agent.arun("x"))
    assert model.requests[1].deadline is None


def test_a_script_says_when_it_is_over_and_raises_what_it_was_told_to() -> None:
    agent, _ = guide(ValueError("planned"), lambda request: f"{len(request.messages)} message")
    with pytest.raises(ValueError, match="planned"):
        run(agent.arun("x"))
    assert run(agent.arun("x")).content == "1 message"
    with pytest.raises(models.ModelFailed, match="script is over"):
        run(agent.arun("x"))


class Manager(Agent):
    def __init__(self, **settings: Any) -> None:
        super().__init__(name="Manager", instructions="Delegate tasks to specialist agents.", **settings)
        coder = Agent("Coder", tags=["python"])
        coder.skill(fix_bug)
        self.specialists = {"code": coder, "research": "agt_research_specialist", "writing": "agt_writing_specialist"}


def fix_bug(text: str) -> str:
    """Fix a bug"""
    return text


@pytest.mark.req("P-40")
@pytest.mark.parametrize(
    ("task", "label"),
    [
        ("Write an article about tides", "writing"),
        ("Please do some Research on bees!", "research"),
        ("my Python script fails", "code"),
        ("fix the bug", "code"),
        ("Sing a song", None),
        ("", None),
    ],
)
def test_without_a_model_a_task_goes_to_the_label_that_shares_most_words(task: str, label: str | None) -> None:
    assert run(Manager().classify_task(task)) == label


@pytest.mark.req("P-40")
@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ('{"label": "research"}', "research"),
        ('```json\n{"label": "code"}\n```', "code"),
        ("Writing.", "writing"),
        ("I would say it is research, clearly", "research"),
        ('{"label": null}', None),
        ("code or writing", None),
        ("no idea", None),
    ],
)
def test_with_a_model_it_picks_the_label(answer: str, label: str | None) -> None:
    model = models.scripted([answer])
    assert run(Manager(model=model).classify_task("anything")) == label
    (request,) = model.requests
    assert request.output_schema is not None
    assert request.output_schema["properties"]["label"]["enum"] == ["code", "research", "writing", None]
    assert "fix_bug" in (request.instructions or "")


@pytest.mark.req("P-40")
def test_labels_may_be_given_and_without_any_there_is_none() -> None:
    assert run(Agent("A").classify_task("the weather in Oslo", ["news", "weather"])) == "weather"
    assert run(Agent("A").classify_task("the weather in Oslo")) is None
