"""`dragoman.testing`: a whole hub in process, a fixture of it, and the check of an agent."""

import asyncio
import logging
from collections.abc import AsyncIterator

import pytest

from dragoman.model.errors import AgentNotFound, AgentTimeout
from dragoman.sdk.agent.agent import Agent
from dragoman.sdk.testing.fakes import FakeAgent
from dragoman.sdk.testing.hubs import ThreadedHub, check, hub
from dragoman.sdk.testing.pytest_plugin import dragoman_hub
from dragoman.sdk.work.context import Context

__all__ = ["dragoman_hub"]  # a fixture, found by its name


def greeter() -> Agent:
    agent = Agent("Greeter", description="Greets people")

    @agent.skill(examples=[{"name": "Ada"}, "Greet Ada"])
    async def greet(name: str, polite: bool = True) -> dict[str, str]:
        """Greets somebody"""
        return {"text": f"Good day, {name}" if polite else f"Hi {name}"}

    @agent.skill
    async def wait(ctx: Context) -> str:
        """Never ends"""
        await asyncio.Event().wait()
        return ""

    @agent.skill
    async def ask_another(ctx: Context) -> dict[str, object]:
        """Calls itself by way of the hub"""
        return {"heard": dict(await ctx.call("agt_fake", "answer", {"text": "?"}))}

    return agent


def test_a_whole_hub_in_the_tests_own_loop(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        heard = asyncio.Event()
        agent = greeter()

        @agent.skill
        async def hear() -> None:
            """Tells the test"""
            heard.set()

        async with hub() as running, running.client() as client:
            assert await running.add(agent) == "agt_greeter"
            assert (await client.call("agt_greeter", "greet", {"name": "Ada"}))["text"] == "Good day, Ada"
            await client.call("agt_greeter", "hear")
            assert heard.is_set()
            found = [each.id async for each in client.discover("greet")]
            assert found == ["agt_greeter"]
            with pytest.raises(AgentNotFound):
                await client.call("agt_nobody", "greet", {"name": "Ada"})

    asyncio.run(scenario())
    # It ends at once and cleanly, though an agent was connected to the last.
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_agents_call_each_other_through_it() -> None:
    async def scenario() -> None:
        async with hub() as running, running.client() as client, FakeAgent("dotted", ["hello"]) as fake:
            await running.add(greeter())
            await client.register(fake.url, id=fake.id)
            assert (await client.call("agt_greeter", "ask_another"))["heard"] == {"text": "hello"}

    asyncio.run(scenario())


def test_an_hour_passes_when_the_test_says_so() -> None:
    async def scenario() -> None:
        async with hub() as running, running.client() as client:
            await running.add(greeter())
            handle = await client.submit("agt_greeter", "wait", timeout_ms=600_000)
            await running.advance(3600)
            with pytest.raises(AgentTimeout):
                await handle.result(timeout_s=10)
            # The agent was there all the time: its signs of life went on.
            assert (await client.call("agt_greeter", "greet", {"name": "Ada"}))["text"] == "Good day, Ada"

    asyncio.run(scenario())


def test_the_fixture_is_for_tests_that_are_no_coroutines(dragoman_hub: ThreadedHub) -> None:
    agent_id = dragoman_hub.add(greeter())
    dragoman_hub.advance(60)
    result = dragoman_hub.client().sync.call(agent_id, "greet", {"name": "Ada", "polite": False})
    assert result["text"] == "Hi Ada"


def test_an_agent_that_is_fit_passes_the_check_in_every_dialect() -> None:
    report = asyncio.run(check(greeter()))
    assert report.ok, str(report)
    lines = str(report).splitlines()
    assert lines[0] == "Greeter (agt_greeter)"
    assert lines[-1] == "fit to be called"
    for dialect in ("a2a-1.0", "a2a-0.3", "agentvault", "envelope", "directory", "platform", "dotted"):
        assert any(line.startswith(f" ✔ {dialect.ljust(11)} 1 of 1") for line in lines), str(report)
    assert any(line.startswith(" ! wait") and "not run" in line for line in lines)


def test_what_is_wrong_with_an_agent_is_said_in_words() -> None:
    agent = Agent("Odd")

    @agent.skill(examples=[{"n": "seven"}])
    async def count(n: int) -> int:
        return n

    report = asyncio.run(check(agent))
    assert not report.ok
    assert 'the example {"n":"seven"} does not fit its schema: n:' in str(report)
    assert "no description: write a docstring" in str(report)
    assert str(report).endswith("1 fault")


def test_an_example_that_fails_is_a_fault() -> None:
    agent = Agent("Broken", description="Breaks")

    @agent.skill(examples=[{}])
    async def break_down() -> AsyncIterator[str]:
        """Breaks"""
        raise ValueError("secret")
        yield ""

    report = asyncio.run(check(agent))
    assert not report.ok and "secret" not in str(report)
    assert any(each.subject == "break_down" and "fails on {}" in each.said for each in report.faults), str(report)
