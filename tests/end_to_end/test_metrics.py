"""Metrics and call lines of a real hub: each call is counted once, and both say the same of it."""

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from dragoman.dialects import DIALECTS
from dragoman.hub.flow.breaker import IN_A_ROW
from dragoman.observe import names
from tests.end_to_end.every_dialect import Everyone
from tests.end_to_end.world import (
    call_line,
    eventually,
    fresh,
    holds,
    join,
    log_lines,
    says,
    skill,
    tracebacks,
)
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent
from tests.support.rawhttp import Target, converse
from tests.support.scraped import Scraped, exemplars
from tests.support.speaking import Content

RACES: Final = 30
PROMETHEUS: Final = Path(__file__).parents[2] / "deploy/prometheus"
ALERTS: Final = PROMETHEUS / "alerts.yml"
RECORDING: Final = PROMETHEUS / "recording.yml"
SERIES: Final = re.compile(r"\b(?:a2a|dragoman)_\w+")
MODES: Final = {"sync": "", "async": "/async", "stream": "/stream"}


@pytest.fixture(scope="module")
def everyone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Everyone]:
    with ExitStack() as stack:
        hub = stack.enter_context(
            running_hub(tmp_path_factory.mktemp("metrics") / "data", environ={"DRAGOMAN_CALLS_BREAKERS": "true"})
        )
        yield Everyone(hub, stack)
    assert tracebacks(hub) == []


@pytest.fixture
def hub(everyone: Everyone) -> HubProcess:
    return everyone.hub


def line_of(hub: HubProcess, target: str) -> dict[str, Any]:
    """The one call line of a target."""

    def look() -> list[dict[str, Any]]:
        return [line for line in log_lines(hub) if line.get("target_agent_id") == target]

    lines = eventually(look, f"a line of a call of {target}")
    assert len(lines) == 1
    return lines[0]


def agree(hub: HubProcess, target: str, status: str) -> dict[str, Any]:
    """The line of a target's only call, after a look that metrics and the call itself say the same."""
    line, scraped = line_of(hub, target), Scraped(hub)
    assert scraped.ended(target) == {status: 1.0}
    assert scraped.value("a2a_call_duration_seconds_count", target_id=target) == 1
    took_s = scraped.value("a2a_call_duration_seconds_sum", target_id=target)
    assert abs(took_s * 1000 - line["duration_ms"]) <= 0.5
    (exemplar,) = exemplars(hub, "a2a_call_duration_seconds", target_id=target)
    assert line["trace_id"].removeprefix("trace_") == exemplar.labels["trace_id"]
    assert line["status"] == status
    shown = hub.get(f"/v1/calls/{line['call_id']}").json
    assert (shown["id"], shown["agent"], shown["duration_ms"]) == (line["call_id"], target, line["duration_ms"])
    return line


@pytest.mark.req("P-36")
@pytest.mark.req("P-37")
@pytest.mark.parametrize("slug", DIALECTS)
def test_a_call_of_any_dialect_is_counted_once_and_its_line_says_the_same(everyone: Everyone, slug: str) -> None:
    target = everyone.another("a2a-1.0").id
    seen = everyone.caller(slug).call(target, Content(text="hello"))
    assert seen.state == "completed", seen
    line = agree(everyone.hub, target, "completed")
    assert (line["dialect_in"], line["dialect_out"], line["attempts"]) == (slug, "a2a-1.0", 1)
    assert "error_code" not in line


