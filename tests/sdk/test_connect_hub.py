"""Agents that connect out to a real hub: called, streamed, asked, cancelled; stopped, refused, shared by processes."""

import asyncio
import logging
import signal
import threading
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import A2AClient, Agent, Context, Text
from dragoman.errors import AgentError, CallCancelled, InputRequired, NotAuthenticated, NotAuthorized
from tests.end_to_end.world import fresh
from tests.support.connected_agent import AGENT, AgentProcess
from tests.support.hub import HubProcess, running_hub
from tests.support.run import run

PATIENCE_S = 15.0
STEP_S = 0.01


@asynccontextmanager
async def connected(agent: Agent) -> AsyncGenerator[None]:
    await agent.connect()
    try:
        yield
    finally:
        await agent.stop()


def made(hub: HubProcess, name: str = "Test", **more: Any) -> Agent:
    settings: dict[str, Any] = {"id": fresh("agt_out"), "hub": hub.url, "api_key": hub.token, **more}
    return Agent(name, **settings)


def simple(hub: HubProcess, name: str = "Simple", **more: Any) -> Agent:
    agent = made(hub, name, **more)

    @agent.skill
    async def ping() -> str:
        return "pong"

    assert ping
    return agent


def caller(hub: HubProcess) -> A2AClient:
    return A2AClient(hub.url, hub.token)


