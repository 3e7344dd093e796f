"""Every example runs as it stands, against `dragoman dev` as a newcomer starts it."""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.programs import EXAMPLES, command, output, started
from tests.support.peers import peer_python
from tests.support.ports import free_port

# What each prints; those that need another program beside them have tests of their own.
SAYS = {
    "chain.py": r"(?i)tide",
    "fan_out.py": r"(?i)tides: .+\nrivers: .+\nmoon: .+",
    "manager.py": r"(?is)tide.*the moon pulls the sea",
    "streaming.py": r"^Once upon a time there was a tide, and it lived happily\.\n$",
    "multi_turn.py": r"^Which size\?\nA blue suit of size 48\n$",
    "callback.py": r"^accepted a2a_call_\S+\ntold \{",
    "workflow.py": r"(?i)tide",
    "client.py": r"(?s)agt_editor a2a-1.0 .*AGENT_NOT_FOUND False.*shelf",
    "model.py": r"^Oslo has 709,000 inhabitants\.\n$",
    "tools.py": r"(?s)agt_archive__web_search \['query'.*Tides rise and fall\.\nagt_editor__\w+ takes.*moon",
}
ELSEWHERE = {"hello.py", "call.py", "agent.py", "official_client.py", "terminal_bench.py"}


@pytest.mark.parametrize("name", SAYS)
def test_an_example_says_what_its_reader_expects(name: str, world: Mapping[str, str]) -> None:
    assert re.search(SAYS[name], output(sys.executable, name, world))


def test_the_agent_of_six_lines_answers_the_call_of_two(world: Mapping[str, str]) -> None:
    with started("hello.py", world, "agt_hello is connected"):
        assert output(sys.executable, "call.py", world) == "Hello, Ada!\n"


def test_the_official_client_calls_an_agent_of_another_dialect(world: Mapping[str, str]) -> None:
    assert "tide" in output(str(peer_python("a2a-1.3.0")), "official_client.py", world).lower()


def test_the_agent_of_everything_finds_asks_calls_and_remembers(world: Mapping[str, str]) -> None:
    with started("agent.py", world, "agt_librarian is connected"):
        found = command(world, "agt_librarian", "find", "--input", "topic=tides", "--input", "limit=1")
        assert json.loads(found.out) == [{"title": "Tides, volume 1", "year": 1901}]
        asked = command(world, "agt_librarian", "report", "--input", "topic=tides")
        assert asked.code == 1
        assert "How many words?" in asked.err
        again = re.search(r"--continue (\S+)", asked.err)
        assert again is not None
        told = command(world, "--continue", again[1], "--text", "300")
        assert "300 words about tides" in told.out
        refused = command(world, "agt_librarian", "lend", "--input", "title=the only copy")
        assert refused.code == 1
        assert "somebody else has it" in refused.err


def test_the_terminal_bench_agent_answers_on_its_own(world: Mapping[str, str]) -> None:
    port = free_port()
    with started("terminal_bench.py", world, "is listening", str(port)):
        answer = command(world, f"http://127.0.0.1:{port}", "terminal_problem_solving", "--text", "find large files")
        assert "find " in answer.out


def test_an_agent_takes_six_lines_and_one_import_and_a_call_two() -> None:
    hello, call = _code("hello.py"), _code("call.py")
    assert len(hello) <= 6
    assert sum("import" in line for line in hello) == 1
    assert len(call) <= 2


def test_every_example_is_run_here() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == SAYS.keys() | ELSEWHERE


def _code(name: str) -> list[str]:
    return [line for line in Path(EXAMPLES / name).read_text().splitlines() if line.strip()]
