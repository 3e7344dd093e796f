"""`dragoman new`: what it makes works at once, and nothing is ever overwritten."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import environment, piped


def test_what_it_makes_is_a_six_line_agent_whose_own_test_passes(tmp_path: Path) -> None:
    ran = piped("new", "my-agent", env=environment(tmp_path), cwd=tmp_path)
    assert (ran.code, ran.out) == (0, "my-agent/agent.py\nmy-agent/test_agent.py\nmy-agent/README.md\n")
    assert ran.err.splitlines()[0] == "next: dragoman run my-agent/agent.py"
    folder = tmp_path / "my-agent"
    assert len([line for line in (folder / "agent.py").read_text().splitlines() if line]) == 6
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir=."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "README.md").write_text("mine")
    ran = piped("new", "mine", env=environment(tmp_path), cwd=tmp_path)
    assert (ran.code, ran.err.splitlines()[0]) == (2, "error: mine/README.md is there already")
    assert [path.name for path in folder.iterdir()] == ["README.md"]
    assert (folder / "README.md").read_text() == "mine"
    (tmp_path / "file").write_text("x")
    assert piped("new", "file", env=environment(tmp_path), cwd=tmp_path).code == 2


@pytest.mark.parametrize("name", ["..", "-x", ".hidden", "a\nb", "a/..", "é", "x" * 65, '"', "$(x)"])
def test_a_name_that_could_not_be_an_agents_is_refused(name: str, tmp_path: Path) -> None:
    ran = piped("new", "--", name, env=environment(tmp_path), cwd=tmp_path)
    assert ran.code == 2
    assert "cannot name an agent" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_template_that_does_not_exist_is_refused_in_a_sentence(tmp_path: Path) -> None:
    ran = piped("new", "x", "--from", "langgraph", env=environment(tmp_path), cwd=tmp_path)
    assert (ran.code, ran.err) == (
        2,
        'error: there is no template "langgraph"; there is: plain\nnext: leave out --from\n',
    )
    assert list(tmp_path.iterdir()) == []


def test_scripts_get_the_files_as_json(tmp_path: Path) -> None:
    ran = piped("new", "deep/er", "--json", env=environment(tmp_path), cwd=tmp_path)
    made = json.loads(ran.out)
    assert made["folder"] == "deep/er"
    assert all((tmp_path / path).exists() for path in made["files"])
