"""What passes through by itself when the handler of one call makes others: real agents, connected to a real hub."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from dragoman import A2AClient, Agent, Context, call_agent, errors, sync
from dragoman.sdk.scope import Scope, within
from tests.end_to_end.world import fresh, join
from tests.support.hub import HubProcess
from tests.support.hurried_clock import HurriedClock
from tests.support.platform_agent import PlatformAgent

TRACE = "0af7651916cd43dd8448eb211c80319c"


@asynccontextmanager
async def connected(*agents: Agent) -> AsyncGenerator[None]:
    for agent in agents:
        await agent.connect()
    try:
        yield
    finally:
        await asyncio.gather(*[agent.stop() for agent in agents])


def caller_of(inner: str, hub: str) -> Agent:
    """An agent whose handlers call another one, in every way there is."""
    agent = Agent("Outer", id=fresh("agt_outer"), hub=hub)

    @agent.skill
    async def gathers() -> dict[str, Any]:
        """Bare coroutines, side by side"""
        return {"all": await asyncio.gather(*[call_agent(inner, "echo", {"n": n}) for n in range(2)])}

    @agent.skill
    def blocks() -> dict[str, Any]:
        """In a worker thread"""
        return sync.call_agent(inner, "echo", {"n": 1})

    @agent.skill
    async def asks(ctx: Context) -> dict[str, Any]:
        """Through its context"""
        return await ctx.call(inner, "echo", {"n": 1})

    return agent


@pytest.mark.req("P-42")
@pytest.mark.parametrize("skill", ["gathers", "blocks", "asks"])
def test_trace_conversation_and_parent_pass_through_a_nested_call(
    skill: str, open_hub: HubProcess, agent: PlatformAgent
) -> None:
    outer = caller_of(join(open_hub, agent)["id"], open_hub.url)

    async def called() -> Any:
        async with connected(outer):
            scope = Scope(call_id="a2a_call_mine", traceparent=f"00-{TRACE}-b7ad6b7169203331-01")
            with within(scope):
                return await A2AClient(open_hub.url).call(
                    outer.id, skill, {}, conversation_id="conv_7", metadata={"user": "usr_1"}, timeout_ms=20_000
                )

    result = asyncio.run(called())
    for _, headers, body in agent.requests:
        context = body["context"]
        assert headers["traceparent"].split("-")[1] == TRACE
        assert context["conversation_id"] == "conv_7"
        assert context["parent_execution_id"] == result.id
        assert context["call_chain"][0] == outer.id
        assert not context.get("metadata")
        assert body["options"]["timeout_ms"] <= 20_000 - 50
    assert len(agent.requests) == (2 if skill == "gathers" else 1)


@pytest.mark.req("P-42")
def test_a_call_that_comes_back_is_found_by_what_passes_through(open_hub: HubProcess) -> None:
    first, second = (Agent(name, id=fresh("agt_loop"), hub=open_hub.url) for name in ("First", "Second"))

    @first.skill
    async def there() -> dict[str, Any]:
        """Calls the second"""
        return await call_agent(second.id, "back", {})

    @second.skill
    async def back() -> dict[str, Any]:
        """Calls the first"""
        with pytest.raises(errors.CallLoop) as raised:
            await call_agent(first.id, "there", {})
        return {"chain": raised.value.chain, "said": str(raised.value)}

    async def called() -> Any:
        async with connected(first, second):
            return await A2AClient(open_hub.url).call(first.id, "there", {})

    result = asyncio.run(called())
    assert result["chain"] == [first.id, second.id, first.id]
    assert result["said"].endswith("Call an agent that is not already waiting.")


def test_a_nested_call_has_at_most_what_is_left_of_the_time(open_hub: HubProcess, agent: PlatformAgent) -> None:
    agent_id = join(open_hub, agent)["id"]
    clock = HurriedClock()
    client = A2AClient(open_hub.url, clock=clock)

    async def called(left_s: float, **options: Any) -> None:
        with within(Scope(call_id="a2a_call_p", deadline=clock.monotonic() + left_s, client=client)):
            await call_agent(agent_id, "echo", {}, **options)

    asyncio.run(called(10.0))
    asyncio.run(called(10.0, timeout_ms=700))
    given = [body["options"]["timeout_ms"] for _, _, body in agent.requests]
    assert 9000 < given[0] <= 9950
    assert given[1] <= 700
    with pytest.raises(errors.AgentTimeout, match="nothing was sent"):
        asyncio.run(called(0.04))
    assert len(agent.requests) == 2
