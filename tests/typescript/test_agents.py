"""An agent in TypeScript, called from other dialects and from Python; callers in TypeScript of agents in Python."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import A2AClient, Agent, Context
from dragoman.dialects import DIALECTS
from dragoman.dialects.dialect import Dialect
from dragoman.errors import AgentError, CallCancelled, InputRequired
from tests.end_to_end.world import eventually
from tests.support.following import follower_of
from tests.support.hub import HubProcess
from tests.support.matrix import FAILED, LINK, SHOWN_AS_STATE, TEXT, caller_of, cell_name
from tests.support.speaking import FAILURE, QUESTION, Content
from tests.support.telling import FIRST, WHOLE
from tests.typescript.running import AGENT, NodeAgent, environment, ran

TWO_DIALECTS = pytest.mark.parametrize("dialect", [DIALECTS["a2a-1.0"], DIALECTS["envelope"]], ids=cell_name)
EVERY_DIALECT = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=cell_name)
# Whole numbers beyond 2^53 are no numbers of JavaScript.
DATA = Content(data={"q": "ü", "n": 2**53 - 1, "list": [1, 2.5, None, True], "deep": {"a": {"b": []}}})
PATIENCE_S = 20.0


def caller(hub: HubProcess) -> A2AClient:
    return A2AClient(hub.url, hub.token)


@pytest.mark.req("X-21")
@EVERY_DIALECT
def test_it_is_called_from_every_dialect(open_hub: HubProcess, agent: NodeAgent, dialect: Dialect) -> None:
    for sent in (TEXT, DATA, LINK):
        seen = caller_of(dialect)(open_hub.url, "").call(AGENT, sent)
        assert (seen.error, seen.state, seen.content) == (None, "completed", (sent,)), (seen, agent.said())


@TWO_DIALECTS
def test_it_is_streamed_in_other_dialects(open_hub: HubProcess, agent: NodeAgent, dialect: Dialect) -> None:
    agent.hold()
    with follower_of(dialect)(open_hub.url, "").open(AGENT, "tell") as stream:
        # The envelope has no word for half an answer; its callers hear that the work goes on.
        envelope = dialect.slug == "envelope"
        stream.until(lambda piece: piece.state is not None if envelope else FIRST in (piece.text or piece.whole or ""))
        agent.go_on()
        pieces = stream.rest()
    assert [piece.state for piece in pieces if piece.state is not None][-1] == "completed", pieces
    wholes = [piece.whole for piece in pieces if piece.whole is not None]
    assert ("".join(piece.text for piece in pieces) or wholes[-1]) == WHOLE, pieces


@TWO_DIALECTS
def test_it_asks_back_in_other_dialects(open_hub: HubProcess, agent: NodeAgent, dialect: Dialect) -> None:
    asking = caller_of(dialect)(open_hub.url, "")
    first = asking.call(AGENT, Content(text="ask"))
    assert QUESTION in (first.message or ""), (first, agent.said())
    second = asking.follow_up(AGENT, first, Content(text="the blue one"))
    assert second.state == "completed", second
    assert second.content[0] in (Content(text="the blue one"), Content(data={"text": "the blue one"})), second


@TWO_DIALECTS
def test_it_is_cancelled_and_fails_in_other_dialects(open_hub: HubProcess, agent: NodeAgent, dialect: Dialect) -> None:
    asking = caller_of(dialect)(open_hub.url, "")
    ended, begun = len(agent.marks("end")), len(agent.marks())
    first = asking.call(AGENT, Content(text="slow"), wait=False)
    eventually(lambda: len(agent.marks()) > begun, "the handler began")
    assert asking.cancel(AGENT, first).state == "canceled"
    eventually(lambda: len(agent.marks("end")) > ended, "the handler was told")
    failed = asking.call(AGENT, Content(text="fail"))
    words = FAILED.get(dialect.slug, SHOWN_AS_STATE)
    assert (failed.state, failed.error) == (words.state, words.error)
    assert FAILURE in (failed.message or "")


def test_a_caller_in_python_calls_streams_asks_and_cancels_it(
    open_hub: HubProcess, agent: NodeAgent, tmp_path: Path
) -> None:
    release = tmp_path / "release"
    count = {"to": 4, "hold_at": 2, "release": str(release)}

    async def play() -> None:
        async with caller(open_hub) as client, asyncio.timeout(PATIENCE_S):
            words: list[str] = []
            async for event in client.stream(AGENT, "count", count):
                words.append(event.content)
                if event.message == "holds":
                    release.touch()
            assert "".join(words) == "0 1 2 3 "
            with pytest.raises(InputRequired) as first:
                await client.call(AGENT, "question")
            with pytest.raises(InputRequired) as second:
                await first.value.handle.send("this")
            assert (await second.value.handle.send("that")).text == "this and that"
            with pytest.raises(AgentError) as failed:
                await client.call(AGENT, message="fail")
            assert failed.value.message == FAILURE
            begun, ended = len(agent.marks()), len(agent.marks("end"))
            handle = await client.submit(AGENT, "wait")
            await asyncio.to_thread(eventually, lambda: len(agent.marks()) > begun, "it waits")
            await handle.cancel("enough")
            await asyncio.to_thread(eventually, lambda: len(agent.marks("end")) > ended, "it was told")
            with pytest.raises(CallCancelled):
                await handle.result()

    asyncio.run(play())


@asynccontextmanager
async def python_agent(hub: HubProcess) -> AsyncGenerator[list[Context]]:
    """An agent in Python, and the calls that it was given."""
    agent = Agent("Python Teller", hub=hub.url, api_key=hub.token)
    seen: list[Context] = []

    @agent.skill
    async def tell(city: str, ctx: Context) -> AsyncGenerator[str]:
        seen.append(ctx)
        yield f"{city} "
        yield await ctx.ask("Which sky?") if city == "Oslo" else "clear"

    assert tell
    await agent.connect()
    try:
        yield seen
    finally:
        await agent.stop()


def test_an_agent_in_typescript_calls_one_in_python_within_its_own_trace(
    open_hub: HubProcess, agent: NodeAgent
) -> None:
    async def play() -> None:
        async with caller(open_hub) as client, python_agent(open_hub) as seen:
            asked: dict[str, Any] = {"target": "agt_python_teller", "skill": "tell", "input": {"city": "Rome"}}
            result = await client.call(AGENT, "relay", asked)
            assert result.text == "Rome clear", agent.said()
            assert seen[0].trace_id == result.trace["trace_id"]

    asyncio.run(play())


def test_a_caller_in_typescript_calls_streams_and_answers_an_agent_in_python(open_hub: HubProcess, sdk: Path) -> None:
    async def play() -> Any:
        async with python_agent(open_hub):
            program = sdk / "dist" / "test" / "programs" / "caller.js"
            return json.loads(await asyncio.to_thread(ran, program, env=environment(open_hub), cwd=sdk))

    seen = asyncio.run(play())
    told = {"called": "Rome clear", "streamed": "Rome clear", "question": "Which sky?", "answered": "Oslo grey"}
    assert seen == told
