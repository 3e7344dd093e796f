"""`doctor`: what an agent really speaks, and how the hub is; what it shows, and how it exits."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import __version__
from tests.cli.stub_hub import StubHub, refusal
from tests.cli.terminal import environment, on_terminal, piped, plain
from tests.support.ports import free_port
from tests.support.quirks import STUBS
from tests.support.speaking import StubAgent, json_answer, serving

RED = "\x1b[31m"


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """A user without a hub."""
    return environment(tmp_path, DRAGOMAN_URL=f"http://127.0.0.1:{free_port()}")


def nothing(_method: str, _path: str, _headers: Any, _body: Any) -> tuple[int, dict[str, str], bytes]:
    return 404, {}, b"{}"


def locked(_method: str, path: str, _headers: Any, _body: Any) -> tuple[int, dict[str, str], bytes]:
    return 401, {"WWW-Authenticate": 'Bearer realm="x"'}, b"{}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if n % 4 == 0 else pytest.mark.full) for n, name in enumerate(STUBS)]
)
def test_every_agent_of_the_field_is_understood(name: str, alone: dict[str, str]) -> None:
    with STUBS[name]() as stub:
        ran = piped("doctor", stub.url, "--send", "hi", "--json", env=alone)
        assert ran.code == 0, ran.out + ran.err
        shown = json.loads(ran.out)
    assert shown["verdict"] == "usable"
    assert (shown["send"]["state"], shown["send"]["text"]) == ("completed", f"hello from {name}")
    assert shown["next"] == f"dragoman register {stub.url}"
    assert len(shown["tried"]) <= 24


def test_looking_starts_no_work(alone: dict[str, str]) -> None:
    with STUBS["understated"]() as stub:
        assert piped("doctor", stub.url, env=alone).code == 0
        bodies = [body for method, _, _, body in stub.requests if method == "POST"]
    assert [body["method"] for body in bodies] == ["GetTask", "tasks/get", "message/send"]
    assert bodies[2]["params"] == {}


def test_one_line_tells_one_thing(alone: dict[str, str]) -> None:
    with STUBS["hybrid"]() as stub:
        ran = piped("doctor", stub.url, "--send", "hi", env=alone)
    lines = [line.split("\t") for line in ran.out.splitlines()]
    assert ran.err == ""
    assert lines[0] == ["ok", "card", "/.well-known/agent-card.json", "a2a-1.0", '"hybrid" 1.0.0, no skills']
    assert lines[1] == ["ok", "a2a-1.0", "JSON-RPC", "claimed, answers", "GetTask → -32001"]
    said = "tasks/get → -32001, message/send → HTTP 500: hybrid, 1.0 is used"
    assert lines[2] == ["note", "a2a-0.3", "JSON-RPC", "not claimed, odd", said]
    assert [line[2] for line in lines if line[:2] == ["note", "quirks"]] == ["Q2", "Q3", "Q4", "Q5", "Q15", "Q26"]
    assert lines[-2:] == [["works through the hub in every dialect"], [f"next: dragoman register {stub.url}"]]


def test_on_a_terminal_what_is_claimed_and_what_answers_differ_in_red(alone: dict[str, str]) -> None:
    with STUBS["understated"]() as stub:
        ran = on_terminal("doctor", stub.url, env=alone, width=100)
        quiet = on_terminal("doctor", stub.url, "--no-color", env=alone, width=100)
    assert f"{RED}not claimed, answers\x1b[0m" in ran.out
    assert f"{RED}claimed" not in ran.out
    assert " ✔ card " in plain(ran.out)
    took = re.compile(r"latency [\d.]+ m?s")
    assert took.sub("", plain(ran.out)) == took.sub("", quiet.out)
    assert all(len(line) <= 100 for line in plain(ran.out).splitlines())


def test_a_card_that_promises_too_much_is_told_so(alone: dict[str, str]) -> None:
    with STUBS["liar"]() as stub:
        shown = json.loads(piped("doctor", stub.url, "--json", env=alone).out)
    told = {(each["name"], each["binding"]): (each["claimed"], each["answered"]) for each in shown["dialects"]}
    assert told == {
        ("a2a-1.0", "HTTP+JSON"): (True, False),
        ("a2a-1.0", "GRPC"): (True, None),
        ("a2a-0.3", "JSONRPC"): (False, True),
    }
    assert {each["id"] for each in shown["quirks"]} == {"Q14", "Q34"}


def test_with_v_the_wire_is_shown(alone: dict[str, str]) -> None:
    with STUBS["strict10"]() as stub:
        ran = piped("doctor", stub.url, "-v", env=alone)
    assert f"> user-agent: dragoman-doctor/{__version__}" in ran.err
    assert "< HTTP 200 in " in ran.err


def test_a_dialect_that_is_named_is_tried_first(alone: dict[str, str]) -> None:
    with STUBS["understated"]() as stub:
        shown = json.loads(piped("doctor", stub.url, "--as", "a2a-0.3", "--json", env=alone).out)
    assert [each["name"] for each in shown["dialects"]] == ["a2a-0.3", "a2a-1.0"]


def test_where_nothing_answers_the_exit_code_is_5(alone: dict[str, str]) -> None:
    ran = piped("doctor", f"http://127.0.0.1:{free_port()}", env=alone)
    assert ran.code == 5
    assert "connection refused" in ran.out


def test_where_something_answers_that_is_no_agent_the_exit_code_is_4(alone: dict[str, str]) -> None:
    with serving(StubAgent("nothing"), nothing) as stub:
        ran = piped("doctor", stub.url, env=alone)
    assert ran.code == 4
    assert "fact\tasked\tGetTask\tPOST " in ran.out


def test_where_a_credential_is_wanted_the_exit_code_is_3(alone: dict[str, str]) -> None:
    with serving(StubAgent("locked"), locked) as stub:
        ran = piped("doctor", stub.url, env=alone)
    assert ran.code == 3
    assert "wants a credential (Bearer)" in ran.out


def test_a_card_whose_agent_does_not_answer_is_exit_code_1(alone: dict[str, str]) -> None:
    agent = StubAgent("mute")

    def mute(_method: str, path: str, _headers: Any, _body: Any) -> tuple[int, Any, bytes]:
        return json_answer(agent.card) if path.endswith("agent-card.json") else (404, {}, b"")

    with serving(agent, mute):
        interface = {"url": agent.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        agent.card = {"name": "Mute", "supportedInterfaces": [interface]}
        ran = piped("doctor", agent.url, env=alone)
    assert ran.code == 1
    assert "fault\ta2a-1.0\tJSON-RPC\tclaimed, silent\tGetTask → HTTP 404" in ran.out


def test_a_message_that_fails_is_exit_code_1(alone: dict[str, str]) -> None:
    agent = StubAgent("failing")

    def failing(method: str, path: str, _headers: Any, body: Any) -> tuple[int, Any, bytes]:
        if method == "GET":
            return json_answer(agent.card) if path.endswith("agent-card.json") else (404, {}, b"")
        code = -32603 if body["method"] == "SendMessage" else -32001
        return json_answer({"jsonrpc": "2.0", "id": body["id"], "error": {"code": code, "message": "it broke"}})

    with serving(agent, failing):
        interface = {"url": agent.url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        agent.card = {"name": "Failing", "supportedInterfaces": [interface]}
        ran = piped("doctor", agent.url, "--send", "hi", env=alone)
    assert ran.code == 1
    assert "the message failed: it broke" in ran.out


@pytest.mark.parametrize("words", [("agent.test",), ("--send", "x"), ("http://x", "--as", "klingon")])
def test_what_makes_no_sense_is_exit_code_2(words: tuple[str, ...], alone: dict[str, str]) -> None:
    assert piped("doctor", *words, env=alone).code == 2


def test_without_a_url_the_hub_is_checked(hub: StubHub, env: dict[str, str]) -> None:
    hub.answers["GET", "/"] = (200, {"name": "dragoman", "version": __version__})
    ran = piped("doctor", env=env)
    assert ran.code == 0, ran.out
    told = dict(line.split("\t")[1::-1] for line in ran.out.splitlines() if "\t" in line)
    assert {told[name] for name in ("here", "hub", "ready", "version", "token")} == {"ok"}
    assert "all is well" in ran.out
    assert json.loads(piped("doctor", "--json", env=env).out)["ready"] is True


def test_a_hub_of_another_version_is_told_of(hub: StubHub, env: dict[str, str]) -> None:
    ran = piped("doctor", env=env)
    assert ran.code == 0
    assert "note\tversion\tthe hub is 9.9.9" in ran.out


def test_a_hub_that_is_not_ready_is_exit_code_1(hub: StubHub, env: dict[str, str]) -> None:
    hub.answers["GET", "/readyz"] = (503, {"status": "not ready", "checks": {"store": "failing"}})
    ran = piped("doctor", env=env)
    assert ran.code == 1
    assert 'fault\tready\tit takes no calls (HTTP 503): {"store": "failing"}' in ran.out


def test_a_token_that_is_refused_is_exit_code_3(hub: StubHub, env: dict[str, str]) -> None:
    hub.token = "right"
    ran = piped("doctor", env={**env, "DRAGOMAN_TOKEN": "wrong-token"})
    assert ran.code == 3
    assert "wrong-token" not in ran.out
    assert "the hub refused the token" in ran.out


def test_clocks_that_differ_are_told_of(hub: StubHub, env: dict[str, str]) -> None:
    body = {**refusal("NOT_FOUND", "nothing"), "timing": {"queued_at": "2020-01-01T00:00:00.000Z"}}
    hub.answers["GET", "/v1/doctor"] = (404, body)
    ran = piped("doctor", env=env)
    assert ran.code == 1
    assert "fault\tclock\t-" in ran.out


def test_no_hub_at_all_is_exit_code_5(alone: dict[str, str]) -> None:
    ran = piped("doctor", env=alone)
    assert ran.code == 5
    assert "next: dragoman dev, or set DRAGOMAN_URL" in ran.out


def test_an_alias_that_another_package_has_taken_is_told_of(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    assert "agentplatform" not in piped("doctor", env=env).out
    (tmp_path / "agentplatform").mkdir()
    (tmp_path / "agentplatform/__init__.py").write_text("raise SystemExit('imported')\n")
    ran = piped("doctor", env={**env, "PYTHONPATH": str(tmp_path)})
    assert ran.code == 0
    assert "note\talias\tthe package agentplatform here is not ours\timport dragoman in its place" in ran.out


def test_a_data_directory_that_others_can_read_is_a_fault(hub: StubHub, env: dict[str, str], tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    ran = piped("doctor", env={**env, "DRAGOMAN_DATA": str(data)})
    assert ran.code == 1
    assert f"chmod 700 {data}" in ran.out
