"""Agents of other frameworks, wrapped in one line and called through a real hub in three dialects: what they say is
streamed, a conversation is gone on with, what they fill in is data, and who cancels a call ends the framework's run.
"""

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import pytest

from dragoman.errors import AgentError, CallCancelled
from tests.frameworks.world import CALLERS, FrameworkProcess, agent_id
from tests.support.hub import HubProcess
from tests.support.run import run
from tests.support.speaking import Caller, Content

pytestmark = pytest.mark.full


class Framework(NamedTuple):
    """What a framework can do beyond answering."""

    name: str
    schema: bool = True  # whether it knows what it fills in
    speaker: str = "talker"  # which of its agents streams
    streams: bool = True  # whether its words come as its model says them
    stops: bool = True  # whether what its model does can be stopped: a thread cannot
    error: str = "ValueError"  # what it makes of a model's error


FRAMEWORKS = (
    Framework("langgraph", schema=False),
    Framework("openai-agents"),
    Framework("pydantic-ai"),
    Framework("crewai", speaker="crew", stops=False),
    Framework("google-adk"),
    Framework("llama-index", schema=False),
    Framework("smolagents", schema=False, streams=False, stops=False, error="AgentGenerationError"),
    Framework("autogen"),
)
OSLO = {"name": "Oslo", "people": 709000}


@pytest.fixture(scope="module", params=FRAMEWORKS, ids=lambda framework: framework.name)
def framework(request: pytest.FixtureRequest) -> Framework:
    return request.param


@pytest.fixture(scope="module")
def agents(framework: Framework, hub: HubProcess) -> Iterator[FrameworkProcess]:
    with FrameworkProcess(framework.name, hub) as process:
        yield process


@pytest.fixture(scope="module")
def named(framework: Framework) -> Callable[[str], str]:
    return partial(agent_id, framework.name)


@pytest.mark.parametrize("caller", CALLERS, ids=lambda caller: caller.slug)
def test_it_is_called_in_every_dialect(
    caller: Callable[[str, str], Caller], agents: FrameworkProcess, named: Callable[[str], str], hub: HubProcess
) -> None:
    seen = caller(hub.url, hub.token or "").call(named("talker"), Content(text="hello"))
    assert seen.state == "completed", seen
    assert "".join(each.text or "" for each in seen.content) == "you said hello as number 1"


def test_its_words_reach_the_caller_as_it_says_them(
    agents: FrameworkProcess, framework: Framework, named: Callable[[str], str]
) -> None:
    async def play() -> None:
        chunks: list[str] = []
        async with agents.client() as client:
            async for event in client.stream(named(framework.speaker), message="slowly"):
                if event.type == "chunk":
                    if framework.streams and not chunks:
                        agents.tell("go")  # Until then the model says no more.
                    chunks.append(event.content)
        assert chunks[0] == "you" or not framework.streams
        assert "".join(chunks) == "you said slowly as number 1"

    run(play())


def test_two_turns_of_a_conversation_belong_together_and_to_nobody_else(
    agents: FrameworkProcess, named: Callable[[str], str]
) -> None:
    async def play() -> None:
        async with agents.client() as client:
            for number, conversation in ((1, "one"), (2, "one"), (1, "two"), (3, "one")):
                found = await client.call(named("talker"), message="hello", conversation_id=f"conv_{conversation}")
                assert found.text == f"you said hello as number {number}"

    run(play())


def test_what_it_fills_in_is_data_and_its_card_says_which(
    agents: FrameworkProcess, framework: Framework, named: Callable[[str], str]
) -> None:
    async def play() -> None:
        async with agents.client() as client:
            assert dict(await client.call(named("filler"), message="Oslo")) == OSLO
            (skill,) = (await client.card(named("filler")))["skills"]
        if framework.schema:
            assert skill["output_schema"]["required"] == ["name", "people"]
        else:
            assert "output_schema" not in skill

    run(play())


def test_what_a_call_used_is_told_of_that_call_alone(
    agents: FrameworkProcess, framework: Framework, named: Callable[[str], str]
) -> None:
    async def play() -> None:
        async with agents.client() as client:
            first, second = [await client.call(named(framework.speaker), message="hello") for _ in range(2)]
        assert first.usage["input_tokens"] > 0 and first.usage["output_tokens"] > 0
        assert second.usage == first.usage

    run(play())


def test_who_cancels_the_call_ends_the_run(
    agents: FrameworkProcess, framework: Framework, named: Callable[[str], str]
) -> None:
    async def play() -> None:
        async with agents.client() as client:
            handle = await client.submit(named("sleeper"), message="wait")
            await asyncio.to_thread(agents.await_line, "waiting")
            await handle.cancel("enough")
            if framework.stops:
                await asyncio.to_thread(agents.await_line, "cancelled")
            with pytest.raises(CallCancelled):
                await handle.result(timeout_s=10)
            if not framework.stops:
                agents.tell("go")

    run(play())


def test_an_error_is_told_by_its_name_alone(
    agents: FrameworkProcess, framework: Framework, named: Callable[[str], str]
) -> None:
    async def play() -> None:
        async with agents.client() as client:
            with pytest.raises(AgentError) as refusal:
                await client.call(named("failing"), message="hello")
        assert framework.error in str(refusal.value)
        assert "1234" not in str(refusal.value)

    run(play())