def until(holds: Callable[[], bool], within_s: float = PATIENCE_S) -> None:
    """Wait for what another process does."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it never held"
        time.sleep(STEP_S)


@pytest.mark.req("X-21")
def test_an_agent_without_an_address_is_called_through_its_hub(hub: HubProcess) -> None:
    agent = made(hub, description="Adds")

    @agent.skill
    def add(a: int, b: int = 1) -> dict[str, int]:
        """Adds two numbers"""
        return {"sum": a + b}

    async def play() -> None:
        async with connected(agent), caller(hub) as client:
            assert await client.call(agent.id, "add", {"a": 2}) == {"sum": 3}
            card = await client.card(agent.id)
            assert card["name"] == "Test" and card["skills"][0]["name"] == "add"
            found = {each.id: each.status async for each in client.discover("add")}
            assert found[agent.id] == "active"

    run(play())
    assert add(1, 1) == {"sum": 2}


def test_what_it_says_is_streamed_as_it_says_it(hub: HubProcess) -> None:
    agent = made(hub)
    read = asyncio.Event()

    @agent.skill
    async def tell(ctx: Context) -> AsyncGenerator[str]:
        yield "one "
        await ctx.progress(0.5, "half way")
        await read.wait()
        yield "two"

    async def play() -> None:
        async with connected(agent), caller(hub) as client:
            events: list[Any] = []
            async for event in client.stream(agent.id, "tell"):
                events.append(event)
                if event.type == "progress" and event.progress == 0.5:
                    read.set()
            kinds = [event.type for event in events]
            assert kinds[0] == "start" and kinds[-1] == "complete"
            assert "".join(event.content for event in events) == "one two"
            assert events[-1].result is not None and events[-1].result.text == "one two"

    run(play())
    assert tell


def test_it_asks_and_goes_on_with_what_it_was_answered(hub: HubProcess) -> None:
    agent = made(hub, concurrency=1)
    began: list[int] = []

    @agent.skill
    async def report(ctx: Context) -> str:
        began.append(ctx.attempt)
        words = await ctx.ask("How many words?", int)
        title = await ctx.ask("Which title?")
        return f"{words} words: {title}"

    async def play() -> None:
        async with connected(agent), caller(hub) as client:
            with pytest.raises(InputRequired) as first:
                await client.call(agent.id, "report")
            assert first.value.question == "How many words?"
            with pytest.raises(InputRequired) as second:
                await first.value.handle.send("12")
            assert (await second.value.handle.send("Tides")).text == "12 words: Tides"

    run(play())
    assert began == [1] and report, "it was not begun anew"


def test_a_cancelled_call_is_cancelled_in_its_handler(hub: HubProcess) -> None:
    agent = made(hub)
    begun, ended = asyncio.Event(), asyncio.Event()

    @agent.skill
    async def wait() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async def play() -> None:
        async with connected(agent), caller(hub) as client:
            handle = await client.submit(agent.id, "wait")
            await begun.wait()
            await handle.cancel("enough")
            await ended.wait()
            with pytest.raises(CallCancelled):
                await handle.result(timeout_s=5)

    run(play())
    assert wait


def test_what_its_handlers_call_is_called_by_the_agent_itself(hub: HubProcess) -> None:
    inner, outer = made(hub, "Inner"), made(hub, "Outer")
    callers: list[tuple[str, str]] = []

    @inner.skill
    async def deep(ctx: Context) -> str:
        callers.append((ctx.caller.id, ctx.caller.kind))
        return "deep"

    @outer.skill
    async def shallow(ctx: Context) -> str:
        return (await ctx.call(inner.id, "deep")).text

    async def play() -> None:
        async with connected(inner), connected(outer), caller(hub) as client:
            assert (await client.call(outer.id, "shallow")).text == "deep"

    run(play())
    assert callers == [(outer.id, "agent")] and deep and shallow


def test_large_inputs_and_large_answers_pass(hub: HubProcess) -> None:
    agent = made(hub)

    @agent.skill
    async def repeat(text: str, ctx: Context) -> None:
        await ctx.artifact(text, name="whole")
        await ctx.artifact(text.upper(), name="loud")

    async def play() -> None:
        async with connected(agent), caller(hub) as client:
            said = "tides and " * 250_000
            answer = await client.call(agent.id, "repeat", {"text": said})
            texts = [part.text for made in answer.artifacts for part in made.parts if isinstance(part, Text)]
            assert "".join(texts) == said + said.upper()

    run(play())
    assert repeat


def test_a_failing_handler_fails_its_call_alone(hub: HubProcess, caplog: pytest.LogCaptureFixture) -> None:
    agent = made(hub)

    @agent.skill
    async def fail(how: str) -> str:
        if how == "secret":
            raise ValueError("password 1234")
        if how == "known":
            raise AgentError("try later", retryable=True)
        return how

    async def play() -> None:
        async with connected(agent), caller(hub) as client:
            with pytest.raises(AgentError) as secret:
                await client.call(agent.id, "fail", {"how": "secret"})
            assert "1234" not in str(secret.value) and "ValueError" in str(secret.value)
            with pytest.raises(AgentError) as known:
                await client.call(agent.id, "fail", {"how": "known"})
            assert known.value.retryable
            assert (await client.call(agent.id, "fail", {"how": "not"})).text == "not"

    run(play())
    assert "1234" in caplog.text and fail


def test_a_hub_refuses_tokens_it_does_not_know_and_ids_of_others(hub: HubProcess) -> None:
    mine = simple(hub, api_key=hub.new_key("a2a:receive", "a2a:register"))
    stranger = simple(hub, id=mine.id, api_key=hub.new_key("a2a:receive", "a2a:register"))
    unknown = simple(hub, api_key="ap_nobody_knows_this_one")
    poor = simple(hub, api_key=hub.new_key("a2a:call"))

    async def play() -> None:
        async with connected(mine):
            with pytest.raises(NotAuthorized):
                await stranger.connect()
        with pytest.raises(NotAuthenticated):
            await unknown.connect()
        with pytest.raises(NotAuthorized):
            await poor.connect()

    run(play())


def test_start_raises_what_the_hub_refuses(hub: HubProcess) -> None:
    with pytest.raises(NotAuthenticated):
        simple(hub, api_key="ap_nobody_knows_this_one").start()


def test_start_and_stop_may_be_in_different_threads(hub: HubProcess, capsys: pytest.CaptureFixture[str]) -> None:
    agent = simple(hub, "Threaded")
    working = threading.Thread(target=agent.start)
    working.start()

    until(lambda: hub.call("ping", {}, agent.id).status == 200)
    agent.stop()
    working.join(PATIENCE_S)
    assert not working.is_alive()
    assert f'{agent.id} is connected to {hub.url} as "Threaded"' in capsys.readouterr().err


def test_an_agent_is_connected_once_at_a_time_and_may_come_back(hub: HubProcess) -> None:
    agent = simple(hub)

    async def play() -> None:
        async with caller(hub) as client:
            for _ in range(2):
                async with connected(agent):
                    with pytest.raises(RuntimeError, match="connected already"):
                        await agent.connect()
                    with pytest.raises(RuntimeError, match=r"await agent\.connect"):
                        agent.start()
                    assert (await client.call(agent.id, "ping")).text == "pong"
            await agent.stop()

    run(play())


def test_an_agent_waits_for_a_hub_that_is_not_there_yet(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    late = HubProcess(tmp_path / "data")
    agent = simple(late)

    async def play() -> None:
        async with asyncio.TaskGroup() as group:
            connecting = group.create_task(agent.connect())
            await asyncio.to_thread(until, lambda: bool(caplog.records))
            await asyncio.to_thread(late.start)
            await connecting
            await agent.stop()

    try:
        with caplog.at_level(logging.WARNING, "dragoman.agent"):
            run(play(), 40)
    finally:
        late.kill()
    assert [record.message.split(" Trying")[1] for record in caplog.records[:1]] == [" again until it answers."]


def test_a_process_that_is_told_to_stop_finishes_what_it_has_and_ends_well(hub: HubProcess, tmp_path: Path) -> None:
    agent = AgentProcess(hub, tmp_path / "marks").start()
    release = tmp_path / "release"
    try:
        asked = {"to": 3, "hold_at": 1, "release": str(release)}
        accepted = hub.post("/v1/a2a/call/async", {"target_agent_id": AGENT, "skill": "count", "input": asked}).json
        until(lambda: len(agent.marks()) == 1)
        agent.signal(signal.SIGTERM)
        release.touch()
        assert agent.ended() == 0
        until(lambda: hub.get(f"/v1/a2a/call/{accepted['call_id']}/status").json["status"] == "completed")
        assert [mark.what for mark in agent.marks()] == ["begin", "end"]
        agent.start()
        hub.post("/v1/a2a/call/async", {"target_agent_id": AGENT, "skill": "wait", "input": {}})
        until(lambda: len(agent.marks()) == 3)
        agent.signal(signal.SIGTERM)
        agent.signal(signal.SIGINT)
        assert agent.ended(5) != 0, "a second signal ends it at once"
    finally:
        agent.kill()


def test_two_processes_share_one_agent(tmp_path: Path) -> None:
    with running_hub(tmp_path / "data") as hub:
        first = AgentProcess(hub, tmp_path / "marks", concurrency=3).start()
        second = AgentProcess(hub, tmp_path / "marks", concurrency=3).start()
        try:
            ids: list[str] = []
            for number in range(24):
                asked = {"number": number, "takes_s": 0.05}
                body = {"target_agent_id": AGENT, "skill": "mark_it", "input": asked}
                ids.append(hub.post("/v1/a2a/call/async", body).json["call_id"])
            for call_id in ids:
                until(lambda: hub.get(f"/v1/a2a/call/{call_id}/status").json["status"] == "completed")  # noqa: B023
            begun = [mark for mark in first.marks() if mark.what == "begin"]
            assert sorted(mark.call_id for mark in begun) == sorted(ids)
            assert {mark.pid for mark in begun} == {first.pid, second.pid}
            assert first.stop() == second.stop() == 0
        finally:
            first.kill()
            second.kill()
