"""The official MCP package at a real hub: its client at `/mcp`, and its server registered by its URL."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, Final
from urllib.request import urlopen

import pytest

from tests.end_to_end.agentvault_world import mount, text
from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import fresh
from tests.support.hub import HubProcess
from tests.support.peers import RECIPES, PeerProcess, peer_python
from tests.support.sse_client import sse
from tests.support.streaming_agent import streaming_agent

PEER: Final = "mcp-2.3.0"
VAULT: Final = "agentvault-0.2.1"
PATIENCE_S: Final = 60.0
KEY: Final = "tide-key"  # of tests/peers/mcp_server.py

Step = dict[str, Any]


class Client:
    """The official client, told what to do step by step; answers can be waited for one by one."""

    def __init__(self, hub: HubProcess, mode: str) -> None:
        command = [str(peer_python(PEER)), str(RECIPES / "mcp_client.py"), f"{hub.url}/mcp", mode, hub.token or ""]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def tell(self, step: Step) -> None:
        """Give it a step, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{json.dumps(step)}\n")
        self._process.stdin.flush()

    def told(self) -> Any:
        """What it says to the step before."""
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def do(self, step: Step) -> Any:
        """Both."""
        self.tell(step)
        return self.told()

    def stop(self) -> None:
        """End it."""
        self._process.communicate(timeout=PATIENCE_S)
        assert self._process.returncode == 0


@pytest.fixture(params=["auto", pytest.param("legacy", marks=pytest.mark.full)])
def client(request: pytest.FixtureRequest, hub: HubProcess) -> Iterator[Client]:
    client = Client(hub, request.param)
    try:
        yield client
    finally:
        client.stop()


def test_the_client_lists_calls_hears_progress_cancels_and_is_told_of_changes(hub: HubProcess, client: Client) -> None:
    with ExitStack() as stack:
        everyone = Everyone(hub, stack)
        agents = {slug: everyone.agent(slug).id for slug in ("a2a-1.0", "agentvault", "envelope")}
        teller = stack.enter_context(streaming_agent())
        tell = hub.register(teller.card(fresh()))["id"]
        assert client.do({"do": "hello"})["server"] == "dragoman"
        tools = client.do({"do": "list"})["tools"]
        for agent in agents.values():
            (name,) = [tool["name"] for tool in tools if f"({agent})" in tool["description"]]
            said = client.do({"do": "call", "name": name, "arguments": {"message": "hello"}})
            assert said["result"]["isError"] is False, said
            assert "hello" in json.dumps(said["result"]["content"])
        assert client.do({"do": "call", "name": "nobody__nothing"})["code"] == -32602

        client.tell({"do": "call", "name": f"{tell}__tell"})
        work = teller.next_call()
        work.say("progress", {"progress": 0.5, "message": "half way"})
        work.complete({"done": True})
        said = client.told()
        assert said["progress"] == [[0.5, 1.0, "half way"]]
        assert said["result"]["structuredContent"] == {"done": True}

        client.tell({"do": "cancel", "name": f"{tell}__tell"})
        teller.next_call().say("progress", {"progress": 0.5})
        assert client.told() == {"cancelled": True}
        assert teller.cancelled.wait(10)

        assert client.do({"do": "watch"}) == {}
        everyone.another("platform")
        assert client.do({"do": "changed"}) == {"changed": True}


# -- its server


@pytest.mark.full
@pytest.mark.parametrize("binding", ["alone", "sessions", "locked"])
def test_tools_of_the_server_are_called_through_the_platform(hub: HubProcess, binding: str) -> None:
    with PeerProcess(PEER, "mcp_server.py", "--binding", binding) as peer:
        more = {"credentials": {"type": "bearer", "token": KEY}} if binding == "locked" else {}
        agent = hub.register(None, url=f"{peer.url}mcp", dialect="mcp", id=fresh("tides"), **more)["id"]

        def called(skill: str, given: Step) -> Any:
            return hub.post("/v1/a2a/call", {"target_agent_id": agent, "skill": skill, "input": given}).json

        assert called("tide", {"place": "Oslo", "day": 2})["result"] == {"place": "Oslo", "metres": 3.0}
        assert called("say", {"words": "x"})["result"] == {"text": "x"}
        files = called("files", {})["result"]["parts"]
        assert [each["file"].get("name") for each in files] == [None, "today.md", "table.pdf"]
        assert called("sink", {})["error"]["message"].endswith("the harbour is dry")
        assert called("tide", {})["error"]["code"] == "VALIDATION_ERROR"
        headers = {"Authorization": f"Bearer {hub.token}"}
        body = {"target_agent_id": agent, "skill": "watch", "input": {"steps": 2}}
        with sse(f"{hub.url}/v1/a2a/call/stream", body, headers=headers) as stream:
            told = [item.data for item in stream if item.name == "progress"]
        assert told == [{"progress": 0.5, "message": "step 1"}, {"progress": 1.0, "message": "step 2"}]
        with urlopen(f"{peer.url}forget") as answer:
            assert answer.read() == b"forgotten"
        assert called("say", {"words": "again"})["result"] == {"text": "again"}
        with urlopen(f"{peer.url}more") as answer:
            assert answer.read() == b"more"
        assert hub.post(f"/v1/agents/{agent}/probe", {}).status == 200
        assert called("more", {"place": "Rome"})["result"] == {"result": "Rome"}
        call = hub.post("/v1/a2a/call/async", {"target_agent_id": agent, "skill": "wait", "input": {}}).json["call_id"]
        peer.await_line("waiting")
        assert hub.post(f"/v1/calls/{call}/cancel", {}).status == 200
        peer.await_line("cancelled")


@pytest.mark.full
def test_the_published_agentvault_client_calls_a_tool_of_the_server(hub: HubProcess) -> None:
    with PeerProcess(PEER, "mcp_server.py", "--binding", "single") as peer:
        agent = hub.register(None, url=f"{peer.url}mcp", dialect="mcp", id=fresh("say"))["id"]
        steps = ({"do": "send", "parts": text("hello")["parts"]}, {"do": "wait"})
        done = subprocess.run(
            [str(peer_python(VAULT)), str(RECIPES / "agentvault_client.py"), f"{hub.url}{mount(agent)}agent-card.json"],
            input="".join(f"{json.dumps(step)}\n" for step in steps),
            env={"PATH": os.environ["PATH"], "AGENTVAULT_KEY_DRAGOMAN": hub.token or ""},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=True,
        )
    task = json.loads(done.stdout.splitlines()[-1])
    assert task["state"] == "COMPLETED", task
    assert task["messages"][-1]["parts"] == text("hello")["parts"]
