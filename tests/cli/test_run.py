"""`dragoman run`: which agent a file means, how it is started, and that a change starts it anew without loss."""

import json
import os
import signal
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dragoman.cli.agent_file import load_agent
from dragoman.cli.reload import snapshot
from tests.cli.running import END_S, running
from tests.cli.terminal import Ran, environment, piped
from tests.support.hub import ADMIN_TOKEN, HubProcess, Reply, running_hub
from tests.support.ports import free_port

HELLO = """\
from dragoman import Agent

agent = Agent("Hello")


@agent.skill
async def greet(name: str) -> str:
    \"\"\"Greet somebody\"\"\"
    return f"Hello, {name}!"
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("run") / "data", auth="none") as hub:
        yield hub


@pytest.fixture
def env(tmp_path: Path, hub: HubProcess) -> dict[str, str]:
    return environment(tmp_path / "home", DRAGOMAN_URL=hub.url)


def written(folder: Path, text: str, name: str = "agent.py") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def run(path: str, tmp_path: Path, *words: str) -> Ran:
    """A run that comes to nothing: no hub is asked."""
    return piped("run", path, *words, env=environment(tmp_path), cwd=tmp_path)


def test_a_name_that_is_no_agent_is_wrapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    agent = load_agent(f"{written(tmp_path, HELLO)}:greet")
    assert agent.id == "agt_greet" and list(agent.skills) == ["chat"]


@pytest.mark.parametrize(
    ("text", "target", "code", "said"),
    [
        ("x = 1\n", "agent.py", 2, ["error: agent.py defines no agent", "next: define one at its top level: "]),
        (HELLO + 'other = Agent("B")\n', "agent.py", 2, ["error: agent.py defines several agents: agent, other"]),
        (HELLO, "agent.py:nobody", 4, ["error: agent.py has no agent nobody; it has: agent"]),
        (HELLO + "x = 1\n", "agent.py:x", 2, ["error: x in agent.py is no agent but a int", "next: it has: agent"]),
        (HELLO, "other.py", 4, ["error: there is no file other.py"]),
        (HELLO, ".", 2, ["error: . is a folder", "next: dragoman run agent.py"]),
        (
            "x = 1\nagent = Agent(\n",
            "agent.py",
            2,
            ["error: agent.py, line 2: '(' was never closed", "  agent = Agent("],
        ),
        ("x = 1\nboom()\n", "agent.py", 2, ["error: agent.py, line 2: NameError: name 'boom' is not defined"]),
        ("import nothing_like_it\n", "agent.py", 2, ["next: pip install nothing_like_it, or check the name"]),
        ("raise SystemExit(7)\n", "agent.py", 2, ["ended by itself (exit 7)"]),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(
    text: str, target: str, code: int, said: list[str], tmp_path: Path
) -> None:
    written(tmp_path, text)
    ran = run(target, tmp_path)
    assert ran.code == code, ran.err
    for line in said:
        assert line in ran.err
    assert "cli/" not in ran.err  # nothing of our own inside


def test_a_file_that_is_no_python_is_refused(tmp_path: Path) -> None:
    written(tmp_path, "{}", "agent.json")
    assert "agent.json is no Python file" in run("agent.json", tmp_path).err


def test_an_agent_connects_is_called_and_ends_in_order(tmp_path: Path, hub: HubProcess, env: dict[str, str]) -> None:
    # The file starts it by itself, as a plain `python agent.py` needs it; run does so once.
    written(tmp_path, f"{HELLO}\nagent.start()\nother = agent\n")
    with running("run", "agent.py", env=env, cwd=tmp_path) as agent:
        assert agent.said("is connected") == f'agt_hello is connected to {hub.url} as "Hello"'
        assert hub.call("greet", {"name": "Ada"}).json["result"] == {"text": "Hello, Ada!"}
        assert agent.end(signal.SIGINT) == 0


def test_a_named_agent_listens_where_it_is_told_to(tmp_path: Path, env: dict[str, str]) -> None:
    written(
        tmp_path,
        f'{HELLO}\nother = Agent("Other")\n\n\n@other.on_message\ndef say(text: str) -> str:\n    return text\n',
    )
    port = free_port()
    with running("run", "agent.py:other", "--port", str(port), env=env, cwd=tmp_path) as agent:
        agent.said(f"is listening on http://127.0.0.1:{port}")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/.well-known/agent-card.json", timeout=10) as reply:
            assert json.loads(reply.read())["name"] == "Other"
        assert agent.end() == 0


def test_the_hub_of_the_flag_and_the_settings_of_the_file_are_used(
    tmp_path: Path, hub: HubProcess, env: dict[str, str]
) -> None:
    greeting = "{os.environ['GREETING']}, {name}"
    written(tmp_path, "import os\n" + HELLO.replace("Hello, {name}", greeting))
    settings = written(tmp_path, "# ours\nexport GREETING='Good day'\n\nDRAGOMAN_URL=http://127.0.0.1:1\n", "my.env")
    words = ("run", "agent.py", "--env-file", str(settings), "--hub", hub.url)
    with running(*words, env={**env, "DRAGOMAN_URL": "http://127.0.0.1:2"}, cwd=tmp_path) as agent:
        agent.said("is connected")
        assert hub.call("greet", {"name": "Ada"}).json["result"] == {"text": "Good day, Ada!"}
        assert agent.end() == 0
    settings.write_text("A=1\nno equals sign\n")
    ran = run("agent.py", tmp_path, "--env-file", "my.env")
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: my.env, line 2 is no NAME=value")


def test_a_refused_token_is_told_with_the_way_out(tmp_path: Path) -> None:
    written(tmp_path, HELLO)
    with running_hub(tmp_path / "data") as hub:
        token = written(tmp_path, "ap_wrong", "token")
        ran = run("agent.py", tmp_path, "--hub", hub.url, "--token-file", str(token))
        assert ran.code == 3, ran.err
        assert "DRAGOMAN_TOKEN" in ran.err.splitlines()[-1]
        token.write_text(ADMIN_TOKEN)
        words = ("run", "agent.py", "--hub", hub.url, "--token-file", str(token))
        with running(*words, env=environment(tmp_path), cwd=tmp_path) as agent:
            agent.said("is connected")
            assert agent.end() == 0


def test_a_change_starts_it_anew_and_running_calls_finish_first(
    tmp_path: Path, hub: HubProcess, env: dict[str, str]
) -> None:
    gate = tmp_path / "gate"
    slow = (
        "import asyncio\nfrom pathlib import Path\n" + HELLO + "\n\n@agent.skill\nasync def wait() -> str:\n"
        f"    Path({str(gate)!r}).touch()\n    while Path({str(gate)!r}).exists():\n        await asyncio.sleep(0.01)\n"
        '    return "done"\n'
    )
    path = written(tmp_path, slow)
    answers: list[Reply] = []
    with running("run", "agent.py", "--reload", env=env, cwd=tmp_path) as agent:
        agent.said("is connected")
        caller = threading.Thread(target=lambda: answers.append(hub.call("wait", {})))
        caller.start()
        until(gate.exists)
        path.write_text(slow.replace("Hello, {name}", "Welcome, {name}"))
        agent.said("agent.py changed: starting again")
        gate.unlink()
        caller.join(END_S)
        assert answers[0].json["result"] == {"text": "done"}
        agent.said("is connected", times=2)
        assert hub.call("greet", {"name": "Ada"}).json["result"] == {"text": "Welcome, Ada!"}
        path.write_text("oh no(\n")
        agent.said("it ended with 2; it starts again when a file changes")
        path.write_text(HELLO)
        agent.said("is connected", times=3)
        assert agent.end() == 0


def test_the_agent_ends_with_the_process_that_reloads_it(tmp_path: Path, env: dict[str, str]) -> None:
    written(tmp_path, f"import os\nopen('pid', 'w').write(str(os.getpid()))\n{HELLO}")
    with running("run", "agent.py", "--reload", env=env, cwd=tmp_path) as agent:
        agent.said("is connected")
        pid = int((tmp_path / "pid").read_text())
        os.kill(agent.process.pid, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{pid}/fd").exists())


def test_files_that_are_nobodys_sources_are_not_watched(tmp_path: Path) -> None:
    for name in ("a.py", "b.txt", ".hidden/c.py", "__pycache__/d.py", "env/pyvenv.cfg", "env/e.py", "deep/er/f.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert {path.name for path in snapshot([tmp_path])} == {"a.py", "f.py"}


def until(true: Callable[[], bool]) -> None:
    """Wait until something is so, which only files tell."""
    last = time.monotonic() + END_S
    while not true():
        assert time.monotonic() < last
        time.sleep(0.01)
