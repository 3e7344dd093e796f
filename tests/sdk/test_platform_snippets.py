"""The Python blocks of the Agent Platform's document, as written, against a real hub and agents of those ids."""

import ast
import asyncio
import hashlib
import hmac
import inspect
import re
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent, models
from dragoman.sdk.client.results import CallResult
from tests.support.hub import HubProcess

BLOCKS = re.findall(
    r"^## (.+?)\n\n```python\n(.*?)^```",
    Path(__file__).with_name("platform_snippets.md").read_text(),
    re.MULTILINE | re.DOTALL,
)
SOURCES = dict(BLOCKS)
# Two blocks use what they do not import; everything else is as it stands in the document.
MISSING = {
    "Hierarchical Delegation": "from agentplatform import Agent\nfrom agentplatform.a2a import call_agent\n",
    "SDK Integration": "from agentplatform import tool\n",
}
SEARCHERS = ("agt_news_researcher", "agt_academic_researcher", "agt_social_researcher")
SPECIALISTS = ("agt_code_specialist", "agt_research_specialist", "agt_writing_specialist")


async def run_block(title: str) -> dict[str, Any]:
    """Carry out a block at the top of a module, where it may await; what it has defined."""
    code = compile(MISSING.get(title, "") + SOURCES[title], title, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    names: dict[str, Any] = {"__name__": "snippet"}
    result = eval(code, names)  # noqa: S307 - the document's own words
    if inspect.isawaitable(result):
        await result
    return names


def document_agents(hub: str) -> list[Agent]:
    """The agents that the document calls."""
    made: list[Agent] = []

    def agent(id: str) -> Agent:
        made.append(Agent(id.removeprefix("agt_"), id=id, hub=hub))
        return made[-1]

    researcher = agent("agt_researcher")

    @researcher.skill
    async def web_search(query: str) -> dict[str, Any]:
        """Search the web"""
        return {"results": [{"title": query}]}

    @researcher.skill
    async def summarize(content: str) -> dict[str, Any]:
        """Summarize a text"""
        return {"summary": content}

    @agent("agt_analyst").skill
    async def analyze(data: dict[str, Any]) -> dict[str, Any]:
        """Analyse data"""
        return {"topics": [found["title"] for found in data["results"]]}

    @agent("agt_writer").skill
    async def write_article(analysis: dict[str, Any], topic: str) -> dict[str, Any]:
        """Write an article"""
        return {"article": f"{topic}: {', '.join(analysis['topics'])}"}

    for id in SEARCHERS:

        @agent(id).skill
        async def search(query: str, of: str = id) -> dict[str, Any]:
            """Search one source"""
            return {"from": of, "found": query}

    @agent("agt_aggregator").skill
    async def merge_results(results: list[dict[str, Any]]) -> dict[str, Any]:
        """Merge results"""
        return {"merged": [each["from"] for each in results]}

    for id in SPECIALISTS:

        @agent(id).skill
        async def handle(task: str, of: str = id) -> dict[str, Any]:
            """Do what this one is for"""
            return {"by": of, "task": task}

    return made


@asynccontextmanager
async def connected(hub: str) -> AsyncGenerator[None]:
    """All of them at the hub, within the block."""
    agents = document_agents(hub)
    try:
        for agent in agents:
            await agent.connect()
        yield
    finally:
        await asyncio.gather(*[agent.stop() for agent in agents])


@pytest.fixture
def world(open_hub: HubProcess, monkeypatch: pytest.MonkeyPatch) -> str:
    """A hub without keys, as the environment of the snippets names it."""
    monkeypatch.setenv("DRAGOMAN_URL", open_hub.url)
    monkeypatch.delenv("DRAGOMAN_TOKEN", raising=False)
    return open_hub.url


def test_the_document_has_five_blocks() -> None:
    assert list(SOURCES) == [
        "Sequential Chain", "Parallel Fan-Out", "Hierarchical Delegation", "Request Signing", "SDK Integration",
    ]  # fmt: skip


@pytest.mark.req("P-39", "P-63")
def test_the_chain_the_fan_and_the_client_of_the_document_run_as_written(world: str) -> None:
    async def ran() -> tuple[Any, Any, dict[str, Any]]:
        async with connected(world):
            chain = await run_block("Sequential Chain")
            article = await chain["research_and_write"]("tides")
            fan = await run_block("Parallel Fan-Out")
            aggregated = await fan["multi_source_research"]("tides")
            sdk = await run_block("SDK Integration")
            sdk["delegated"] = await sdk["delegate_research"]("moon")
            return article, aggregated, sdk

    article, aggregated, sdk = asyncio.run(ran())
    assert article == {"article": "tides: tides"}
    assert isinstance(article, CallResult)
    assert article.id.startswith("a2a_call_")
    assert aggregated == {"merged": list(SEARCHERS)}
    assert sdk["result"] == {"summary": "..."}
    assert sdk["delegated"] == {"results": [{"title": "moon"}]}
    assert sdk["agent"].name == "Coordinator"
    assert [tool.name for tool in sdk["agent"].tools] == ["delegate_research"]
    assert sdk["delegate_research"].input_schema["required"] == ["query"]


@pytest.mark.req("P-39")
def test_the_coordinator_lets_its_model_use_the_tool_of_the_document(world: str) -> None:
    async def ran() -> str:
        async with connected(world):
            sdk = await run_block("SDK Integration")
            wanted = models.ModelReply(
                tool_calls=(models.ToolCall(id="1", name="delegate_research", arguments={"query": "tides"}),)
            )
            coordinator = sdk["agent"].clone(model=models.scripted([wanted, "Tides rise."]))
            return (await coordinator.run("What do tides do?")).content

    assert asyncio.run(ran()) == "Tides rise."


@pytest.mark.req("P-40")
def test_the_manager_of_the_document_delegates_and_else_works_itself(world: str) -> None:
    async def ran() -> list[Any]:
        async with connected(world), AsyncExitStack() as stack:
            names = await run_block("Hierarchical Delegation")
            manager = names["ManagerAgent"]()
            results = [await manager.handle_task("research the tides"), await manager.handle_task("fix this code")]
            manager.model = models.scripted(["none", "I did it myself."])
            results.append((await manager.handle_task("hum a tune")).content)
            manager.model = None
            manager.hub = world
            await manager.connect()
            stack.push_async_callback(lambda: stopped(manager))
            results.append(await names["call_agent"](manager.id, "handle", {"task": "writing a poem"}))
            return results

    research, code, own, through_the_hub = asyncio.run(ran())
    assert research == {"by": "agt_research_specialist", "task": "research the tides"}
    assert code == {"by": "agt_code_specialist", "task": "fix this code"}
    assert own == "I did it myself."
    assert through_the_hub == {"by": "agt_writing_specialist", "task": "writing a poem"}


def test_the_signature_of_the_document_is_the_one_that_the_hub_makes() -> None:
    verify = asyncio.run(run_block("Request Signing"))["verify_signature"]
    right = "sha256=" + hmac.new(b"secret", b"payload", hashlib.sha256).hexdigest()
    assert verify(b"payload", right, "secret")
    assert not verify(b"payload!", right, "secret")


async def stopped(agent: Agent) -> None:
    await agent.stop()
