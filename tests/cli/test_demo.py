"""The demo agent: what it answers, how it joins the hub, and that it never outlives who started it."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from dragoman.cli.demo.child import DemoAgent
from dragoman.cli.demo.editor import PORT, answer, listen, summarize
from dragoman.cli.dev import try_line
from dragoman.model.json import Json, JsonObject
from tests.cli.stub_hub import StubHub
from tests.cli.terminal import environment

TEXT = "Tides rise. They fall! Why? The moon pulls."


@pytest.mark.parametrize(
    ("content", "max_length", "summary"),
    [
        (TEXT, 500, TEXT),
        (TEXT, 23, "Tides rise. They fall!"),
        (TEXT, 11, "Tides rise."),
        (TEXT, 10, "Tides…"),
        ("Unbreakable", 5, "Unbr…"),
        ("a\n\n  b  ", 10, "a b"),
        ("", 10, ""),
        ("x", 1, "x"),
        ("xy", 1, "…"),
    ],
)
def test_a_summary_is_the_first_sentences_that_fit(content: str, max_length: int, summary: str) -> None:
    assert summarize(content, max_length) == summary
    assert len(summary) <= max_length


@pytest.mark.parametrize(
    ("call", "status", "code"),
    [
        ({"skill": "sing", "input": {}}, 404, "SKILL_NOT_FOUND"),
        ({"skill": "summarize", "input": {}}, 400, "VALIDATION_ERROR"),
        ({"skill": "summarize", "input": {"content": "x", "max_length": True}}, 400, "VALIDATION_ERROR"),
        ({"skill": "summarize", "input": {"content": "x", "max_length": 0}}, 400, "VALIDATION_ERROR"),
        ([], 400, "VALIDATION_ERROR"),
    ],
)
def test_a_wrong_call_is_refused_in_the_words_of_the_platform(call: Json, status: int, code: str) -> None:
    said = answer(call)
    assert (said[0], said[1]["status"], said[1]["error"]["code"]) == (status, "failed", code)


def post(url: str, body: JsonObject) -> JsonObject:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as reply:
        return json.loads(reply.read())


def started(demo: DemoAgent) -> None:
    """Return when it has said how it went."""
    said = threading.Event()
    demo.when_ready(said.set)
    assert said.wait(30)


def test_it_registers_itself_answers_and_ends_with_us(hub: StubHub) -> None:
    hub.agents.clear()
    with DemoAgent(hub.url, None) as demo:
        started(demo)
        assert list(hub.agents) == ["agt_editor"]
        card = hub.last("/v1/a2a/registry").body["agent_card"]
        assert card["endpoint"] == f"http://localhost:{demo.port}/a2a"
        said = post(card["endpoint"], {"call_id": "c1", "skill": "summarize", "input": {"content": "One. Two."}})
        assert said == {"status": "completed", "result": {"summary": "One. Two."}, "usage": {"tokens": 4}}
        assert post(card["endpoint"] + "/cancel", {"call_id": "c1", "reason": "timeout"}) == {}
        assert f"agt_editor  platform  http://localhost:{demo.port}" in demo.lines()[0]
    with pytest.raises(urllib.error.URLError):
        post(card["endpoint"], {})


def test_a_taken_port_is_replaced_and_told(hub: StubHub) -> None:
    holder = listen(PORT)
    with holder, DemoAgent(hub.url, None) as demo:
        holder.listen()
        started(demo)
        assert demo.port is not None
        if holder.getsockname()[1] == PORT:
            assert demo.lines() == [f"agt_editor  platform  http://localhost:{demo.port}  (port {PORT} is in use)"]


def test_it_shows_the_token_of_the_hub_it_belongs_to(tmp_path: Path) -> None:
    token = tmp_path / "admin-token"
    with StubHub(token="a-token-of-the-operator") as hub, DemoAgent(hub.url, token) as demo:
        # Written late, as by a hub that is just starting.
        token.write_text("a-token-of-the-operator\n")
        started(demo)
        assert demo.port is not None, demo.lines()


def test_a_refused_registration_is_told() -> None:
    with StubHub(token="a-token-of-the-operator") as hub, DemoAgent(hub.url, None) as demo:
        started(demo)
        assert demo.port is None
        assert demo.lines()[0].startswith("agt_editor is not there: ")


def test_it_ends_when_its_parent_is_killed(hub: StubHub) -> None:
    program = (
        "import sys, threading\n"
        "from dragoman.cli.demo.child import DemoAgent\n"
        f"with DemoAgent({hub.url!r}, None) as demo:\n"
        "    demo.when_ready(lambda: print(demo.port, flush=True))\n"
        "    threading.Event().wait(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    port = int(parent.stdout.readline())
    with socket.create_connection(("127.0.0.1", port), 5) as watched:
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait(10)
        parent.stdout.close()
        watched.settimeout(20)
        assert watched.recv(1) == b""


def test_the_printed_command_works_as_printed(hub: StubHub, tmp_path: Path) -> None:
    program = f"from dragoman.cli.dev import try_line; print(try_line({hub.url!r}))"
    line = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout.strip()
    done = subprocess.run(
        ["bash", "-c", line], env=environment(tmp_path), capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"summary": "Tides rise and fall twice a day."}), (
        done.stderr
    )


def test_the_usual_address_needs_no_flag() -> None:
    assert "--hub" not in try_line("http://127.0.0.1:8700")
    assert re.search(r" --hub http://127\.0\.0\.1:8701 ", try_line("http://127.0.0.1:8701"))
