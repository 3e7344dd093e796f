"""Real, unmodified clients at an agent's own server: the published SDKs of A2A, and those that the dotted document
prints. And the agent under another ASGI server than ours.
"""

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.end_to_end.test_sdk_peers import documents
from tests.end_to_end.world import tracebacks
from tests.support.agent_server import AgentServer, running_server
from tests.support.hub import HubProcess
from tests.support.peers import RECIPES, peer_python
from tests.support.sdk_caller import CLIENTS, SdkCaller, SdkClient
from tests.support.sdk_follower import SdkFollower
from tests.support.served_agent import AGENT_ID, STREAMED
from tests.support.speaking import FAILURE, QUESTION, Content

# Those that are led to 0.3 by another card speak as the others do: once in a while is enough.
every_client = pytest.mark.parametrize(
    "client", [pytest.param(each, marks=[pytest.mark.full] if each.mount else [], id=str(each)) for each in CLIENTS]
)


class RootCaller(SdkCaller):
    """A published client of the agent whose base is the root."""

    def _base(self, agent: str) -> str:
        return f"{self._hub}/{self.client.mount}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[AgentServer]:
    with running_server(tmp_path_factory.mktemp("served") / "data") as server:
        yield server
    assert tracebacks(server) == []


@pytest.mark.req("X-22")
@every_client
def test_a_published_client_talks_to_an_agents_own_server(server: AgentServer, client: SdkClient) -> None:
    follower = SdkFollower(client, server.url)
    follower.caller = caller = RootCaller(client, server.url)
    with follower:
        sent = Content(text="hello")
        seen = caller.call("", sent)
        assert (seen.error, seen.state, seen.content) == (None, "completed", (sent,)), seen
        assert caller.get("", seen).content == (sent,)
        failed = caller.call("", Content(text="fail"))
        assert (failed.state, failed.message) == ("failed", FAILURE), failed
        asks = caller.call("", Content(text="ask"))
        assert (asks.state, asks.message) == ("input-required", QUESTION), asks
        goes_on = caller.follow_up("", asks, Content(text="the blue one"))
        assert (goes_on.task_id, goes_on.content) == (asks.task_id, (Content(text="the blue one"),)), goes_on
        slow = caller.call("", Content(text="slow"), wait=False)
        assert caller.cancel("", slow).state == "canceled"
        with follower.open("", "stream") as stream:
            pieces = stream.rest()
        assert "".join(piece.text or "" for piece in pieces) == "".join(STREAMED)
        assert pieces[-1].state == "completed"


# -- the dotted document's own clients


@pytest.mark.req("D-12")
def test_the_documents_python_client_runs_as_printed(server: AgentServer) -> None:
    program = (RECIPES / "dotted_document_client.py").read_text().replace("localhost:8001", f"localhost:{server.port}")
    command = [str(peer_python("requests")), "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    agent, skills, task, status, solution = done.stdout.splitlines()
    assert agent == f"Agent: {AGENT_ID}"
    assert skills == "Skills: ['chat', 'add', 'patient']"
    assert task.startswith("Task ID: task-")
    assert (status, solution) == ("Status: completed", "Solution: Write a bash script to monitor disk usage")


@pytest.mark.req("D-12")
def test_the_documents_curl_examples_run_as_printed_but_for_the_quote(server: AgentServer) -> None:
    printed = (RECIPES / "dotted_document_curl.sh").read_text()
    mended = printed.replace('"Content-Type": application/json"', '"Content-Type: application/json"')
    command = ["bash", "-ec", mended.replace("localhost:8001", f"localhost:{server.port}")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    card, sent, got = documents(done.stdout)
    assert card["name"] == AGENT_ID
    assert sent["result"]["status"]["state"] == "completed"
    assert sent["result"]["artifacts"][0]["parts"] == [
        {"kind": "text", "text": "Write a bash script to find large files"}
    ]
    assert (got["id"], got["error"]["code"]) == ("req-002", -32001)


# -- under another server


class PlainUvicorn(HubProcess):
    """`uvicorn module:agent.app`, as shipped."""

    def command(self) -> list[str]:
        """The program."""
        return [sys.executable, "-m", "uvicorn", "--port", str(self.port), "tests.support.served_agent:served.app"]


@pytest.mark.parametrize("auth", ["none", "token"])
def test_the_agent_is_an_application_for_other_servers(tmp_path: Path, auth: str) -> None:
    server = PlainUvicorn(tmp_path / "data", auth=auth)
    server.start({"DRAGOMAN_DATA": str(tmp_path), "DRAGOMAN_PORT": str(server.port), "DRAGOMAN_AUTH": auth})
    try:
        named = {"Host": f"localhost:{server.port}"}
        assert server.get("/.well-known/agent-card.json", named).json["url"] == f"http://localhost:{server.port}/"
        assert server.call("add", {"a": 1, "b": 1}).json["result"] == {"sum": 2}
        nobody = {"Authorization": ""}
        status = server.post("/platform/", {"skill": "add", "input": {"a": 1}}, nobody).status
        assert status == (200 if auth == "none" else 401)
        assert (tmp_path / "agents" / AGENT_ID / "hub.db").exists()
    finally:
        code = server.stop()
    assert code in (0, -15)  # uvicorn ends itself by the signal that it got
    assert "Traceback" not in server.log.read_text()
