"""`dragoman dev` and `serve` with the real hub: what they print works, and they leave nothing behind."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading
from collections.abc import Generator
from pathlib import Path

from dragoman.model.json import JsonObject
from tests.cli.terminal import COMMAND, environment, piped
from tests.support.ports import free_port

START_S = 30.0
END_S = 20.0


class Running:
    """A hub process whose stderr is read as it comes."""

    def __init__(self, *words: str, env: dict[str, str]) -> None:
        aside = subprocess.DEVNULL
        self.process = subprocess.Popen(
            [COMMAND, *words], env=env, stdin=aside, stdout=aside, stderr=subprocess.PIPE, text=True
        )
        self.lines: list[str] = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._news:
                self.lines.append(line.rstrip("\n"))
                self._news.notify_all()

    def said(self, text: str) -> str:
        """The line with that text, once it is there."""
        with self._news:
            found = self._news.wait_for(lambda: any(text in line for line in self.lines), START_S)
        assert found, self.lines
        return next(line for line in self.lines if text in line)

    def fact(self, message: str) -> JsonObject:
        """The log line of that name, once it is there."""
        return json.loads(self.said(f'"message": "{message}"'))

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(END_S)

    def close(self) -> None:
        if self.process.poll() is None:
            self.end(signal.SIGKILL)
        self._reader.join(END_S)
        assert self.process.stderr is not None
        self.process.stderr.close()


@contextlib.contextmanager
def running(*words: str, env: dict[str, str]) -> Generator[Running]:
    hub = Running(*words, env=env)
    try:
        yield hub
    finally:
        hub.close()


def port_of(line: str) -> int:
    return int(re.findall(r"http://localhost:(\d+)", line)[0])


def is_closed(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_the_command_that_dev_prints_works_as_printed(tmp_path: Path) -> None:
    env = environment(tmp_path)
    with running("dev", "--port", str(free_port()), env=env) as hub:
        line = str(hub.fact("try")["value"])
        done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout) == {"summary": "Tides rise and fall twice a day."}
        assert "completed in " in done.stderr
        agent_port = port_of(str(hub.fact("agents")["value"]))
        assert hub.end(signal.SIGINT) == 0
    assert is_closed(agent_port)


def test_dev_with_tokens_is_opened_by_the_token_in_its_folder_alone(tmp_path: Path) -> None:
    env = environment(tmp_path)
    stranger = environment(tmp_path / "elsewhere")
    with running("dev", "--auth", "token", "--port", str(free_port()), env=env) as hub:
        line = str(hub.fact("try")["value"])
        token = str(hub.fact("admin token")["value"]).split()[0]
        for who, code in ((env, 0), (stranger, 3), ({**stranger, "DRAGOMAN_TOKEN": token}, 0)):
            done = subprocess.run(
                ["bash", "-c", line], env=who, capture_output=True, text=True, timeout=30, check=False
            )
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
        assert piped("agents", "ls", "--columns", "id", "--hub", url, env=env).out == "agt_editor\n"
        assert hub.end() == 0
    with running("dev", "--no-demo", "--fresh", "--yes", "--port", port, env=env) as hub:
        hub.fact("next")
        assert piped("agents", "ls", "--hub", url, env=env).out == ""
        assert hub.end() == 0


def test_the_demo_agent_ends_when_the_hub_is_killed(tmp_path: Path) -> None:
    with running("dev", "--port", str(free_port()), env=environment(tmp_path)) as hub:
        port = port_of(str(hub.fact("agents")["value"]))
        with socket.create_connection(("127.0.0.1", port), 5) as watched:
            os.kill(hub.process.pid, signal.SIGKILL)
            watched.settimeout(END_S)
            assert watched.recv(1) == b""


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
