"""The demo agents at a real hub: one call through three dialects, the documents' clients, and an orderly end."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.demo.child import DemoAgents
from tests.cli.running import ports_of
from tests.support.hub import ROOT, HubProcess, running_hub
from tests.support.peers import RECIPES, peer_python
from tests.support.sse_client import sse

DIALECTS = {
    "agt_newsroom": "platform",
    "agt_archive": "agentvault",
    "agt_editor": "a2a-1.0",
    "terminal_bench_agent": "dotted",
}
FIRST = "Tides rise and fall because the moon, and to a lesser degree the sun, pull on the sea."


def join(demo: DemoAgents, hub: HubProcess) -> None:
    """Return when the agents have said how it went."""
    said = threading.Event()
    demo.join(hub.url, hub.token, said.set)
    assert said.wait(30)


class Demo:
    """A hub that asks nobody who calls, the four agents, and where the terminal agent listens."""

    def __init__(self, hub: HubProcess, agents: DemoAgents) -> None:
        self.hub = hub
        self.lines = agents.lines()
        self.terminal = f"127.0.0.1:{ports_of(self.lines)[-1]}"

    def posted(self, path: str, body: object) -> Any:
        reply = self.hub.post(path, body)
        assert reply.status == 200, reply.body
        return reply.json


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Generator[Demo]:
    folder = tmp_path_factory.mktemp("demo")
    with running_hub(folder / "data", auth="none") as hub, DemoAgents(folder / "agents") as agents:
        join(agents, hub)
        assert agents.ready, agents.lines()
        yield Demo(hub, agents)


def test_each_is_registered_in_its_own_dialect(demo: Demo) -> None:
    shown = {item["id"]: (item["dialect"], item["status"]) for item in demo.hub.get("/v1/agents").json["items"]}
    assert shown == {name: (dialect, "active") for name, dialect in DIALECTS.items()}
    assert demo.lines[0] == "agt_newsroom          platform    connected"


def test_a_brief_is_one_trace_through_three_dialects(demo: Demo) -> None:
    called = demo.posted("/v1/a2a/call", {"skill": "brief", "input": {"topic": "tides"}})
    text = called["result"]["text"]
    assert text.startswith(FIRST)
    assert text.endswith("\n- Neap tides: https://example.org/archive/neap-tides")
    trace = called["trace"]["trace_id"]
    calls = demo.hub.get(f"/v1/calls?trace={trace}").json["items"]
    assert sorted(DIALECTS[call["agent"]] for call in calls) == ["a2a-1.0", "agentvault", "platform"]
    assert {call["status"] for call in calls} == {"completed"}


def test_a_brief_is_streamed_with_its_progress_as_its_parts_come(demo: Demo) -> None:
    with sse(f"{demo.hub.url}/v1/a2a/call/stream", {"skill": "brief", "input": {"topic": "tides"}}) as stream:
        events = list(stream)
    names = [event.name for event in events]
    assert names[0] == "start"
    assert [event.data["message"] for event in events if event.name == "progress"] == [
        "agt_archive looks for tides",
        "agt_editor writes from 3 articles",
    ]
    chunks = [event.data["content"] for event in events if event.name == "chunk"]
    assert "".join(chunks).startswith(FIRST)
    assert names[-2:] == ["complete", "done"]


def test_a_topic_of_one_letter_is_asked_about_and_the_answer_goes_on(demo: Demo) -> None:
    reply = demo.hub.call("brief", {"topic": "x"})
    said = reply.json
    assert said["error"]["details"]["reason"] == "input_required", said
    more = {"skill": "brief", "input": {"topic": "tides"}, "context": {"continue_call_id": said["call_id"]}}
    assert demo.posted("/v1/a2a/call", more)["result"]["text"].startswith(FIRST)


def test_the_commands_that_the_hub_prints_work_as_printed(demo: Demo) -> None:
    blocks = re.findall(r"```bash\n(.*?)```", demo.hub.get("/llms.txt").body.decode(), re.DOTALL)
    assert [said(block)["status"] for block in blocks] == ["completed", "completed"]


def test_the_requests_of_the_demos_page_work_as_printed(demo: Demo) -> None:
    blocks = re.findall(r"```bash\n(curl .*?)```", (ROOT / "docs/guides/demo.md").read_text(), re.DOTALL)
    at = {"127.0.0.1:8700": f"127.0.0.1:{demo.hub.port}", "127.0.0.1:8001": demo.terminal}
    steps, message = (said(re.sub("|".join(at), lambda found: at[found[0]], block)) for block in blocks)
    assert steps["result"] == {"summary": FIRST}
    assert message["result"]["status"]["state"] == "completed"


def said(command: str) -> Any:
    """What a curl command got."""
    quietly = ["bash", "-ec", command.replace("curl ", "curl -sS ", 1)]
    done = subprocess.run(quietly, capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    return json.loads(done.stdout)


def test_a_failing_search_is_told_as_the_agent_told_it(demo: Demo) -> None:
    reply = demo.hub.call("web_search", {"query": "tides", "mode": "fail"}, "agt_archive")
    assert (reply.status, reply.json["error"]["code"]) == (502, "AGENT_ERROR")
    assert "closed" in reply.json["error"]["message"]


@pytest.mark.req("D-12", "D-13")
def test_the_documents_python_client_gets_its_answers_from_the_documents_agent(demo: Demo) -> None:
    program = (RECIPES / "dotted_document_client.py").read_text()
    program += "\nprint(f\"Follow-up: {response['result']['artifacts'][0]['parts'][0]['text']}\")\n"
    for at in (demo.terminal, f"127.0.0.1:{demo.hub.port}/agents/terminal_bench_agent"):
        command = [str(peer_python("requests")), "-c", program.replace("localhost:8001", at)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        agent, skills, task, status, solution, *rest = done.stdout.splitlines()
        assert agent == "Agent: terminal_bench_agent"
        assert skills == "Skills: ['Terminal Problem Solving', 'Code Analysis']"
        assert task.startswith("Task ID: task-")
        assert (status, solution) == ("Status: completed", "Solution: #!/usr/bin/env bash")
        answer = "\n".join(rest).partition("Follow-up: ")
        assert "df -P" in answer[0]
        assert "mail" not in answer[0]
        assert "df -P" in answer[2]
        assert 'mail -s "disk-usage on ' in answer[2]  # not just any script, wrapped: the one that was asked for


@pytest.mark.req("D-12", "D-13")
def test_the_documents_curl_examples_get_their_answers_from_the_documents_agent(demo: Demo) -> None:
    printed = (RECIPES / "dotted_document_curl.sh").read_text()
    mended = printed.replace('"Content-Type": application/json"', '"Content-Type: application/json"')
    command = ["bash", "-ec", mended.replace("localhost:8001", demo.terminal).replace("curl ", "curl -sS ")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    decoder = json.JSONDecoder()
    card, end = decoder.raw_decode(done.stdout)
    sent, more = decoder.raw_decode(done.stdout[end:])
    got, _ = decoder.raw_decode(done.stdout[end + more :])
    assert (card["name"], card["metadata"]["model"]) == ("terminal_bench_agent", "gpt-4o-mini")
    (artifact,) = sent["result"]["artifacts"]
    assert (sent["result"]["status"]["state"], artifact["name"]) == ("completed", "terminal_bench_solution")
    assert "find " in artifact["parts"][0]["text"]
    assert got["error"]["code"] == -32001


def test_they_take_other_ports_where_theirs_are_in_use_and_end_when_their_parent_is_killed(
    demo: Demo, tmp_path: Path
) -> None:
    program = (
        "import threading\nfrom pathlib import Path\nfrom dragoman.cli.demo.child import DemoAgents\n"
        f"with DemoAgents(Path({str(tmp_path / 'agents')!r})) as demo:\n"
        "    demo.join(input(), None, lambda: print(*demo.lines(), sep='|', flush=True))\n"
        "    threading.Event().wait(60)\n"
    )
    # At a hub of their own: at the other one they would take the place of those that run there.
    with running_hub(tmp_path / "data", auth="none") as hub:
        parent = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert parent.stdin is not None
        assert parent.stdout is not None
        with parent.stdin, parent.stdout:
            parent.stdin.write(f"{hub.url}\n")
            parent.stdin.flush()
            lines = parent.stdout.readline().strip().split("|")
            assert all("is in use)" in line for line in lines[1:]), lines
            assert not set(ports_of(lines)) & set(ports_of(demo.lines))
            watched = [socket.create_connection(("127.0.0.1", port), 5) for port in ports_of(lines)]
            os.kill(parent.pid, signal.SIGKILL)
            parent.wait(10)
        for connection in watched:
            with connection:
                connection.settimeout(20)
                assert connection.recv(1) == b""


def test_one_that_cannot_join_says_why(tmp_path: Path) -> None:
    with running_hub(tmp_path / "data") as hub, DemoAgents(tmp_path / "agents") as agents:
        hub.token = "ap_wrong"
        join(agents, hub)
        assert not agents.ready
        assert all("is not there: " in line for line in agents.lines()), agents.lines()
