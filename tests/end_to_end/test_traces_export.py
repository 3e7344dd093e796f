"""A collector that hangs, refuses or comes and goes: no call waits or fails for it, and what it missed is told."""

import time
from collections.abc import Generator

import pytest

from tests.end_to_end.world import eventually, fresh, join, log_lines
from tests.support.collector import Collector
from tests.support.hub import HubProcess
from tests.support.platform_agent import PlatformAgent

CALLS = 40


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Generator[HubProcess]:
    environ = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
        "OTEL_SERVICE_NAME": "hub-eu",
    }
    hub = HubProcess(tmp_path_factory.mktemp("export") / "data").start(environ)
    yield hub
    assert hub.stop() == 0


def slowest_s(hub: HubProcess, agent: str, given: str, calls: int) -> float:
    """How long the slowest of some calls took; all of them are answered."""
    took: list[float] = []
    for number in range(calls):
        began = time.monotonic()
        reply = hub.call("echo", {"n": number}, agent, headers={"X-Trace-ID": given})
        took.append(time.monotonic() - began)
        assert reply.json["status"] == "completed"
    return max(took)


@pytest.mark.full
@pytest.mark.req("P-38")
def test_a_collector_that_hangs_or_refuses_holds_up_no_call(
    hub: HubProcess, agent: PlatformAgent, collector: Collector
) -> None:
    name, given = join(hub, agent)["id"], fresh("hanging")
    collector.hold.clear()
    slowest_s(hub, name, given, 1)
    collector.asked(1)  # The first request hangs now, and will for as long as it may.
    assert slowest_s(hub, name, given, CALLS) < 1.0
    collector.status = 503
    collector.hold.set()
    assert slowest_s(hub, name, given, CALLS) < 1.0
    eventually(lambda: [line for line in log_lines(hub) if line["message"] == "spans are not taken"], "it is said")
    collector.status = 200
    spans = collector.until(lambda spans: sum(span.kind == 2 for span in spans) >= 1 + 2 * CALLS)
    assert {span.resource["service.name"] for span in spans} == {"hub-eu"}
    assert len({span.span_id for span in spans}) == len(spans), "none comes twice"
    assert len(hub.get(f"/v1/calls?trace={given}&limit=100").json["items"]) == 1 + 2 * CALLS
