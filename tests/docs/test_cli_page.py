"""docs/cli.md tells of every command, and what it shows of errors and documents is what a real hub's user gets.

That its commands exist with their flags is checked with those of all pages (`test_code_blocks.py`).
"""

import json
import re
import shlex
import tomllib
from collections.abc import Generator
from typing import NamedTuple

import click
import pytest

from dragoman.cli.entry import COMMANDS, dragoman
from tests.cli.running import running
from tests.cli.terminal import environment, piped
from tests.docs.blocks import ROOT, blocks
from tests.support.ports import free_port

PAGE = (ROOT / "docs" / "cli.md").read_text()
STEPS = tomllib.loads((ROOT / "docs" / "cli" / "commands.toml").read_text())["step"]
DOCUMENTS = (
    "agents ls", "agents show agt_archive", "agents versions agt_archive", "config show", "deliveries ls", "discover",
    "doctor", "keys ls", "tasks ls", "tasks show {call}", "version",
)  # fmt: skip
LISTS = {"agents ls", "agents versions agt_archive", "deliveries ls", "discover", "keys ls", "tasks ls"}
HUB, NOBODY = "8700", "8799"  # the ports that the page shows: the hub's, and one where nobody listens


class Failure(NamedTuple):
    """A command on the page that fails: what it says, and its exit code."""

    line: str
    said: str
    code: int


class World(NamedTuple):
    """A hub with its demo agents, a user of it, and the ports that stand for those of the page."""

    env: dict[str, str]
    ports: dict[str, str]

    def here(self, text: str) -> str:
        """What the page says, with the ports of this run."""
        return re.sub(rf"(?<=[: ])({HUB}|{NOBODY})\b", lambda found: self.ports[found[0]], text)


def failures() -> list[Failure]:
    ended = re.compile(r"\$ dragoman (?P<line>.*)\n(?P<said>(?:.*\n)*?)\$ echo \$\?\n(?P<code>\d+)\n")
    shown = [ended.fullmatch(block.text) for block in blocks() if block.page == "docs/cli.md"]
    return [Failure(found["line"], found["said"], int(found["code"])) for found in shown if found]


def sections() -> list[str]:
    """Every command, and the commands in it, as the headings of the page name them."""
    names: list[str] = []
    for name in COMMANDS:
        command = dragoman.get_command(click.Context(dragoman), name)
        names.append(name)
        if isinstance(command, click.Group):
            names += [f"{name} {inner}" for inner in command.commands]
    return names


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Generator[World]:
    port, nobody = str(free_port()), str(free_port())
    env = environment(tmp_path_factory.mktemp("cli-page"), DRAGOMAN_URL=f"http://127.0.0.1:{port}")
    with running("dev", "--port", port, env=env) as dev:
        dev.fact("try")
        yield World(env, {HUB: port, NOBODY: nobody})
        assert dev.end() == 0


def test_every_command_has_its_section_in_the_order_of_the_help() -> None:
    headings = re.findall(r"^##+ dragoman (.+)$", PAGE, re.MULTILINE)
    assert sorted(headings) == sorted(sections())
    assert [name for name in headings if " " not in name] == list(COMMANDS)


def test_the_page_shows_what_the_list_captures() -> None:
    captured = [step["run"] for step in STEPS if step["run"] and not step.get("aside")]
    assert sorted(re.findall(r"^<!-- capture: (.+) -->\n```console\n\$ ", PAGE, re.MULTILINE)) == sorted(captured)


def test_the_page_holds_no_secret_and_promises_no_console() -> None:
    assert re.findall(r"ap_[0-9A-Za-z]{12}_[^*]|whsec_[^*]", PAGE) == []
    assert "console" not in PAGE.replace("```console", "").lower()


def test_an_error_that_the_page_shows_has_the_exit_code_that_the_list_demands() -> None:
    demanded = sorted(step["exit"] for step in STEPS if step.get("exit"))
    assert sorted(failure.code for failure in failures()) == demanded
    assert {1, 2, 4, 5} <= set(demanded)


@pytest.mark.parametrize("failure", failures(), ids=lambda failure: failure.line)
def test_an_error_reads_and_ends_as_the_page_says(failure: Failure, world: World) -> None:
    paused = "is paused" in failure.said
    if paused:
        assert piped("agents", "pause", "agt_editor", env=world.env).code == 0
    try:
        ran = piped(*shlex.split(world.here(failure.line)), env=world.env)
    finally:
        if paused:
            assert piped("agents", "resume", "agt_editor", env=world.env).code == 0
    assert (ran.code, ran.out) == (failure.code, "")
    said = re.sub(r"pid \d+", "pid 4711", ran.err)
    advised = str(int(world.ports[HUB]) + 1)
    assert said == world.here(failure.said).replace("--port 8701", f"--port {advised}")


def test_every_list_and_every_thing_is_one_document_with_json(world: World) -> None:
    call = piped("call", "agt_archive", "web_search", "--input", "query=tides", "--async", "-q", env=world.env)
    assert call.code == 0, call.err
    for words in DOCUMENTS:
        ran = piped(*words.format(call=call.out.strip()).split(), "--json", env=world.env)
        assert (ran.code, ran.err) == (0, ""), words
        document = json.loads(ran.out)
        assert isinstance(document, dict), words
        if words in LISTS:
            assert document.keys() == {"items", "next_cursor"}, words
