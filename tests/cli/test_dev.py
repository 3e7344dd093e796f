"""`dragoman dev` and `serve` with the real hub: what they print works, and they leave nothing behind."""

import fcntl
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

import dragoman
from tests.cli.running import END_S, START_S, is_closed, ports_of, running
from tests.cli.terminal import COMMAND, environment, piped, plain
from tests.support.ports import free_port

AGENTS = ["agt_archive", "agt_editor", "agt_newsroom", "terminal_bench_agent"]


def shell(line: str, env: dict[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A line of the banner, typed as it is printed."""
    return subprocess.run(
        ["bash", "-c", line], env=env, cwd=cwd, capture_output=True, text=True, timeout=30, check=False
    )


def test_the_commands_that_dev_prints_work_as_printed(tmp_path: Path) -> None:
    env = environment(tmp_path)
    with running("dev", "--port", str(free_port()), env=env, cwd=tmp_path) as hub:
        done = shell(str(hub.fact("try")["value"]), env, tmp_path)
        assert done.returncode == 0, done.stderr
        assert done.stdout.startswith("Tides rise and fall because the moon")
        assert done.stdout.endswith("neap-tides\n")
        assert "completed in " in done.stderr
        agents = hub.facts("agents", 4)
        assert agents[0] == "agt_newsroom          platform    connected"
        assert [line.split()[:2] for line in agents[1:]] == [
            ["agt_archive", "agentvault"],
            ["agt_editor", "a2a-1.0"],
            ["terminal_bench_agent", "dotted"],
        ]
        made, _, run = str(hub.fact("next")["value"]).partition(" && ")
        assert shell(made, env, tmp_path).returncode == 0
        words = run.split()
        with running(*words[words.index("run") :], env=env, cwd=tmp_path) as agent:
            agent.said("is connected to")
            url = words[words.index("--hub") + 1]
            ran = piped("call", "greet", "--hub", url, "--input", "name=Ada", env=env)
            assert (ran.code, ran.out) == (0, "Hello, Ada!\n"), ran.err
            assert agent.end() == 0
        assert hub.end(signal.SIGINT) == 0
    assert all(map(is_closed, ports_of(agents)))
    assert "console" not in "".join(hub.lines)


def test_dev_on_a_terminal_shows_its_block_within_two_seconds(tmp_path: Path) -> None:
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    port = free_port()
    command = [COMMAND, "dev", "--port", str(port), "--fresh", "--yes"]
    started = time.monotonic()
    process = subprocess.Popen(
        command, env=environment(tmp_path), stdin=slave, stdout=slave, stderr=slave, start_new_session=True
    )
    os.close(slave)
    shown, listened = b"", 0.0
    while b"my-agent/agent.py" not in shown and time.monotonic() - started < START_S:
        if select.select([master], [], [], 1)[0]:
            shown += os.read(master, 65536)
        if not listened and b"is listening on" in shown:
            listened = time.monotonic() - started
    process.send_signal(signal.SIGTERM)
    code = process.wait(END_S)
    os.close(master)
    lines = plain(shown.decode()).replace("\r\n", "\n").splitlines()
    assert code == 0
    assert listened < 2.0
    assert lines[0] == f"dragoman is listening on http://127.0.0.1:{port}"
    title = r"dragoman [\d.]+ dev · data ~/\.local/share/dragoman/dev · auth none \(this machine only\)"
    assert re.fullmatch(title, lines[1])
    assert lines[3] == f"  status       http://localhost:{port}/"
    assert lines[4] == "  agents       agt_newsroom          platform    connected"
    for line, named, usual in (
        (5, "agt_archive           agentvault", 8702),
        (6, "agt_editor            a2a-1.0   ", 8703),
        (7, "terminal_bench_agent  dotted    ", 8001),
    ):
        at = rf"http://localhost:({usual}|\d+  \(port {usual} is in use\))"
        assert re.fullmatch(f" {{15}}{named}  {at}", lines[line]), lines[line]
    assert lines[8].startswith("  try          ")
    assert lines[9].startswith("  next         ")


def test_dev_with_tokens_is_opened_by_the_token_in_its_folder_alone(tmp_path: Path) -> None:
    env = environment(tmp_path)
    stranger = environment(tmp_path / "elsewhere")
    with running("dev", "--auth", "token", "--port", str(free_port()), env=env) as hub:
        line = str(hub.fact("try")["value"])
        token = str(hub.fact("admin token")["value"]).split()[0]
        for who, code in ((env, 0), (stranger, 3), ({**stranger, "DRAGOMAN_TOKEN": token}, 0)):
            done = shell(line, who)
            assert done.returncode == code, done.stderr
        assert hub.end() == 0


def test_dev_without_demo_has_no_agent_and_fresh_forgets_the_old_ones(tmp_path: Path) -> None:
    env = environment(tmp_path)
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    with running("dev", "--port", port, env=env) as hub:
        hub.fact("try")
        assert hub.end() == 0
    with running("dev", "--no-demo", "--port", port, env=env) as hub:
        hub.fact("next")
        assert piped("agents", "ls", "--columns", "id", "--hub", url, env=env).out.splitlines() == AGENTS
        assert hub.end() == 0
    with running("dev", "--no-demo", "--fresh", "--yes", "--port", port, env=env) as hub:
        hub.fact("next")
        assert piped("agents", "ls", "--hub", url, env=env).out == ""
        assert hub.end() == 0


def test_the_demo_agents_end_when_the_hub_is_killed(tmp_path: Path) -> None:
    with running("dev", "--port", str(free_port()), env=environment(tmp_path)) as hub:
        ports = ports_of(hub.facts("agents", 4))
        watched = [socket.create_connection(("127.0.0.1", port), 5) for port in ports]
        os.kill(hub.process.pid, signal.SIGKILL)
        for connection in watched:
            with connection:
                connection.settimeout(END_S)
                assert connection.recv(1) == b""


def test_a_paused_agent_is_told_from_a_missing_one(tmp_path: Path) -> None:
    env = environment(tmp_path)
    port = str(free_port())
    with running("dev", "--port", port, env=env) as hub:
        hub.fact("try")
        env["DRAGOMAN_URL"] = f"http://127.0.0.1:{port}"
        assert piped("agents", "pause", "agt_editor", env=env).out == "agt_editor\tpaused\n"
        ran = piped("call", "summarize", "--text", "x", env=env)
        assert (ran.code, ran.err.splitlines()) == (
            1,
            ['error: agt_editor has the skill "summarize", but is paused', "next: dragoman agents resume agt_editor"],
        )
        assert hub.end() == 0


def test_serve_tells_its_admin_token_once(tmp_path: Path) -> None:
    env = environment(tmp_path)
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    with running("serve", "--port", port, env=env) as hub:
        token = str(hub.fact("admin token")["value"]).split()[0]
        assert hub.said("dragoman is listening on ") == f"dragoman is listening on {url}"
        assert piped("keys", "ls", "--hub", url, env=env).code == 0
        assert piped("keys", "ls", "--hub", url, env=environment(tmp_path / "elsewhere")).code == 3
        assert hub.end() == 0
    with running("serve", "--port", port, env=env) as hub:
        assert str(hub.fact("admin token")["value"]).startswith("in ")
        assert hub.end() == 0
    assert token not in "".join(hub.lines)


def test_a_token_file_that_others_can_read_stops_the_start(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    (data / "admin-token").write_text("0123456789abcdefghij0123456789ABCDEFGHIJ\n")
    (data / "admin-token").chmod(0o644)
    ran = piped("serve", "--data", str(data), "--port", str(free_port()), env=environment(tmp_path))
    assert ran.code == 2
    assert "may be read by others (mode 644)\nnext: chmod 600 " in ran.err


@pytest.mark.parametrize("flag", [(), ("--no-demo",)])
def test_a_dev_folder_that_others_can_read_stops_the_start(tmp_path: Path, flag: tuple[str, ...]) -> None:
    folder = tmp_path / "data" / "dev"
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    env = environment(tmp_path, DRAGOMAN_DATA=str(tmp_path / "data"))
    ran = piped("dev", "--port", str(free_port()), *flag, env=env)
    assert (ran.code, ran.err.splitlines()[-1]) == (2, f"next: chmod 700 {folder}")
    assert "Traceback" not in ran.err


def package_copy(folder: Path) -> Path:
    """A copy of the package, so that nobody's real files are touched."""
    shutil.copytree(Path(dragoman.__file__).parent, folder / "dragoman")
    return folder / "dragoman"


def test_a_change_of_its_files_starts_the_hub_anew(tmp_path: Path) -> None:
    package = package_copy(tmp_path / "src")
    env = environment(tmp_path, PYTHONPATH=str(tmp_path / "src"))
    port = free_port()
    with running("dev", "--reload", "--no-demo", "--port", str(port), env=env) as hub:
        hub.fact("next")
        (package / "cli" / "banner.py").write_text((package / "cli" / "banner.py").read_text() + "\n")
        hub.said("banner.py changed: starting again")
        hub.said("is listening on", times=2)
        hub.said('"message": "next"', times=2)
        assert hub.end(signal.SIGINT) == 0
    assert is_closed(port)


@pytest.mark.full
def test_a_change_of_its_files_starts_the_agents_anew(tmp_path: Path) -> None:
    changed = package_copy(tmp_path / "src") / "cli" / "demo" / "editor.py"
    env = environment(tmp_path, PYTHONPATH=str(tmp_path / "src"))
    port = str(free_port())
    url = f"http://127.0.0.1:{port}"
    with running("dev", "--reload", "--port", port, env=env) as hub:
        hub.fact("next")
        changed.write_text(changed.read_text().replace("Shortens texts", "Shortens long texts"))
        hub.said('"message": "next"', times=2)
        shown = json.loads(piped("agents", "show", "agt_editor", "--json", "--hub", url, env=env).out)
        assert shown["description"].startswith("Shortens long texts")
        assert hub.end(signal.SIGINT) == 0
