"""`dragoman serve` and `dev`, up to where the server takes over: settings, packages, ports, and what is told."""

import io
import json
import socket
import subprocess
import sys
from contextlib import redirect_stderr
from pathlib import Path

import msgspec
import pytest

from dragoman.cli import banner
from dragoman.model.secret import Secret
from tests.cli.terminal import environment, on_terminal, piped, plain
from tests.support.ports import free_port

TOKEN = "ap_k7f2Qx0aZ91b_0123456789"


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a server would tell."""

    version: str = "0.1.0"
    url: str = "http://127.0.0.1:8700"
    data: Path
    auth: str = "token"
    admin_token: Secret | None = None
    admin_token_file: Path | None = None


@pytest.mark.parametrize(
    ("words", "message", "next_step"),
    [
        (["serve", "--port", "87x0"], 'wrong setting: port = "87x0" (flag --port): expected 1 to 65535', "flag --port"),
        (
            ["serve", "--host", "0.0.0.0", "--auth", "none"],
            "wrong setting: auth = none needs a loopback host, got 0.0.0.0",
            "--auth token",
        ),
        (["serve", "--auth", "maybe"], "wrong setting: auth = ", "flag --auth"),
        (["serve", "--log", "loud"], "wrong setting: log.form = ", "flag --log"),
        (["dev", "--port", "0"], "wrong setting: port = ", "flag --port"),
    ],
)
def test_a_wrong_setting_is_named_with_its_source(
    tmp_path: Path, words: list[str], message: str, next_step: str
) -> None:
    ran = piped(*words, env=environment(tmp_path))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(message)
    assert next_step in ran.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_a_taken_port_is_told_with_who_holds_it(tmp_path: Path, command: str) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        ran = piped(command, "--port", str(port), env=environment(tmp_path))
    assert ran.code == 2
    assert ran.err.startswith(f"error: port {port} is in use by pid ")
    assert f"next: --port {port + 1}, or stop it\n" in ran.err


@pytest.mark.parametrize("command", ["serve", "dev"])
def test_without_the_servers_packages_it_says_what_to_install(tmp_path: Path, command: str) -> None:
    program = (
        "import sys\n"
        "sys.modules['uvicorn'] = None\n"  # as if it were not installed
        f"sys.argv = ['dragoman', {command!r}]\n"
        "from dragoman.cli import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == f'error: dragoman {command} needs the server\nnext: pip install "dragoman[hub]"\n'


def test_fresh_deletes_only_what_is_a_hubs(tmp_path: Path) -> None:
    data = tmp_path / "data" / "dev"
    data.mkdir(parents=True)
    (data / "letter.txt").write_text("dear")
    env = environment(tmp_path, DRAGOMAN_DATA=str(tmp_path / "data"))
    ran = piped("dev", "--fresh", "--yes", "--port", str(free_port()), env=env)
    assert ran.code == 2
    assert "holds no hub's data, so it is not deleted" in ran.err
    assert (data / "letter.txt").exists()


def test_fresh_asks_before_it_deletes(tmp_path: Path) -> None:
    data = tmp_path / "data" / "dev"
    data.mkdir(parents=True)
    (data / "root.key").write_text("x")
    env = environment(tmp_path, DRAGOMAN_DATA=str(tmp_path / "data"))
    port = str(free_port())
    assert piped("dev", "--fresh", "--port", port, env=env).code == 2
    ran = on_terminal("dev", "--fresh", "--port", port, env=env, keys="n\n")
    assert ran.code == 1
    assert "with all its calls, agents and keys? [y/N]" in plain(ran.out)
    assert (data / "root.key").exists()


def told(facts: Facts) -> list[str]:
    said = io.StringIO()
    with redirect_stderr(said):
        banner.show(facts)
    return said.getvalue().splitlines()


def test_a_first_start_tells_the_admin_token_and_later_ones_where_it_is(tmp_path: Path) -> None:
    place = tmp_path / "admin-token"
    first = told(Facts(data=tmp_path, admin_token=Secret(TOKEN), admin_token_file=place))
    later = told(Facts(data=tmp_path, admin_token_file=place))
    assert f"{TOKEN}  shown this once; also in {place} (0600)" in [json.loads(line).get("value") for line in first]
    assert f"in {place}" in [json.loads(line).get("value") for line in later]
    assert TOKEN not in "".join(later)


def test_without_a_terminal_each_fact_is_a_line_of_json(tmp_path: Path) -> None:
    lines = [json.loads(line) for line in told(Facts(data=tmp_path, auth="none"))]
    assert [line["message"] for line in lines] == ["starting", "register", "call", "try"]
    assert all(line["level"] == "info" and line["timestamp"].endswith("Z") for line in lines)


class Terminal(io.StringIO):
    """A stream that people read."""

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_it_is_a_block(tmp_path: Path) -> None:
    said = Terminal()
    with redirect_stderr(said):
        banner.show(Facts(data=tmp_path, admin_token=Secret(TOKEN), admin_token_file=tmp_path / "admin-token"))
    lines = plain(said.getvalue()).splitlines()
    assert lines[0] == f"dragoman 0.1.0 · data {tmp_path} · auth token"
    assert lines[1] == ""
    assert lines[2].startswith(f"  admin token  {TOKEN}  shown this once; also in ")
