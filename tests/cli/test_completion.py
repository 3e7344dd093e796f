"""Completion: names from the hub, quickly and in silence; scripts where shells look for them."""

import subprocess
from pathlib import Path

import pytest

from tests.cli.stub_hub import StubHub
from tests.cli.terminal import COMMAND, environment, piped
from tests.support.ports import free_port


def completed(env: dict[str, str], *words: str) -> list[str]:
    """What the shell would offer for the last word."""
    asked = {**env, "_DRAGOMAN_COMPLETE": "bash_complete", "COMP_WORDS": "\n".join(["dragoman", *words])}
    asked["COMP_CWORD"] = str(len(words))
    done = subprocess.run([COMMAND], env=asked, capture_output=True, text=True, timeout=30, check=False)
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_names_complete_from_the_hub(hub: StubHub, env: dict[str, str]) -> None:
    assert completed(env, "call", "agt_ec") == ["agt_echo", "agt_eclipse"]
    assert completed(env, "call", "sum") == ["summarize"]
    assert completed(env, "call", "agt_echo", "") == ["echo"]
    assert completed(env, "agents", "show", "agt_ed") == ["agt_editor"]
    assert completed(env, "discover", "p") == ["plan"]
    assert completed(env, "tasks", "ls", "--agent", "agt_ed") == ["agt_editor"]
    assert completed(env, "tasks", "ls", "--skill", "sum") == ["summarize"]
    assert completed(env, "bench", "--skill", "e") == ["echo"]


def test_an_answer_is_kept_for_the_next_key_press(hub: StubHub, env: dict[str, str]) -> None:
    completed(env, "call", "agt_ec")
    hub.requests.clear()
    assert completed(env, "call", "agt_ec") == ["agt_echo", "agt_eclipse"]
    assert hub.requests == []


def test_no_hub_means_no_names_and_no_words(tmp_path: Path) -> None:
    env = environment(tmp_path, DRAGOMAN_URL=f"http://127.0.0.1:{free_port()}")
    assert completed(env, "call", "agt_") == []


def test_commands_complete_without_a_hub(tmp_path: Path) -> None:
    assert completed(environment(tmp_path), "ag") == ["agents"]


@pytest.mark.parametrize(
    ("shell", "place"),
    [
        ("bash", ".local/share/bash-completion/completions/dragoman"),
        ("zsh", ".local/share/zsh/site-functions/_dragoman"),
        ("fish", ".config/fish/completions/dragoman.fish"),
    ],
)
def test_the_script_is_written_where_the_shell_looks(shell: str, place: str, tmp_path: Path) -> None:
    for words, more in ((("--install-completion", shell), {}), (("--install-completion",), {"SHELL": f"/bin/{shell}"})):
        ran = piped(*words, env=environment(tmp_path, **more))
        assert (ran.code, ran.out) == (0, f"{tmp_path}/{place}\n")
        assert "_DRAGOMAN_COMPLETE" in (tmp_path / place).read_text()
        assert "next: " in ran.err
