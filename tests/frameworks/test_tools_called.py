"""Skills as tools of real frameworks: a model of each, without a network, calls them through a real hub."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest

from dragoman import Agent, Context, errors
from dragoman.sdk.testing.hubs import ThreadedHub, hub_in_thread
from tests.frameworks.world import PATIENCE_S, QUIET
from tests.support.peers import RECIPES, ROOT, peer_python

pytestmark = pytest.mark.full

# Each framework, the environment it lives in, and how often its program plays.
FRAMEWORKS = {
    "langchain": ("langgraph", 2),
    "openai_agents": ("openai-agents", 1),
    "pydantic_ai": ("pydantic-ai", 1),
    "crewai": ("crewai", 2),
    "smolagents": ("smolagents", 1),
    "llama_index": ("llama-index", 1),
    "autogen": ("autogen", 1),
    "google_adk": ("google-adk", 1),
}
HEARD = [
    '{"results":["tides","tides"]}',
    "Hello, Ada!",
    "AGENT_ERROR: Somebody else has it. Do not repeat this call; use another tool or say so.",
    "conv_7",
]


@pytest.fixture(scope="module")
def hub() -> Iterator[ThreadedHub]:
    archive = Agent("Archive", description="Knows every book.")

    @archive.skill
    def web_search(query: Annotated[str, "What to look for"], max_results: int = 2) -> dict[str, Any]:
        """Search the web"""
        return {"results": [query] * max_results}

    @archive.skill
    def greet(name: str) -> str:
        """Greet somebody"""
        return f"Hello, {name}!"

    @archive.skill
    def lend(title: str) -> str:
        """Lend a book"""
        raise errors.AgentError("Somebody else has it")

    @archive.skill
    def where(ctx: Context) -> str:
        """Which conversation this is"""
        return ctx.conversation_id

    @archive.skill
    def taken(config: str) -> str:
        """Takes what frameworks call otherwise"""
        return f"config is {config}"

    with hub_in_thread() as running:
        running.add(archive)
        yield running


def output(environment: str, program: Path, hub: ThreadedHub) -> str:
    """What a program prints, in the environment of its framework."""
    done = subprocess.run(
        [peer_python(environment), program],
        env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT / "src"), "DRAGOMAN_URL": hub.url},
        capture_output=True,
        text=True,
        timeout=4 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("framework", ["langchain", "openai_agents", "pydantic_ai"])
def test_the_example_of_the_guide_runs(framework: str, hub: ThreadedHub) -> None:
    program = ROOT / "examples" / "frameworks" / "tools" / f"with_{framework}.py"
    assert output(FRAMEWORKS[framework][0], program, hub) == f"I found {HEARD[0]}\n"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_a_model_of_the_framework_calls_skills_as_tools(framework: str, hub: ThreadedHub) -> None:
    environment, plays = FRAMEWORKS[framework]
    said = output(environment, RECIPES / f"tools_{framework}.py", hub)
    told = [json.loads(line) for line in said.splitlines() if line.startswith('{"shown"')]
    assert len(told) == plays
    for each in told:
        assert each["heard"] == HEARD
        assert each["answer"] == "That was all."
        search = each["shown"]["agt_archive__web_search"]
        assert search["properties"]["query"]["description"] == "What to look for"
        assert '"integer"' in json.dumps(search["properties"]["max_results"])
        assert "query" in search["required"]
