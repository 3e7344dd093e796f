"""`translate`: the translation on stdout, what is lost on stderr, and the exit codes."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import environment, on_terminal, piped, plain

CALL = {"skill": "echo", "input": {"text": "hi"}}
EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path)


def test_a_request_is_read_from_stdin_and_written_to_stdout(env: dict[str, str]) -> None:
    ran = piped("translate", "platform", "a2a-0.3", env=env, stdin=json.dumps(CALL))
    assert (ran.code, ran.err.splitlines()[1:]) == (0, ["  skill  → metadata.dragoman.skill of the message"])
    made = json.loads(ran.out)
    assert made["method"] == "message/send"
    assert made["params"]["message"]["parts"] == [{"kind": "data", "data": {"text": "hi"}}]


def test_a_file_or_the_json_itself_will_do(env: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "call.json"
    file.write_text(json.dumps(CALL))
    by_file = piped("translate", "platform", "directory", str(file), env=env).out
    assert json.loads(by_file) == json.loads(piped("translate", "platform", "directory", json.dumps(CALL), env=env).out)


def test_what_is_lost_is_on_stderr_alone(env: dict[str, str]) -> None:
    answer = str(EXAMPLES / "dotted/message-send-response.json")
    ran = piped("translate", "dotted", "envelope", answer, env=env)
    assert json.loads(ran.out)["type"] == "task_completion"
    assert ran.err.splitlines()[0] == "envelope cannot say all of it:"
    assert "  artifact:name         → nothing" in ran.err.splitlines()
    assert piped("translate", "dotted", "envelope", answer, "-q", env=env).err == ""


def test_json_tells_the_kind_the_losses_and_the_request(env: dict[str, str]) -> None:
    made = json.loads(piped("translate", "platform", "envelope", json.dumps(CALL), "--json", env=env).out)
    assert (made["from"], made["to"], made["kind"]) == ("platform", "envelope", "request")
    assert made["request"] == {"method": "POST", "url": "http://agent.example/a2a/messages"}
    assert made["body"]["type"] == "task_assignment"
    assert made["losses"] == []


def test_a_card_is_told_by_its_shape_or_by_its_kind(env: dict[str, str]) -> None:
    card = str(EXAMPLES / "platform/agent-card.json")
    by_shape = piped("translate", "platform", "dotted", card, env=env)
    assert json.loads(by_shape.out)["skills"][0]["id"]
    assert piped("translate", "platform", "dotted", card, "--kind", "card", env=env).out == by_shape.out


def test_what_cannot_be_carried_is_exit_code_1(env: dict[str, str]) -> None:
    asked = {"jsonrpc": "2.0", "id": "1", "method": "tasks/get", "params": {"id": "t"}}
    ran = piped("translate", "a2a-0.3", "platform", json.dumps(asked), env=env)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith("error: platform has no words for asking after a task\nnext: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("klingon", "platform", "{}"), "klingon"),
        (("platform", "a2a-1.0", "{"), "the argument is not JSON"),
        (("platform", "a2a-1.0", "/nowhere.json"), "/nowhere.json cannot be read"),
        (("platform", "a2a-1.0", '{"hello":1}'), "not a request of platform"),
        (("a2a-0.3", "a2a-1.0", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "SendMessage"})), "no method"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2(words: tuple[str, ...], said: str, env: dict[str, str]) -> None:
    ran = piped("translate", *words, env=env)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


def test_a_list_is_not_taken(env: dict[str, str]) -> None:
    ran = piped("translate", "dotted", "platform", env=env, stdin="[]")
    assert (ran.code, "one message, answer, event or card at a time" in ran.err) == (2, True)


def test_on_a_terminal_losses_stand_below_in_yellow(env: dict[str, str]) -> None:
    answer = str(EXAMPLES / "dotted/message-send-response.json")
    ran = on_terminal("translate", "dotted", "envelope", answer, env=env)
    assert "\x1b[33menvelope cannot say all of it:\x1b[0m" in ran.out
    assert plain(ran.out).index("task_completion") < plain(ran.out).index("cannot say")
