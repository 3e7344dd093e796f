"""`dragoman call` at a real hub: streams, calls that are handed over, questions, files, dialects, Ctrl-C, no hub."""

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import jsonschema_rs
import pytest

from dragoman.dialects import DIALECTS
from tests.cli.terminal import COMMAND, Ran, environment, on_terminal, piped, plain
from tests.end_to_end.world import fresh
from tests.support.agents import a2a_v10
from tests.support.hub import HubProcess, running_hub
from tests.support.receiver import callback_receiver
from tests.support.speaking import StubAgent
from tests.support.streaming_agent import StreamedCall, StreamingAgent, streaming_agent

WORDS = ("The sea ", "is calm. ", "It rises\n", "and falls.")
SAID = "".join(WORDS)


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    with running_hub(tmp_path_factory.mktemp("calls") / "data", auth="none") as running:
        yield running


@pytest.fixture
def env(hub: HubProcess, tmp_path: Path) -> dict[str, str]:
    return environment(tmp_path, DRAGOMAN_URL=hub.url)


@pytest.fixture
def teller(hub: HubProcess) -> Iterator[tuple[str, StreamingAgent]]:
    with streaming_agent() as agent:
        name = fresh("agt_teller")
        hub.register(agent.card(name))
        yield name, agent


@pytest.fixture
def asker(hub: HubProcess) -> Iterator[tuple[str, StubAgent]]:
    with a2a_v10.agent() as stub:
        name = fresh("agt_asker")
        hub.register(stub.card, id=name)
        yield name, stub


def tells(agent: StreamingAgent) -> None:
    """The agent tells its story to the next call, from a thread."""

    def story() -> None:
        call = agent.next_call()
        for number, words in enumerate(WORDS, 1):
            call.say("progress", {"progress": number / len(WORDS), "message": "Reading the sea"})
            call.chunks(words)
        call.complete(usage={"tokens": 812})

    threading.Thread(target=story, daemon=True).start()


