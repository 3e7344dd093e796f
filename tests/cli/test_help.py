"""--help: of every command, quickly, and with an example that works."""

import json
import shlex
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import dragoman
from dragoman.cli.entry import COMMANDS
from dragoman.cli.entry import dragoman as root
from dragoman.config import user_data
from dragoman.security.sealed import load_root_key
from tests.cli.stub_hub import StubHub
from tests.cli.terminal import COMMAND, environment, piped

HEAVY = ("rich", "msgspec", "ssl", "asyncio", "uvicorn", "starlette", "httptools", "dragoman.net", "dragoman.server")
ENDLESS = (("serve",), ("dev",), ("run",), ("tail",))  # they go on until they are stopped
BUDGET_S = 0.4  # twice the goal: test machines are shared


def every_command() -> dict[tuple[str, ...], click.Command]:
    found: dict[tuple[str, ...], click.Command] = {}
    context = click.Context(root)
    for name in COMMANDS:
        command = root.get_command(context, name)
        assert command is not None
        found[(name,)] = command
        if isinstance(command, click.Group):
            found.update({(name, inner): one for inner, one in command.commands.items()})
    return found


EVERY = every_command()


def imported_by(code: str) -> set[str]:
    """The modules that are loaded after running the code in a fresh interpreter."""
    program = f"import sys\n{code}\nimport json\nsys.stderr.write(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=True)
    return set(json.loads(done.stderr))


def run_in_process(*words: str) -> str:
    return f"sys.argv = ['dragoman', *{list(words)!r}]\nfrom dragoman.cli import main\nassert main() == 0"


def test_there_is_help(tmp_path: Path) -> None:
    ran = piped("--help", env=environment(tmp_path))
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Usage: dragoman")


GROUPS = [(), *(words for words, command in EVERY.items() if isinstance(command, click.Group))]


@pytest.mark.parametrize("words", GROUPS, ids=" ".join)
def test_without_a_command_there_is_the_help_of_those_there_are(tmp_path: Path, words: tuple[str, ...]) -> None:
    env = environment(tmp_path)
    ran = piped(*words, env=env)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == piped(*words, "--help", env=env).out


@pytest.mark.parametrize("words", [(), *EVERY], ids=" ".join)
def test_every_command_has_help_with_an_example(words: tuple[str, ...]) -> None:
    ran = CliRunner().invoke(root, [*words, "--help"], prog_name="dragoman")
    assert (ran.exit_code, ran.stderr) == (0, "")
    assert "Usage: dragoman" in ran.stdout
    assert "Example: dragoman " in ran.stdout


@pytest.mark.parametrize("words", [words for words in EVERY if words not in ENDLESS], ids=" ".join)
def test_every_example_works(words: tuple[str, ...], hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    if words in (("backup",), ("restore",)):
        has_data(env, tmp_path, backed_up=words == ("restore",))
    example = (EVERY[words].epilog or "").removeprefix("Example: ")
    program, *rest = shlex.split(example)
    assert program == "dragoman"
    ran = piped(*rest, env=env, cwd=tmp_path)
    assert (ran.code, ran.err if ran.code else "") == (0, "")


def has_data(env: dict[str, str], home: Path, *, backed_up: bool) -> None:
    """What a hub that ran here before left behind, and the backup that was made of it."""
    load_root_key(user_data(env, sys.platform))
    assert piped("migrate", env=env).code == 0
    if backed_up:
        assert piped("backup", "hub-backup.db", env=env, cwd=home).code == 0


def test_the_first_example_works(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "article.txt").write_text("Tides rise. They fall.")
    words = shlex.split((root.epilog or "").removeprefix("Example: dragoman "))
    ran = piped(*words, env=env, cwd=tmp_path)
    assert json.loads(ran.out) == {"summary": "Tides rise. They fall."}


def test_the_list_of_commands_says_what_each_says_of_itself() -> None:
    lines = {name: line for name, (_, line) in COMMANDS.items()}
    assert lines == {name: (EVERY[(name,)].help or "").split("\n")[0] for name in COMMANDS}


def test_help_imports_nothing_that_takes_long() -> None:
    assert imported_by(run_in_process("--help")) & set(HEAVY) == set()


@pytest.mark.parametrize("words", EVERY, ids=" ".join)
def test_help_of_a_command_imports_neither_client_nor_server(words: tuple[str, ...]) -> None:
    assert imported_by(run_in_process(*words, "--help")) & set(HEAVY) == set()


def test_importing_the_package_imports_neither_command_line_nor_hub() -> None:
    assert imported_by("import dragoman") & {"click", "dragoman.cli", *HEAVY} == set()


@pytest.mark.serial
def test_help_is_there_at_once(tmp_path: Path) -> None:
    def once() -> float:
        started = time.monotonic()
        subprocess.run([COMMAND, "--help"], env=environment(tmp_path), capture_output=True, timeout=30, check=True)
        return time.monotonic() - started

    assert min(once() for _ in range(3)) < BUDGET_S


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    assert dragoman.__version__ == project["project"]["version"] == version("dragoman")
    assert piped("--version", env=environment(tmp_path)).out == f"dragoman {dragoman.__version__}\n"


def test_the_module_is_the_command(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "dragoman", "serve", "--help"]
    done = subprocess.run(words, env=environment(tmp_path), capture_output=True, text=True, timeout=30, check=True)
    assert "Usage: dragoman serve" in done.stdout
