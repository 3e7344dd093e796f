"""What goes wrong: message, next step and exit code, for people and for scripts."""

import json
from pathlib import Path

import pytest

from dragoman.model.errors import BY_CODE
from tests.cli.stub_hub import StubHub, refusal
from tests.cli.terminal import environment, on_terminal, piped
from tests.support.ports import free_port


def test_nothing_wrong_is_0(hub: StubHub, env: dict[str, str]) -> None:
    assert piped("discover", env=env).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nope"], "no such command 'nope'"),
        (["call"], "missing argument '[AGENT] SKILL'"),
        (["call", "a", "b", "c"], "expected [AGENT] SKILL, got 3 words"),
        (["discover", "--jsn"], "no such option '--jsn'. Did you mean '--json'?"),
        (["discover", "--hub", "ftp://x"], '"ftp://x" is no URL of a hub (--hub)'),
        (["discover", "--token-file", "missing"], "missing cannot be read"),
        (["agents", "ls", "--columns", "id,color"], "no column 'color'"),
        (["agents", "rm", "agt_echo"], "nobody can be asked here: Remove agt_echo (Echo)?"),
        (["keys", "revoke", "k7f2Qx0aZ91b"], "nobody can be asked here: Revoke the key k7f2Qx0aZ91b?"),
        (["keys", "create", "--name", "ci", "--expires", "soon"], "is no duration"),
        (["agents", "show", "agt_ec"], '"agt_ec" is the beginning of 2 agents\n  agt_echo\n  agt_eclipse\n'),
        (["register", "missing.json"], '"missing.json" is neither a URL nor a file'),
        (["--install-completion", "tcsh"], 'completion is not known for the shell "tcsh"'),
        (["config", "show", "--config", "missing.toml"], "missing.toml"),
    ],
)
def test_wrong_usage_is_2(hub: StubHub, env: dict[str, str], words: list[str], said: str) -> None:
    ran = piped(*words, env=env)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err
    assert "\nnext: " in ran.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["call", "agt_editr", "summarize"],
            'no agent "agt_editr"; did you mean agt_editor?\nnext: dragoman discover\n',
        ),
        (["call", "agt_editor", "sumarize"], 'agt_editor has no skill "sumarize"; it has: summarize'),
        (["call", "sumarize"], 'no agent has the skill "sumarize"; did you mean summarize?'),
        (["agents", "show", "agt_editr"], 'no agent "agt_editr"; did you mean agt_editor?'),
        (["agents", "pause", "zzz"], 'no agent "zzz"\n'),
        (["keys", "revoke", "k7f2Qx0aZ91c", "--yes"], 'no key "k7f2Qx0aZ91c"; did you mean k7f2Qx0aZ91b?'),
    ],
)
def test_what_is_not_there_is_4(hub: StubHub, env: dict[str, str], words: list[str], said: str) -> None:
    ran = piped(*words, env=env)
    assert (ran.code, ran.out) == (4, "")
    assert f"error: {said}" in ran.err
    assert "\nnext: " in ran.err


def test_no_hub_is_5(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    ran = piped("discover", "--hub", url, env=environment(tmp_path))
    assert (ran.code, ran.out) == (5, "")
    assert ran.err == (
        f"error: no hub answers at {url} (connection refused)\nnext: dragoman dev, or set DRAGOMAN_URL\n"
    )


def test_something_else_at_the_hubs_address_is_5(hub: StubHub, env: dict[str, str]) -> None:
    for status in (200, 404):
        hub.answers["GET", "/v1/a2a/discover"] = (status, b"<html>welcome</html>")
        ran = piped("discover", env=env)
        assert ran.code == 5
        assert "(what answers there is no hub)" in ran.err


@pytest.mark.parametrize("code", sorted(BY_CODE))
def test_every_error_of_the_hub_has_a_message_a_next_step_and_an_exit_code(
    hub: StubHub, env: dict[str, str], code: str
) -> None:
    error = BY_CODE[code]("It went wrong.", agent_id="agt_echo")
    body = refusal(code, error.message, **error.details)
    body["error"]["retryable"] = error.retryable
    hub.answers["POST", "/v1/a2a/call"] = (error.http_status, body)
    ran = piped("call", "echo", "--text", "hi", "--json", env=env)
    said = json.loads(ran.err)["error"]
    assert ran.out == ""
    assert ran.code == {401: 3, 403: 3, 404: 4}.get(error.http_status, 2 if code == "VALIDATION_ERROR" else 1)
    assert said["message"]
    assert said["next"]
    if error.http_status not in (401, 403):
        assert (said["code"], said["message"], said["retryable"]) == (code, "it went wrong", error.retryable)


def test_a_loop_is_drawn(hub: StubHub, env: dict[str, str]) -> None:
    body = refusal("CALL_LOOP", "The call would come back.", chain=["agt_a", "agt_b", "agt_a"])
    hub.answers["POST", "/v1/a2a/call"] = (409, body)
    ran = piped("call", "echo", "--text", "hi", env=env)
    assert ran.code == 1
    assert "error: agt_a → agt_b → agt_a is a loop; a call may not come back to an agent that waits for it\n" in ran.err


def test_a_refused_registration_is_a_failure_not_wrong_usage(hub: StubHub, env: dict[str, str]) -> None:
    body = refusal("VALIDATION_ERROR", "The hub may not call 10.1.2.3 (private network).")
    hub.answers["POST", "/v1/a2a/registry"] = (400, body)
    ran = piped("register", "http://10.1.2.3:8000", env=env)
    assert (ran.code, ran.err.splitlines()[0]) == (1, "error: the hub may not call 10.1.2.3 (private network)")


def test_a_missing_scope_names_the_key_to_ask_for(hub: StubHub, env: dict[str, str]) -> None:
    body = refusal("AUTHORIZATION_ERROR", "This key lacks the scope a2a:register.", missing=["a2a:register"])
    hub.answers["POST", "/v1/a2a/registry"] = (403, body)
    ran = piped("register", "http://127.0.0.1:8000", env=env)
    assert ran.code == 3
    assert "next: dragoman keys create --name NAME --scope a2a:register\n" in ran.err


def test_an_error_is_coloured_only_on_a_terminal_that_can(hub: StubHub, env: dict[str, str]) -> None:
    words = ("agents", "show", "zzz")
    assert "\x1b[31merror: \x1b[0m" in on_terminal(*words, env=env).out
    for variable, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        assert "\x1b" not in on_terminal(*words, env={**env, variable: value}).out
    assert "\x1b" not in on_terminal(*words, "--no-color", env=env).out
    assert "\x1b" not in piped(*words, env=env).err
    assert "\x1b[31merror: \x1b[0m" in piped(*words, env={**env, "FORCE_COLOR": "1"}).err
