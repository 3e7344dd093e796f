"""The examples of docs/workflows.md, as they stand there."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.world import join, skill
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

MANUAL = Path(__file__).parents[2] / "docs" / "workflows.md"
EXAMPLES: list[dict[str, Any]] = [
    json.loads(block) for block in re.findall(r"```json\n(.*?)```", MANUAL.read_text("utf-8"), re.DOTALL)
]
ANSWERS: dict[str, dict[str, Any]] = {
    "web_search": {"results": ["one", "two"]},
    "analyze": {"summary": "it goes up and down"},
    "fact_check": {"true": True},
}


def test_there_are_examples_of_both_dialects() -> None:
    assert [("jsonrpc" in example) for example in EXAMPLES] == [False, True, False]


@pytest.mark.req("R-12")
@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_of_the_manual_runs(hub: HubProcess, agent: PlatformAgent, number: int) -> None:
    join(hub, agent, skills=[skill(name) for name in (*ANSWERS, "write_article")])

    def respond(body: dict[str, Any]) -> dict[str, Any]:
        return {"result": ANSWERS.get(body["skill"], {"wrote": body["input"]})}

    agent.respond = respond
    example = EXAMPLES[number]
    try:
        if "jsonrpc" in example:
            output = hub.post("/a2a/task", example).json["result"]["output"]
        else:
            output = hub.post("/v1/a2a/call", example).json["result"]
    finally:
        hub.request("DELETE", f"/v1/agents/{agent.requests[0][2]['target_agent_id']}")
    analysis, checked = ANSWERS["analyze"], ANSWERS["fact_check"]
    assert (
        output["wrote"]
        == [
            {"analysis": analysis, "sources": ["one", "two"]},
            {"analysis": analysis},
            {"analysis": analysis["summary"], "checked": checked, "both": [analysis, checked]},
        ][number]
    )
