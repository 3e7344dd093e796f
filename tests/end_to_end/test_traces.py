import json
import re
from pathlib import Path

import pytest

from tests.end_to_end.world import call_line, fresh, join, log_lines, says
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

LOG_LINE = Path(__file__).parents[1] / "examples" / "platform" / "log-line.json"
TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]")


@pytest.mark.req("P-35")
def test_opaque_trace_ids_are_echoed_and_passed_on_with_a_new_span(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    given = {"X-Trace-ID": "trace_456def", "X-Span-ID": "span_789ghi", "X-Parent-Span-ID": "span_123abc"}
    reply = hub.call("echo", {}, name, headers=given)
    trace = reply.json["trace"]
    assert trace["trace_id"] == reply.headers["x-trace-id"] == "trace_456def"
    assert trace["span_id"] == reply.headers["x-span-id"] != "span_789ghi"
    sent = agent.requests[0][1]
    assert sent["x-trace-id"] == "trace_456def"
    assert sent["x-span-id"] == trace["span_id"]
    assert sent["x-parent-span-id"] == "span_789ghi"
    found = TRACEPARENT.fullmatch(sent["traceparent"])
    assert found is not None
    assert f"span_{found[2]}" == trace["span_id"]
    # The same opaque id is always the same W3C trace.
    hub.call("echo", {"again": True}, name, headers=given)
    again = TRACEPARENT.fullmatch(agent.requests[1][1]["traceparent"])
    assert again is not None
    assert (again[1], again[2] != found[2]) == (found[1], True)


@pytest.mark.req("P-35")
def test_a_traceparent_is_continued(hub: HubProcess, agent: PlatformAgent) -> None:
    name = join(hub, agent)["id"]
    trace_id, span_id = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    given = {"traceparent": f"00-{trace_id}-{span_id}-01", "tracestate": "vendor=1"}
    trace = hub.call("echo", {}, name, headers=given).json["trace"]
    assert trace_id in trace["trace_id"]
    sent = agent.requests[0][1]
    assert sent["traceparent"].startswith(f"00-{trace_id}-")
    assert span_id not in sent["traceparent"]
    assert span_id in sent["x-parent-span-id"]
    assert sent["tracestate"] == "vendor=1"


@pytest.mark.parametrize(
    "given",
    [
        {"traceparent": "00-" + "0" * 32 + "-" + "0" * 16 + "-01"},
        {"traceparent": "nonsense"},
        {"X-Trace-ID": "x" * 129},
        {"X-Trace-ID": "a\tb"},
        {"X-Trace-ID": "\xe9"},
        {},
    ],
)
def test_an_unusable_trace_id_is_replaced_never_refused(
    hub: HubProcess, agent: PlatformAgent, given: dict[str, str]
) -> None:
    reply = hub.call("echo", {}, join(hub, agent)["id"], headers=given)
    assert reply.status == 200
    assert re.fullmatch(r"trace_[0-9a-f]{32}", reply.json["trace"]["trace_id"])
    assert TRACEPARENT.fullmatch(agent.requests[0][1]["traceparent"])


@pytest.mark.req("P-37")
def test_each_call_is_one_log_line_with_the_documents_fields(hub: HubProcess, agent: PlatformAgent) -> None:
    caller = hub.new_key("a2a:call")
    name = join(hub, agent)["id"]
    trace_id = fresh("trace")
    done = hub.call("echo", {"secret": "not-in-the-log"}, name, token=caller, headers={"X-Trace-ID": trace_id}).json
    agent.respond = says((500, {}, b"{}"))
    failed = hub.call("echo", {}, name, token=caller).json
    documented = json.loads(LOG_LINE.read_text())
    line = call_line(hub, done["id"])
    assert list(line)[: len(documented)] == list(documented)
    assert {key: type(line[key]) for key in documented} == {key: type(value) for key, value in documented.items()}
    assert line["message"] == "A2A call completed"
    assert (line["level"], line["status"]) == ("info", "completed")
    assert (line["target_agent_id"], line["skill"], line["trace_id"]) == (name, "echo", trace_id)
    assert line["caller_agent_id"] == agent.requests[0][2]["caller_agent_id"]
    line = call_line(hub, failed["id"])
    assert (line["level"], line["status"], line["error_code"]) == ("warning", "failed", "AGENT_ERROR")
    assert len([each for each in log_lines(hub) if each.get("call_id") == done["id"]]) == 1
    assert "not-in-the-log" not in hub.log.read_text()
    assert caller not in hub.log.read_text()
