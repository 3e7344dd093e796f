"""Traces across agents: shown by the hub and by `dragoman trace`, exported to a collector, and to nobody else."""

import json
import re
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import environment, on_terminal, piped, plain
from tests.end_to_end.world import eventually, fresh, join, repeats, says, skill
from tests.support.collector import Collector, Received
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import Answer, PlatformAgent, platform_agent
from tests.support.relay import Relay, relaying

INVOKED = ["invoke_agent Relay A", "invoke_agent Relay B", "invoke_agent Echo Vault"]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Generator[HubProcess]:
    exported = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_HEADERS": "x-team=blue"}
    hub = HubProcess(tmp_path_factory.mktemp("traces") / "data").start({**exported, "DRAGOMAN_CALLS_RETRIES": "1"})
    yield hub
    assert hub.stop() == 0


@pytest.fixture(scope="module")
def relay(hub: HubProcess) -> Generator[Relay]:
    with relaying(hub) as relay:
        yield relay


def spans_of(hub: HubProcess, name: str, token: str = "") -> list[dict[str, Any]]:
    reply = hub.get(f"/v1/traces/{name}", token=token)
    assert reply.status == 200, reply.body
    spans: list[dict[str, Any]] = reply.json["spans"]
    return spans


def calls_in(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [span for span in spans if span["kind"] == "server"]


@pytest.mark.req("P-35")
@pytest.mark.req("P-38")
def test_a_trace_over_three_agents_of_three_dialects_is_shown_and_exported(
    hub: HubProcess, relay: Relay, collector: Collector, tmp_path: Path
) -> None:
    given, trace = over_three(hub, relay)
    a, b, c = calls_in(trace["spans"])
    assert [a["name"], b["name"], c["name"]][:2] == INVOKED[:2]
    assert [call["agent"] for call in (a, b, c)] == [relay.a, relay.b, relay.c]
    assert (b["parent_id"], c["parent_id"]) == (a["span_id"], b["span_id"])
    assert [call["depth"] for call in (a, b, c)] == [0, 1, 2]
    assert (trace["given_id"], trace["calls"], trace["status"]) == (given, 3, "completed")
    ways = [span["attributes"]["a2a.dialect.out"] for span in trace["spans"] if span["name"] == "attempt"]
    assert sorted(ways) == ["a2a-1.0", "agentvault", "platform"]
    # The same trace by every name that it has.
    for name in (trace["trace_id"], f"trace_{trace['trace_id']}", a["call_id"], c["call_id"]):
        assert spans_of(hub, name) == trace["spans"]
    listed = hub.get("/v1/traces?limit=1").json["items"][0]
    assert (listed["trace_id"], listed["root"], listed["calls"]) == (trace["trace_id"], a["call_id"], 3)
    # What a collector got is what the hub shows.
    sent = collector.until(lambda spans: len(_of(spans, trace["trace_id"])) >= len(trace["spans"]))
    got = {span.span_id: span for span in _of(sent, trace["trace_id"])}
    assert {span["span_id"]: span["parent_id"] or "" for span in trace["spans"]} == {
        name: span.parent_id for name, span in got.items()
    }
    for span in trace["spans"]:
        received = got[span["span_id"]]
        assert received.name == span["name"]
        assert abs((received.end_ns - received.start_ns) / 1e6 - span["duration_ms"]) < 0.002
    assert got[a["span_id"]].resource["service.name"] == "dragoman"
    assert got[a["span_id"]].attributes["a2a.trace.given"] == given
    assert collector.requests[-1] == ("/v1/traces", collector.requests[-1][1])
    assert collector.requests[-1][1]["x-team"] == "blue"
    # And so does the command.
    env = environment(tmp_path, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=hub.token or "")
    assert json.loads(piped("trace", given, "--json", env=env).out) == trace
    for width in (80, 120):
        lines = plain(on_terminal("trace", given, env=env, width=width).out).splitlines()
        assert max(map(len, lines)) <= width
        assert lines[0].startswith(f"trace {given} · completed · ") and lines[0].endswith(" · 3 calls to 3 agents")
        shown = [line for line in lines if "·" in line][1:]
        assert [re.split(r" {2,}", line.strip())[0] for line in shown][:2] == ["Relay A · echo", "Relay B · echo"]
        assert [len(line) - len(line.lstrip()) for line in shown] == [0, 2, 4]
        assert all("━" in line or "╸" in line or "╺" in line for line in shown)


def over_three(hub: HubProcess, relay: Relay) -> tuple[str, dict[str, Any]]:
    """One call that goes on over three agents: its trace by the caller's name for it, and as the hub shows it."""
    given = fresh("over-three")
    reply = hub.call("echo", {"text": "hi"}, relay.a, headers={"X-Trace-ID": given})
    assert (reply.status, reply.json["trace"]["trace_id"]) == (200, given)
    return given, eventually(lambda: _whole(hub, given), "all three calls have ended")


def _whole(hub: HubProcess, name: str) -> Any:
    trace = hub.get(f"/v1/traces/{name}").json
    return trace if trace["calls"] == 3 and all(span["duration_ms"] is not None for span in trace["spans"]) else None


def _of(spans: list[Received], trace_id: str) -> list[Received]:
    return [span for span in spans if span.trace_id == trace_id]


@pytest.mark.req("P-38")
def test_of_calls_that_others_made_in_a_trace_only_the_times_are_shown(hub: HubProcess, relay: Relay) -> None:
    caller, stranger = hub.new_key("a2a:call"), hub.new_key("a2a:call")
    given = fresh("seen-by-owners")
    hub.call("echo", {"text": "hi"}, relay.a, token=caller, headers={"X-Trace-ID": given})
    eventually(lambda: _whole(hub, given), "all three calls have ended")
    own, b, c = calls_in(spans_of(hub, given, caller))
    assert (own["agent"], b["name"], c["name"]) == (relay.a, "another owner", "another owner")
    assert (b["parent_id"], c["parent_id"]) == (own["span_id"], b["span_id"])
    for hidden in (b, c):
        assert hidden["duration_ms"] > 0
        assert [hidden[name] for name in ("call_id", "agent", "error_code", "attributes", "events")] == [
            None, None, None, {}, [],
        ]  # fmt: skip
    seen = json.dumps(hub.get(f"/v1/traces/{given}", token=caller).json)
    assert relay.b not in seen and relay.c not in seen
    # B sees its own call, and the others' as others'.
    assert [call["agent"] for call in calls_in(spans_of(hub, given, relay.keys[1]))] == [None, None, relay.c]
    assert hub.get(f"/v1/traces/{given}", token=stranger).status == 404
    assert hub.get(f"/v1/traces/{own['call_id']}", token=stranger).status == 404
    assert hub.get("/v1/traces", token=stranger).json["items"] == []
    assert [item["calls"] for item in hub.get("/v1/traces", token=caller).json["items"]] == [1]


@pytest.mark.req("P-38")
def test_another_tenants_part_of_a_trace_is_not_shown_at_all(hub: HubProcess, relay: Relay) -> None:
    shown_to_another_tenant(hub, relay)


def shown_to_another_tenant(hub: HubProcess, relay: Relay) -> None:
    """Two tenants call in one trace: each sees its own call, whoever looks for it, and nothing of the other's."""
    given = fresh("of-two-tenants")
    other = hub.new_key("a2a:admin", "a2a:call", "a2a:register", tenant="other")
    with platform_agent() as agent:
        own = join(hub, agent, token=other, id=fresh("agt_other"))["id"]
        hub.call("echo", {}, own, token=other, headers={"X-Trace-ID": given})
    hub.call("echo", {"text": "hi"}, relay.a, headers={"X-Trace-ID": given})
    eventually(lambda: _whole(hub, given), "all three calls of ours have ended")
    assert [call["agent"] for call in calls_in(spans_of(hub, given, other))] == [own]
    assert [call["agent"] for call in calls_in(spans_of(hub, given))] == [relay.a, relay.b, relay.c]
    assert [item["agents"] for item in hub.get("/v1/traces", token=other).json["items"]] == [[own]]


def test_a_failed_attempt_and_its_status_are_shown(hub: HubProcess, tmp_path: Path) -> None:
    given = fresh("failed")
    with platform_agent(says((500, {}, b"{}"))) as agent:
        name = join(hub, agent, id=fresh("agt_failing"))["id"]
        assert hub.call("echo", {}, name, headers={"X-Trace-ID": given}).json["status"] == "failed"
    spans = spans_of(hub, given)
    last = spans[-1]
    assert (spans[0]["error_code"], last["name"], last["error_code"]) == ("AGENT_ERROR", "attempt", "AGENT_ERROR")
    assert last["attributes"]["http.response.status_code"] == 500
    env = environment(tmp_path, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=hub.token or "")
    shown = plain(on_terminal("trace", given, env=env, width=80).out)
    assert "✘ AGENT_ERROR, HTTP 500" in shown


@pytest.mark.full
def test_each_retry_is_an_attempt_of_its_own(hub: HubProcess) -> None:
    given = fresh("retried")
    answers: list[Answer] = [(503, {}, b"{}")]

    def respond(body: dict[str, Any]) -> Answer | dict[str, Any]:
        return answers.pop() if answers else repeats(body)

    with platform_agent(respond) as agent:
        name = join(hub, agent, id=fresh("agt_busy"), skills=[skill("echo", idempotent=True)])["id"]
        call = hub.call("echo", {}, name, headers={"X-Trace-ID": given}).json
    assert call["status"] == "completed"
    first, second = (span for span in spans_of(hub, given) if span["name"] == "attempt")
    assert (first["status"], first["attributes"]["http.response.status_code"]) == ("error", 503)
    assert (second["status"], second["attributes"]["a2a.attempt"]) == ("ok", 2)
    assert first["offset_ms"] + first["duration_ms"] <= second["offset_ms"]
    told = [each["data"] for each in hub.get(f"/v1/calls/{call['id']}/events").json["items"] if each["event"] == "sent"]
    assert [(each["attempt"], each.get("http_status")) for each in told] == [(1, 503), (2, None)]


def test_traces_are_paged_each_where_its_newest_call_is(hub: HubProcess, agent: PlatformAgent) -> None:
    key = hub.new_key("a2a:call")
    name = join(hub, agent)["id"]
    first, second, third = (fresh("paged") for _ in range(3))
    for given in (first, second, first, third, second):
        hub.call("echo", {"of": given}, name, token=key, headers={"X-Trace-ID": given})
    pages: list[str] = []
    cursor = ""
    while True:
        page = hub.get(f"/v1/traces?limit=1{cursor}", token=key).json
        pages += [item["given_id"] for item in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert pages == [second, third, first]
    assert hub.get("/v1/traces?limit=0", token=key).status == 400
    assert hub.get("/v1/traces?since=soon", token=key).status == 400


def test_a_spelling_beside_a_traceparent_finds_its_trace(hub: HubProcess, agent: PlatformAgent) -> None:
    given, trace_id = fresh("only-spelled"), "0af7651916cd43dd8448eb211c80319c"
    headers = {"X-Trace-ID": given, "traceparent": f"00-{trace_id}-b7ad6b7169203331-01"}
    hub.call("echo", {}, join(hub, agent)["id"], headers=headers)
    assert hub.get(f"/v1/traces/{given}").json["trace_id"] == trace_id
    assert spans_of(hub, given)[0]["parent_id"] == "b7ad6b7169203331"


def test_a_workflows_calls_hang_below_their_steps(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    given = fresh("steps")
    then = [{"skill": "echo", "target_agent_id": name, "input": {"n": 1}}]
    body: dict[str, Any] = {"skill": "echo", "input": {}, "target_agent_id": name, "then": then}
    reply = hub.post("/v1/a2a/call", body, {"X-Trace-ID": given})
    assert reply.status == 200, reply.body
    tree = [(span["depth"], span["name"].split(" ")[0]) for span in spans_of(hub, given)]
    step = [(1, "step"), (2, "invoke_agent")]
    parts = [each for each in tree if each[1] not in ("admit", "queue", "attempt")]
    assert parts == [(0, "workflow"), *step, *step]


@pytest.mark.req("P-38")
def test_a_collector_that_hangs_holds_up_no_call(hub: HubProcess, agent: PlatformAgent, collector: Collector) -> None:
    name, given = join(hub, agent)["id"], fresh("hanging")
    asked = len(collector.requests)
    collector.hold.clear()
    slowest = 0.0
    try:
        for number in range(30):
            began = time.monotonic()
            assert hub.call("echo", {}, name, headers={"X-Trace-ID": given}).json["status"] == "completed"
            slowest = max(slowest, time.monotonic() - began)
            if number == 0:
                collector.asked(asked + 1)  # It hangs now, and will for as long as it may.
    finally:
        collector.hold.set()
    assert slowest < 1.0
    collector.until(lambda spans: sum(span.attributes.get("a2a.trace.given") == given for span in spans) == 30)


# -- planted bugs


@pytest.mark.planted
@pytest.mark.parametrize(
    ("bug", "shown"),
    [("new_trace_at_the_second_hop", over_three), ("traces_of_every_tenant", shown_to_another_tenant)],
)
def test_the_bug_is_found(bug: str, shown: Callable[[HubProcess, Relay], object], tmp_path: Path) -> None:
    with running_hub(tmp_path / "data", planted=bug) as hub, relaying(hub) as relay, pytest.raises(AssertionError):
        shown(hub, relay)