@pytest.mark.req("P-36")
@pytest.mark.req("P-37")
@pytest.mark.parametrize("mode", MODES)
def test_a_call_of_any_mode_is_counted_once_and_its_line_says_the_same(
    hub: HubProcess, agent: PlatformAgent, mode: str
) -> None:
    target = join(hub, agent)["id"]
    body = {"target_agent_id": target, "skill": "echo", "input": {"x": 1}, "context": {"conversation_id": "conv_xyz"}}
    headers = {"X-Trace-ID": "0123456789abcdef0123456789abcdef", "X-Request-ID": fresh("req")}
    assert hub.post(f"/v1/a2a/call{MODES[mode]}", body, headers).status in (200, 202)
    line = agree(hub, target, "completed")
    assert (line["mode"], line["conversation_id"], line["depth"]) == (mode, "conv_xyz", 0)
    assert (line["trace_id"], line["request_id"]) == (headers["X-Trace-ID"], headers["X-Request-ID"])
    assert (line["tokens"], line["cost_usd"]) == (3, 0.001)
    assert ("hub_ms" in line) == (mode == "sync")
    scraped = Scraped(hub)
    assert scraped.value("dragoman_usage_tokens_total", target_id=target) == 3
    assert scraped.value("dragoman_attempts_total", target_id=target, outcome="answered") == 1
    for gauge in ("a2a_call_queue_size", "a2a_circuit_breaker_state", "dragoman_calls_active"):
        assert ({"target_id": target}, 0.0) in scraped.series(gauge)


@pytest.mark.req("P-36")
@pytest.mark.parametrize("kind", ["failed", "timed out", "cancelled"])
def test_a_call_that_does_not_complete_is_counted_once(hub: HubProcess, agent: PlatformAgent, kind: str) -> None:
    target = join(hub, agent)["id"]
    if kind == "failed":
        agent.respond = says({"status": "failed", "error": {"code": "BROKEN", "message": "it broke"}})
        hub.call("echo", {}, target)
        line = agree(hub, target, "failed")
        assert (line["level"], line["error_code"]) == ("warning", "AGENT_ERROR")
    elif kind == "timed out":
        agent.respond = holds(agent)
        hub.call("echo", {}, target, options={"timeout_ms": 200})
        line = agree(hub, target, "failed")
        assert line["error_code"] == "AGENT_TIMEOUT"
    else:
        agent.respond = holds(agent)
        call_id = hub.post("/v1/a2a/call/async", {"target_agent_id": target, "skill": "echo", "input": {}}).json["id"]
        assert agent.arrived.wait(10)
        assert hub.post(f"/v1/a2a/call/{call_id}/cancel", {}).status == 200
        line = agree(hub, target, "cancelled")
        assert line["message"] == names.CALL_CANCELLED
    failures = Scraped(hub).value("dragoman_call_failures_total", target_id=target)
    assert failures == (0 if kind == "cancelled" else 1)