def started(*words: str, env: dict[str, str]) -> "subprocess.Popen[str]":
    return subprocess.Popen([COMMAND, *words], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> Ran:
    out, err = process.communicate(timeout=20)
    return Ran(process.returncode, out, err)


def fits(hub: HubProcess, name: str, value: object) -> None:
    schemas = hub.get("/openapi.json").json["components"]
    schema = {"$ref": f"#/components/schemas/{name}", "components": schemas}
    jsonschema_rs.validator_for(schema).validate(value)


@pytest.mark.parametrize("width", [80, 120])
def test_a_stream_has_a_head_a_bar_the_words_and_a_last_line(
    teller: tuple[str, StreamingAgent], env: dict[str, str], width: int
) -> None:
    name, agent = teller
    tells(agent)
    ran = on_terminal("call", name, "tell", "--stream", env=env, width=width)
    assert ran.code == 0
    lines = plain(ran.out).replace("\r", "\n").splitlines()
    assert lines[0].startswith(f"{name} · platform · rating 4.5  ")
    assert lines[0].endswith(lines[0].split()[-1])
    assert len(lines[0]) == width - 1, "the id stands at the right"
    bars = [line for line in lines if "━" in line]
    assert any("Reading the sea" in line and " 25 %" in line for line in bars)
    assert max(map(len, lines[:-1])) < width
    assert "The sea" in ran.out
    assert "and falls.\n" in ran.out
    assert lines[-1].startswith("completed in ")
    assert "· 812 tokens · trace trace_" in lines[-1]


def test_piped_a_stream_is_its_words_alone(teller: tuple[str, StreamingAgent], env: dict[str, str]) -> None:
    name, agent = teller
    tells(agent)
    ran = piped("call", name, "tell", "--stream", env=env)
    assert (ran.code, ran.out) == (0, f"{SAID}\n")
    assert ran.err.splitlines()[0].startswith(f"{name} · platform · rating 4.5 · a2a_call_")


def test_with_json_a_stream_is_one_object_per_line(teller: tuple[str, StreamingAgent], env: dict[str, str]) -> None:
    name, agent = teller
    tells(agent)
    ran = piped("call", name, "tell", "--stream", "--json", env=env)
    lines = [json.loads(line) for line in ran.out.splitlines()]
    assert (lines[0]["event"], lines[-1]["event"], ran.err) == ("start", "complete", "")
    assert "".join(line["data"]["content"] for line in lines if line["event"] == "chunk") == SAID
    assert lines[-1]["data"]["result"] == {"text": SAID}
    assert [line["id"] for line in lines] == sorted(line["id"] for line in lines)


def test_an_agent_that_says_nothing_on_the_way_has_its_answer_printed(
    asker: tuple[str, StubAgent], env: dict[str, str]
) -> None:
    ran = piped("call", asker[0], "echo", "--input", "a=1", "--stream", "-q", env=env)
    assert (ran.code, json.loads(ran.out), ran.err) == (0, {"a": "1"}, "")


def test_a_stream_that_fails_is_a_failure(teller: tuple[str, StreamingAgent], env: dict[str, str]) -> None:
    name, agent = teller

    def fails() -> None:
        call = agent.next_call()
        call.chunks("Once ")
        call.say("error", {"code": "STORM", "message": "no sea today"})
        call.hang_up()

    threading.Thread(target=fails, daemon=True).start()
    ran = piped("call", name, "tell", "--stream", env=env)
    assert (ran.code, ran.out) == (1, "Once \n")
    assert "error: no sea today\n" in ran.err


def test_a_broken_stream_is_taken_up_where_it_was(env: dict[str, str], tmp_path: Path) -> None:
    """The hub is killed in mid-call and comes back: what was told before is not told twice, and the end is."""
    own = HubProcess(tmp_path / "own", auth="none").start()
    try:
        with a2a_v10.agent() as stub:
            own.register(stub.card, id="agt_slow")
            words = ("call", "agt_slow", "echo", "--text", "slow", "--stream", "--json", "--hub", own.url)
            with started(*words, env=env) as process:
                assert process.stdout is not None
                begun = process.stdout.readline()
                own.kill()
                own.start()
                stub.release.set()
                ran = ended(process)
    finally:
        own.stop()
    events = [json.loads(line)["event"] for line in (begun + ran.out).splitlines()]
    assert (events[0], events[-1], events.count("start")) == ("start", "error", 1)
    assert json.loads(ran.err)["error"]["details"]["reason"] == "interrupted"


def test_a_call_is_handed_over_and_its_id_printed(
    hub: HubProcess, teller: tuple[str, StreamingAgent], env: dict[str, str]
) -> None:
    name, agent = teller
    ran = piped("call", name, "tell", "--async", env=env)
    call_id = ran.out.strip()
    assert (ran.code, ran.err) == (0, f"next: dragoman tasks show {call_id}\n")
    assert agent.next_call().body["call_id"] == call_id
    accepted = json.loads(piped("call", name, "tell", "--async", "--json", env=env).out)
    fits(hub, "Accepted", accepted)
    shown = json.loads(piped("tasks", "show", call_id[:-3], "--json", env=env).out)
    fits(hub, "CallView", shown)
    assert shown["id"] == call_id
    fits(hub, "Calls", json.loads(piped("tasks", "ls", "--agent", name, "--json", env=env).out))
    cancelled = json.loads(piped("tasks", "cancel", call_id, "--json", env=env).out)
    fits(hub, "CallView", cancelled)
    assert cancelled["status"] == "canceled"


def test_a_call_that_was_handed_over_is_waited_for(teller: tuple[str, StreamingAgent], env: dict[str, str]) -> None:
    name, agent = teller
    tells(agent)
    with callback_receiver() as told:
        ran = piped("call", name, "tell", "--async", "--wait", "--callback", told.url, env=env)
        assert (ran.code, ran.out) == (0, f"{SAID}\n")
        assert ran.err.splitlines()[0].startswith("a2a_call_")
        body = told.wait_for(1)[0].body
        assert (body["call_id"], body["status"]) == (ran.err.splitlines()[0], "completed")


def test_a_question_is_a_prompt_on_a_terminal(asker: tuple[str, StubAgent], env: dict[str, str]) -> None:
    for more in ((), ("--stream",), ("--async", "--wait")):
        ran = on_terminal("call", asker[0], "echo", "--text", "ask", *more, env=env, keys="Lisbon\n")
        assert ran.code == 0, ran.out
        assert "Lisbon\n" in plain(ran.out).partition(f"{a2a_v10.QUESTION} ")[2]


def test_elsewhere_a_question_is_a_failure_with_the_command_that_answers_it(
    asker: tuple[str, StubAgent], env: dict[str, str]
) -> None:
    for more in ((), ("--stream",)):
        ran = piped("call", asker[0], "echo", "--text", "ask", *more, "-q", env=env)
        assert (ran.code, ran.out) == (1, "")
        said, following = ran.err.splitlines()
        assert said == f"error: the agent asks: {a2a_v10.QUESTION}"
        words = following.removeprefix("next: dragoman ").split()
        assert piped(*words[:-1], "Lisbon", "-q", env=env) == (0, "Lisbon\n", "")


def test_files_go_along_and_come_back(asker: tuple[str, StubAgent], env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_bytes(b"\x00all of it")
    words = ("call", asker[0], "echo", "--text", "look", "--file", "note.txt")
    ran = piped(*words, env=env, cwd=tmp_path)
    assert "file note.txt (--out DIR writes it)\n" in ran.err
    shown = json.loads(ran.out)["parts"]
    assert shown[0] == {"kind": "text", "text": "look"}
    assert (shown[1]["file"]["name"], shown[1]["file"]["mimeType"]) == ("note.txt", "text/plain")
    for name in ("note.txt", "1-note.txt"):
        ran = piped(*words, "--out", "got", env=env, cwd=tmp_path)
        assert f"file got/{name}\n" in ran.err, "nothing is overwritten"
        assert (tmp_path / "got" / name).read_bytes() == b"\x00all of it"
    ran = piped("call", asker[0], "echo", "--file", "gone.txt", env=env, cwd=tmp_path)
    assert (ran.code, '"gone.txt" cannot be read' in ran.err) == (2, True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_call_in_any_dialect_prints_that_dialects_answer(
    asker: tuple[str, StubAgent], env: dict[str, str], dialect: str
) -> None:
    ran = piped("call", asker[0], "echo", "--text", "hello", "--as", dialect, env=env)
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    told = {
        "envelope": lambda: (answer["type"], answer["payload"]["status"]),
        "platform": lambda: (answer["status"], answer["result"]),
        "directory": lambda: answer["result"]["status"],
        "dotted": lambda: answer["result"]["status"]["state"],
        "agentvault": lambda: answer["result"]["state"],
        "a2a-0.3": lambda: answer["result"]["status"]["state"],
        "a2a-1.0": lambda: answer["result"]["task"]["status"]["state"],
    }
    assert told[dialect]() == {
        "envelope": ("task_completion", "completed"),
        "platform": ("completed", {"text": "hello"}),
        "agentvault": "COMPLETED",
        "a2a-1.0": "TASK_STATE_COMPLETED",
    }.get(dialect, "completed")


def test_a_dialects_refusal_is_printed_and_a_failure(asker: tuple[str, StubAgent], env: dict[str, str]) -> None:
    ran = piped("call", asker[0], "echo", "--text", "fail", "--as", "dotted", env=env)
    assert (ran.code, json.loads(ran.out)["result"]["status"]["state"]) == (1, "failed")
    assert ran.err.startswith("error: ")


def test_an_agent_is_called_by_its_url_without_a_hub(env: dict[str, str]) -> None:
    alone = {**env, "DRAGOMAN_URL": "http://127.0.0.1:9"}
    with a2a_v10.agent() as stub:
        assert piped("call", stub.url, "echo", "--text", "hello", "-q", env=alone) == (0, "hello\n", "")
        ran = piped("call", stub.url, "echo", "--input", "n=5", "--stream", "--as", "a2a-1.0", env=alone)
        assert ran.code == 2, "--stream and --as exclude each other"
        ran = piped("call", stub.url, "echo", "--input", "n=5", "--as", "a2a-1.0", "-q", env=alone)
        assert (ran.code, json.loads(ran.out)) == (0, {"n": "5"})
        ran = on_terminal("call", stub.url, "echo", "--text", "ask", "--stream", env=alone, keys="Oslo\n")
        assert (ran.code, "Oslo\n" in plain(ran.out).partition(a2a_v10.QUESTION)[2]) == (0, True)
        ran = piped("call", stub.url, "nothing", "--text", "x", env=alone)
        assert (ran.code, "has no skill" in ran.err) == (4, True)
        ran = piped("call", stub.url, "echo", "--async", env=alone)
        assert (ran.code, "--async needs a hub" in ran.err) == (2, True)
    ran = piped("call", stub.url, "echo", "--text", "hello", env=alone)
    assert (ran.code, f"next: dragoman doctor {stub.url}\n" in ran.err) == (5, True)


@pytest.mark.parametrize("more", [(), ("--stream",), ("--async", "--wait"), ("--as", "a2a-0.3")], ids=" ".join)
def test_ctrl_c_cancels_the_call_and_waits_for_its_answer(
    hub: HubProcess, asker: tuple[str, StubAgent], env: dict[str, str], more: tuple[str, ...]
) -> None:
    name, stub = asker
    with started("call", name, "echo", "--text", "slow", *more, env=env) as process:
        assert stub.arrived.wait(20)
        process.send_signal(signal.SIGINT)
        ran = ended(process)
    assert ran.code == 130, ran.err
    if "--as" not in more:
        assert (ran.out, "error: the call was cancelled\n" in ran.err) == ("", True), ran.err
    (call,) = hub.get(f"/v1/calls?agent={name}").json["items"]
    assert call["status"] == "canceled"


def test_ctrl_c_twice_leaves_the_call(hub: HubProcess, teller: tuple[str, StreamingAgent], env: dict[str, str]) -> None:
    name, agent = teller
    with started("call", name, "tell", env=env) as process:
        call: StreamedCall = agent.next_call()
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGINT)
        ran = ended(process)
    assert (ran.code, ran.out, "Traceback" in ran.err) == (130, "", False)
    call.complete({"a": 1})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("call", "x", "--wait"), "--wait goes with --async"),
        (("call", "x", "--stream", "--async"), "--stream and --async exclude each other"),
        (("call", "x", "y", "--continue", "z"), "it names no agent and no skill"),
        (("call", "--continue", "a2a_call_none", "--text", "x"), 'no call "a2a_call_none"'),
        (("call", "http://127.0.0.1:9"), "expected URL SKILL, got 1 words"),
    ],
)
def test_what_does_not_go_together_is_told(env: dict[str, str], words: tuple[str, ...], said: str) -> None:
    ran = piped(*words, env=env)
    assert ran.code == (4 if "--continue" in words and "x" not in words[:2] else 2)
    assert said in ran.err
