"""`dragoman call`: the input by schema, the answer on stdout, what it took on stderr."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.cli.stub_hub import StubHub, refusal
from tests.cli.terminal import COMMAND, on_terminal, piped, plain

TOOK = "completed in 2.4 s (queued 3 ms, agent 2.4 s) · 812 tokens · trace 4bf92f3577b34da6a3ce929d0e0e4736\n"


def test_a_text_answer_is_printed_as_it_is(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("call", "echo", "--text", "Grüße,\tdu", env=env)
    assert ran == (0, "Grüße,\tdu\n", TOOK)


def test_another_answer_is_printed_as_json(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("call", "summarize", "--input", "content=One. Two.", "--input", "max_length=5", env=env)
    assert json.loads(ran.out) == {"summary": "One."}


def test_json_prints_the_whole_answer_and_no_note(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("call", "echo", "--text", "hi", "--json", env=env)
    answer = json.loads(ran.out)
    assert (answer["status"], answer["result"], ran.err) == ("completed", {"text": "hi"}, "")


def test_quiet_drops_the_note(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("call", "echo", "--text", "hi", "-q", env=env) == (0, "hi\n", "")


def test_one_word_is_a_skill_and_the_hub_picks_the_agent(hub: StubHub, env: dict[str, str]) -> None:
    piped("call", "echo", "--text", "hi", env=env)
    assert "target_agent_id" not in hub.last("/v1/a2a/call").body


def test_two_words_name_the_agent_too_by_a_unique_beginning(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("call", "agt_ech", "echo", "--text", "hi", env=env).code == 0
    assert hub.last("/v1/a2a/call").body["target_agent_id"] == "agt_echo"


def test_options_reach_the_hub(hub: StubHub, env: dict[str, str]) -> None:
    words = ("--timeout", "1.5s", "--priority", "high", "--conversation", "conv_1", "--idempotency-key", "order-1")
    piped("call", "echo", "--text", "hi", *words, env=env)
    seen = hub.last("/v1/a2a/call")
    assert seen.body["options"] == {"timeout_ms": 1500, "priority": "high"}
    assert seen.body["context"] == {"conversation_id": "conv_1"}
    assert seen.headers["idempotency-key"] == "order-1"


def test_a_plain_call_says_only_what_was_asked(hub: StubHub, env: dict[str, str]) -> None:
    piped("call", "echo", "--text", "hi", env=env)
    assert set(hub.last("/v1/a2a/call").body) <= {"skill", "input", "target_agent_id"}


def test_values_are_converted_by_the_schema(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "place.json").write_text('{"city": "Oslo"}')
    given = {
        "days": "3", "budget": "2.5", "fast": "true", "stops": '["a", "b"]', "options": '{"x": 1}', "mode": "3",
        "note": "null", "end": "7", "start": f"@{tmp_path}/place.json",
    }  # fmt: skip
    words = [word for name, value in given.items() for word in ("--input", f"{name}={value}")]
    ran = piped("call", "plan", *words, env=env)
    assert ran.code == 0, ran.err
    assert hub.last("/v1/a2a/call").body["input"] == {
        "days": 3, "budget": 2.5, "fast": True, "stops": ["a", "b"], "options": {"x": 1}, "mode": 3,
        "note": None, "end": 7, "start": {"city": "Oslo"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("days=ten", 'days: expected an integer, got "ten"'),
        ("days=2.5", 'days: expected an integer, got "2.5"'),
        ("days=true", 'days: expected an integer, got "true"'),
        ("budget=much", 'budget: expected a number, got "much"'),
        ("fast=yes", 'fast: expected true or false, got "yes"'),
        ("stops=a", 'stops: expected a JSON array, got "a"'),
        ("options=[]", 'options: expected a JSON object, got "[]"'),
        ("mode=boat", 'mode: expected one of "car", "train", 3, got "boat"'),
        ("end=soon", 'end: expected an integer or null, got "soon"'),
        ("dais=3", "dais: unknown; it takes days, budget"),
    ],
)
def test_what_does_not_fit_is_shown_before_anything_is_sent(
    hub: StubHub, env: dict[str, str], word: str, problem: str
) -> None:
    ran = piped("call", "plan", "--input", word, env=env)
    assert (ran.code, ran.out) == (2, "")
    assert f"error: {problem}" in ran.err
    assert "next: dragoman agents show agt_eclipse" in ran.err
    assert "/v1/a2a/call" not in [seen.path for seen in hub.requests]


def test_all_misfits_are_shown_at_once_with_the_lines_of_the_schema(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("call", "agt_editor", "summarize", "--input", "max_length=ten", env=env)
    assert ran.err == (
        'error: content: required; max_length: expected an integer, got "ten"\n'
        "  content: string, required  The text\n"
        "  max_length: integer, default 500\n"
        "next: dragoman agents show agt_editor\n"
    )


def test_input_comes_from_files_and_stdin(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "all.json").write_text('{"content": "One. Two.", "max_length": 100}')
    (tmp_path / "text.txt").write_text("Three. Four.")
    for words, stdin, summary in (
        (["--input", "@all.json"], "", "One. Two."),
        (["--input", "@all.json", "--input", "max_length=5"], "", "One."),
        (["--input", "content=@text.txt"], "", "Three. Four."),
        (["--input", "content=@@handle"], "", "@handle"),
        (["--input", "-"], '{"content": "Five."}', "Five."),
        (["--text", "Six."], "", "Six."),
    ):
        ran = piped("call", "summarize", *words, env=env, stdin=stdin, cwd=tmp_path)
        assert json.loads(ran.out) == {"summary": summary}, words


@pytest.mark.parametrize(
    ("words", "stdin", "problem"),
    [
        (["--input", "@missing.json"], "", '"missing.json" cannot be read: No such file'),
        (["--input", "content=@missing.txt"], "", '"missing.txt" cannot be read'),
        (["--input", "-"], "[1]", "stdin holds no JSON object"),
        (["--input", "-"], "{", "stdin is not JSON"),
        (["--input", "-"], '{"content": NaN}', "NaN is no JSON value"),
        (["--input", "content"], "", "is neither k=v, @file nor -"),
        (["--input", "content=a", "--input", "content=b"], "", "content: given twice"),
        (["--timeout", "30"], "", "is no duration"),
        (["--timeout", "2h"], "", "--timeout is more than nothing and at most 1h"),
        (["--idempotency-key", "é"], "", "--idempotency-key is plain ASCII text"),
    ],
)
def test_wrong_usage_is_told_and_sends_nothing(
    hub: StubHub, env: dict[str, str], words: list[str], stdin: str, problem: str
) -> None:
    ran = piped("call", "summarize", "--text", "x", *words, env=env, stdin=stdin)
    assert ran.code == 2
    assert problem in ran.err
    assert "/v1/a2a/call" not in [seen.path for seen in hub.requests]


def test_ctrl_c_ends_the_command_with_130(hub: StubHub, env: dict[str, str]) -> None:
    hub.held.add("/v1/a2a/call")
    process = subprocess.Popen(
        [COMMAND, "call", "echo", "--text", "hi"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    last = time.monotonic() + 20
    while "/v1/a2a/call" not in [seen.path for seen in hub.requests]:
        hub.asked.clear()
        hub.asked.wait(1)
        assert time.monotonic() < last
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err


def test_a_slow_call_spins_on_a_terminal_and_leaves_nothing_behind(hub: StubHub, env: dict[str, str]) -> None:
    hub.held.add("/v1/a2a/call")
    hub.release_after(1.5)
    ran = on_terminal("call", "echo", "--text", "hi", env=env)
    assert "calling echo 1." in ran.out
    assert ran.out.rpartition("\r\x1b[K")[2].startswith("hi\n")


def test_a_quick_call_does_not_spin(hub: StubHub, env: dict[str, str]) -> None:
    ran = on_terminal("call", "echo", "--text", "hi", env=env)
    assert "calling" not in ran.out


def test_an_agents_answer_cannot_steer_the_terminal(hub: StubHub, env: dict[str, str]) -> None:
    evil = "\x1b]0;owned\x07\x9b2Jsafe\u202e"
    assert on_terminal("call", "echo", "--text", evil, "-q", env=env).out == "�]0;owned��2Jsafe�\n"
    assert piped("call", "echo", "--text", evil, "-q", env=env).out == evil + "\n"


def test_a_cancelled_call_is_a_failure(hub: StubHub, env: dict[str, str]) -> None:
    hub.answers["POST", "/v1/a2a/call"] = (200, {"id": "a2a_call_1", "call_id": "a2a_call_1", "status": "cancelled"})
    ran = piped("call", "echo", "--text", "hi", env=env)
    assert (ran.code, ran.out) == (1, "")
    assert "error: the call was cancelled" in ran.err


def test_a_misfit_that_only_the_hub_sees_is_wrong_usage_too(hub: StubHub, env: dict[str, str]) -> None:
    hub.answers["POST", "/v1/a2a/call"] = (400, refusal("VALIDATION_ERROR", "days: at most 5.", agent_id="agt_eclipse"))
    ran = piped("call", "plan", "--input", "days=9", env=env)
    assert (ran.code, plain(ran.err)) == (2, "error: days: at most 5\nnext: dragoman agents show agt_eclipse\n")