@pytest.mark.req("P-36")
def test_an_agent_that_is_left_alone_shows_as_open_and_every_alert_finds_its_series(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    agent.respond = says((500, {}, b"{}"))
    target = join(hub, agent)["id"]
    for _ in range(IN_A_ROW):
        assert hub.call("echo", {}, target).status >= 500
    reply = hub.call("echo", {}, target)
    assert reply.json["error"]["code"] == "CIRCUIT_OPEN"
    assert hub.call("echo", {}, target, token="ap_wrong").status == 401
    scraped = Scraped(hub)
    assert scraped.ended(target) == {"failed": IN_A_ROW}
    assert scraped.value("a2a_circuit_breaker_state", target_id=target) == 2
    assert scraped.value("dragoman_breaker_transitions_total", to="open") >= 1
    assert scraped.value("dragoman_refusals_total", code="CIRCUIT_OPEN") >= 1
    rules = [*yaml.safe_load(ALERTS.read_text())["groups"], *yaml.safe_load(RECORDING.read_text())["groups"]]
    asked = {name for group in rules for rule in group["rules"] for name in SERIES.findall(rule["expr"])}
    assert len(asked) > 10
    assert {each for each in asked if not scraped.series(each)} <= {"dragoman_usage_cost_usd_total"}


@pytest.mark.req("P-36")
def test_what_is_refused_is_counted_as_refused_and_is_no_call(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent)["id"]
    before = Scraped(hub)
    assert hub.call("nothing like it", {}, target).status == 404
    assert hub.call("echo", {}, target, token=hub.new_key("a2a:register")).status == 403
    assert hub.call("echo", {}, target, token="ap_wrong").status == 401
    after = Scraped(hub)
    assert after.ended(target) == {}
    codes = {"SKILL_NOT_FOUND": 1, "AUTHORIZATION_ERROR": 2}
    for code, count in codes.items():
        found = [each.value("dragoman_refusals_total", dialect="platform", code=code) for each in (before, after)]
        assert found[1] - found[0] == count, code
    for reason in ("scope", "unknown"):
        found = [each.value("dragoman_auth_failures_total", reason=reason) for each in (before, after)]
        assert found[1] - found[0] == 1, reason


@pytest.mark.req("P-36")
def test_cancelling_against_completing_counts_every_call_once(hub: HubProcess, agent: PlatformAgent) -> None:
    target = join(hub, agent)["id"]
    body: dict[str, Any] = {"target_agent_id": target, "skill": "echo", "input": {}}

    def race(_: int) -> str:
        call_id: str = hub.post("/v1/a2a/call/async", body).json["id"]
        hub.post(f"/v1/a2a/call/{call_id}/cancel", {})
        return call_id

    with ThreadPoolExecutor(8) as pool:
        calls = sorted(pool.map(race, range(RACES)))
    eventually(lambda: sum(Scraped(hub).ended(target).values()) >= RACES, "all have ended")

    def lines() -> list[str]:
        return [line["call_id"] for line in log_lines(hub) if line.get("target_agent_id") == target]

    eventually(lambda: len(lines()) >= RACES, "all lines are written")
    assert sorted(lines()) == calls
    assert sum(Scraped(hub).ended(target).values()) == RACES


@pytest.mark.req("P-36")
def test_nothing_that_a_request_says_becomes_a_label(hub: HubProcess, agent: PlatformAgent) -> None:
    check_words(hub, agent)


def check_words(hub: HubProcess, agent: PlatformAgent) -> None:
    """A call that says a word of its own wherever it may."""
    target, word = join(hub, agent)["id"], fresh("said")
    body = {
        "target_agent_id": target,
        "skill": "echo",
        "input": {word: word},
        "context": {"conversation_id": word, "metadata": {word: word}},
    }
    headers = {"X-Request-ID": word, "X-Trace-ID": word, "User-Agent": word, "Idempotency-Key": word}
    assert hub.post("/v1/a2a/call", body, headers).status == 200
    assert hub.call(word, {}, word, headers=headers).status == 404
    assert hub.get(f"/{word}").status == 404
    assert Scraped(hub).ended(target) == {"completed": 1.0}
    assert word not in Scraped(hub).text


@pytest.mark.req("P-36")
def test_an_agent_that_reports_its_end_is_counted_once(everyone: Everyone) -> None:
    check_reported(everyone)


def check_reported(everyone: Everyone) -> None:
    """A call whose end two see: who carries it, and who takes its agent's report."""
    target = everyone.another("envelope").id
    seen = everyone.caller("platform").call(target, Content(text="hello"))
    assert seen.state == "completed", seen
    line = agree(everyone.hub, target, "completed")
    # Its report may be there before its answer to the sending: then nobody knows yet how it was carried.
    assert line.get("dialect_out", "envelope") == "envelope"


@pytest.mark.planted
@pytest.mark.parametrize("bug", ["call_counted_twice", "label_from_request", "end_noted_by_all"])
def test_a_planted_bug_is_found(tmp_path: Path, agent: PlatformAgent, bug: str) -> None:
    with ExitStack() as stack:
        hub = stack.enter_context(running_hub(tmp_path / "data", planted=bug))
        with pytest.raises(AssertionError):
            check_words(hub, agent)
            check_reported(Everyone(hub, stack))


@pytest.mark.req("P-36")
def test_hostile_names_change_neither_a_metric_nor_a_line(hub: HubProcess, agent: PlatformAgent) -> None:
    hostile = 'x"} 1\na2a_calls_total{caller_id="y'
    target = join(hub, agent, name=hostile, skills=[skill(hostile)])["id"]
    reply = hub.call(hostile, {}, target, context={"conversation_id": '"},{"level":"error'})
    assert reply.status == 200, reply.body
    line = agree(hub, target, "completed")
    assert (line["skill"], line["level"]) == (hostile, "info")
    assert {
        labels["skill"] for labels, _ in Scraped(hub).series("a2a_calls_total") if labels["target_id"] == target
    } == {hostile}


@pytest.mark.req("P-36")
def test_what_a_running_hub_emits_is_what_names_py_has(everyone: Everyone) -> None:
    hub = everyone.hub
    target = everyone.agent("a2a-1.0").id
    everyone.caller("platform").call(target, Content(text="hello"))
    converse(Target(host="127.0.0.1", port=hub.port), b"RUBBISH\r\n\r\n", until_closed=True)
    scraped = Scraped(hub)
    known = {metric.name: metric for metric in names.METRICS}
    kinds = {line.split()[2]: line.split()[3] for line in scraped.text.splitlines() if line.startswith("# TYPE ")}
    assert kinds == {name: str(metric.kind) for name, metric in known.items()}
    for sample in scraped.samples:
        name = sample.name
        for end in ("_bucket", "_count", "_sum"):
            name = name if name in known else name.removesuffix(end)
        labels = {*known[name].labels, "le"} if sample.name.endswith("_bucket") else {*known[name].labels}
        assert sample.labels.keys() == labels, sample


@pytest.mark.req("P-36")
def test_a_call_that_a_killed_hub_left_open_is_counted_once_by_the_one_that_ends_it(
    tmp_path: Path, agent: PlatformAgent
) -> None:
    hub = HubProcess(tmp_path / "data").start()
    try:
        agent.respond = holds(agent)
        target = join(hub, agent)["id"]
        call_id = hub.post("/v1/a2a/call/async", {"target_agent_id": target, "skill": "echo", "input": {}}).json["id"]
        assert agent.arrived.wait(10)
        hub.kill()
        agent.release.set()
        hub.start()
        assert call_line(hub, call_id)["status"] == "completed"
        agree(hub, target, "completed")
    finally:
        hub.stop()


def test_the_log_level_is_changed_while_the_hub_runs_and_the_audit_says_by_whom(
    hub: HubProcess, agent: PlatformAgent
) -> None:
    target = join(hub, agent)["id"]
    assert hub.request("PATCH", "/v1/settings/log", {"level": "loud"}).status == 400
    assert hub.request("PATCH", "/v1/settings/log", {"level": "info"}, token=hub.new_key("a2a:call")).status == 403
    assert hub.request("PATCH", "/v1/settings/log", {"level": "warning"}).json == {"level": "warning"}
    quiet = hub.call("echo", {}, target).json["id"]
    assert hub.request("PATCH", "/v1/settings/log", {"level": "info"}).status == 200
    loud = hub.call("echo", {}, target).json["id"]
    call_line(hub, loud)
    assert not [line for line in log_lines(hub) if line.get("call_id") == quiet]
    rows = hub.get("/v1/audit?action=log.changed").json["items"]
    assert [(row["object"], row["principal"]) for row in rows] == [("info", "admin"), ("warning", "admin")]


@pytest.mark.parametrize("is_open", [False, pytest.param(True, marks=pytest.mark.full)])
def test_where_others_can_reach_the_hub_its_metrics_are_its_administrators(tmp_path: Path, is_open: bool) -> None:
    config = tmp_path / "hub.toml"
    config.write_text(f'public_url = "https://hub.example"\n[metrics]\nopen = {str(is_open).lower()}\n')
    with running_hub(tmp_path / "data", flags=("--config", str(config))) as hub:
        administrator, caller = hub.new_key("a2a:admin"), hub.new_key("a2a:call")
        elsewhere = hub.new_key("a2a:admin", tenant="elsewhere")
        hub.token = None
        found = [hub.get("/metrics", token=token).status for token in ("", caller, elsewhere, administrator)]
        assert found == ([200] * 4 if is_open else [401, 403, 403, 200])
