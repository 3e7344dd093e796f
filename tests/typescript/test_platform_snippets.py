"""Both TypeScript snippets of the Agent Platform's document, as written: type-checked, and run against real agents."""

import asyncio
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from dragoman import Agent
from tests.support.hub import HubProcess
from tests.typescript.running import environment, ran

BLOCK = re.findall(
    r"^```typescript\n(.*?)^```", Path(__file__).with_name("platform_snippets.md").read_text(), re.MULTILINE | re.DOTALL
)
TSCONFIG = {
    "compilerOptions": {
        "strict": True,
        "module": "NodeNext",
        "target": "ES2022",
        "lib": ["ES2023", "DOM", "DOM.AsyncIterable"],
        "types": [],
        "outDir": "out",
    },
    "include": ["*.ts"],
}
# What a reader would do next with what the snippets made: see it, call the tool, let a model use it.
NEXT = """
import { Agent, type ModelRequest } from '@agentplatform/sdk';
import { agent, delegateResearch, result } from './snippet.js';

const seen: ModelRequest[] = [];
const wanted = { name: 'delegate_research', arguments: { query: 'tides' } };
const working = new Agent({
  name: agent.name,
  tools: agent.tools,
  model: async (request) => {
    seen.push(request);
    return seen.length > 1 ? 'Tides rise.' : { toolCalls: [wanted] };
  },
});
console.log(JSON.stringify({
  result,
  name: agent.name,
  instructions: agent.instructions,
  tools: agent.tools.map((tool) => [tool.name, tool.description]),
  delegated: await delegateResearch({ query: 'moon' }),
  schema: await delegateResearch.inputSchema(),
  content: (await working.run('What do tides do?')).content,
  told: seen[1]?.messages.at(-1)?.text,
}));
"""


def researcher(hub: str) -> Agent:
    agent = Agent("Researcher", id="agt_researcher", hub=hub)

    @agent.skill
    async def web_search(query: str) -> dict[str, Any]:
        """Search the web"""
        return {"results": [{"title": query}]}

    @agent.skill
    async def summarize(content: str) -> dict[str, Any]:
        """Summarize a text"""
        return {"summary": content}

    assert web_search and summarize
    return agent


@pytest.fixture
def project(sdk: Path, tmp_path: Path) -> Path:
    """A project of a user of the SDK, which has the snippets in a file."""
    packages = tmp_path / "node_modules"
    (packages / "@agentplatform").mkdir(parents=True)
    (packages / "@agentplatform" / "sdk").symlink_to(sdk)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps(TSCONFIG))
    (tmp_path / "snippet.ts").write_text(BLOCK[0] + "\nexport { agent, delegateResearch, result };\n")
    (tmp_path / "next.ts").write_text(NEXT)
    return tmp_path


def test_the_document_has_one_block_with_both_snippets() -> None:
    assert len(BLOCK) == 1
    assert BLOCK[0].count("a2a.tool(") == 1
    assert BLOCK[0].count("a2a.call(") == 1


@pytest.mark.req("P-41")
def test_both_snippets_of_the_document_type_check_and_run_as_written(
    sdk: Path, project: Path, open_hub: HubProcess
) -> None:
    checked = subprocess.run(
        [sdk / "node_modules" / ".bin" / "tsc", "-p", project], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout

    async def play() -> str:
        agent = researcher(open_hub.url)
        await agent.connect()
        try:
            return await asyncio.to_thread(ran, "out/next.js", env=environment(open_hub), cwd=project)
        finally:
            await agent.stop()

    seen = json.loads(asyncio.run(play()))
    assert seen["result"] == {"summary": "..."}
    assert (seen["name"], seen["instructions"]) == ("Coordinator", "Coordinate research tasks.")
    assert seen["tools"] == [["delegate_research", "Delegate research to specialist"]]
    assert seen["delegated"] == {"results": [{"title": "moon"}]}
    assert seen["schema"]["required"] == ["query"]
    assert (seen["content"], json.loads(seen["told"])) == ("Tides rise.", {"results": [{"title": "tides"}]})


@pytest.mark.full
def test_a_wrong_snippet_does_not_type_check(sdk: Path, project: Path) -> None:
    wrong = (project / "snippet.ts").read_text().replace("agentId:", "agent:")
    (project / "snippet.ts").write_text(wrong)
    checked = subprocess.run(
        [sdk / "node_modules" / ".bin" / "tsc", "-p", project], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode != 0
    assert "agentId" in checked.stdout
