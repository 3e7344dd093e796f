"""The programs that the frameworks' pages show run as they stand, each in its framework's environment."""

import os
import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from dragoman import A2AClient
from dragoman.errors import InputRequired
from tests.frameworks.world import QUIET
from tests.support.hub import HubProcess
from tests.support.peers import ROOT, peer_python
from tests.support.run import run

pytestmark = pytest.mark.full

EXAMPLES = ROOT / "examples" / "frameworks"
STOP_S = 30.0


@contextmanager
def started(hub: HubProcess, framework: str, *words: str) -> Generator[A2AClient]:
    """A program from its word that its agent is connected to its end; who calls that agent."""
    environment = {"PYTHONPATH": str(ROOT / "src"), "DRAGOMAN_URL": hub.url, "DRAGOMAN_TOKEN": hub.token or ""}
    program = subprocess.Popen(
        [peer_python(framework), *words],
        cwd=EXAMPLES / framework,
        env={**os.environ, **QUIET, **environment},
        stderr=subprocess.PIPE,
        text=True,
    )
    assert program.stderr is not None
    try:
        heard = ""
        while "is connected" not in heard:
            line = program.stderr.readline()
            assert line, heard
            heard += line
        yield A2AClient(hub.url, hub.token)
    finally:
        program.terminate()
        program.communicate(timeout=STOP_S)
    assert program.returncode == 0


@pytest.mark.parametrize(
    ("framework", "agent", "said"),
    [
        ("langgraph", "agt_guide", {"text": "Oslo has 709000 inhabitants."}),
        ("openai-agents", "agt_guide", {"text": "Oslo has 709000 inhabitants."}),
        ("pydantic-ai", "agt_guide", {"name": "Oslo", "people": 709_000}),
        ("crewai", "agt_guides", {"text": "Oslo has 709000 inhabitants."}),
        ("google-adk", "agt_guide", {"text": "Oslo has 709000 inhabitants."}),
        ("llama-index", "agt_guide", {"text": "Oslo has 709000 inhabitants."}),
        ("smolagents", "agt_guide", {"text": "Oslo has 709000 inhabitants."}),
        ("autogen", "agt_guides", {"text": "Oslo has 709000 inhabitants."}),
    ],
)
def test_the_agent_on_the_page_answers(framework: str, agent: str, said: object, hub: HubProcess) -> None:
    with started(hub, framework, "agent.py") as client:
        assert dict(run(client.call(agent, message="Who lives in Oslo?"))) == said


def test_the_graph_on_the_page_asks(hub: HubProcess) -> None:
    async def play(client: A2AClient) -> str:
        with pytest.raises(InputRequired, match=r"Which colour\?") as asked:
            await client.call("agt_painter", message="Paint the door")
        return (await asked.value.handle.send("blue")).text

    with started(hub, "langgraph", "painter.py") as client:
        assert run(play(client)) == "Painted in blue"


def test_the_workflow_on_the_page_asks(hub: HubProcess) -> None:
    async def play(client: A2AClient) -> dict[str, object]:
        with pytest.raises(InputRequired, match=r"How many words\?") as asked:
            await client.call("agt_writer", "write", {"topic": "tides"})
        return dict(await asked.value.handle.send("300"))

    with started(hub, "llama-index", "writer.py") as client:
        assert run(play(client)) == {"text": "300 words about tides"}


def test_the_object_itself_is_run_from_the_command_line(hub: HubProcess) -> None:
    with started(hub, "langgraph", "-m", "dragoman", "run", "agent.py:guide") as client:
        assert run(client.call("agt_guide", message="Who lives in Oslo?")).text == "Oslo has 709000 inhabitants."
