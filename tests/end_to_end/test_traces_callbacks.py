"""Callbacks in a trace: a span for each attempt at a collector, one for each delivery at the hub, both linked."""

import itertools
from collections.abc import Generator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import environment, on_terminal, plain
from tests.end_to_end.world import eventually, fresh, join
from tests.support.collector import Collector, Received
from tests.support.hub import HubProcess, running_hub
from tests.support.platform_agent import PlatformAgent, platform_agent
from tests.support.ports import free_port
from tests.support.receiver import Arrived, CallbackReceiver, callback_receiver

NAME = "deliver platform callback"
SERVER, CLIENT = 2, 3
APART_NS = 5_000_000  # the hub goes by a steady clock, others by the wall's, which may be set a little meanwhile


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, collector: Collector) -> Generator[HubProcess]:
    data = tmp_path_factory.mktemp("called-back") / "data"
    with running_hub(data, environ={"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}) as hub:
        yield hub


@pytest.fixture
def receiver() -> Generator[CallbackReceiver]:
    with callback_receiver() as receiver:
        yield receiver


def called(hub: HubProcess, agent: PlatformAgent, url: str, headers: dict[str, str]) -> str:
    """A call whose end is to be told at that address."""
    target = join(hub, agent)["id"]
    body = {"target_agent_id": target, "skill": "echo", "input": {"text": "hi"}, "callback": {"url": url}}
    reply = hub.post("/v1/a2a/call/async", body, headers)
    assert reply.status == 202, reply.body
    call_id: str = reply.json["call_id"]
    return call_id


def attempted(hub: HubProcess, call_id: str, **known: Any) -> dict[str, Any]:
    """The delivery of a call, once it is noted so."""

    def look() -> dict[str, Any] | None:
        items = hub.get(f"/v1/deliveries?call={call_id}").json["items"]
        return next((one for one in items if known.items() <= one.items()), None)

    return eventually(look, f"the delivery of {call_id} is {known}")


def shown(hub: HubProcess, call_id: str) -> dict[str, Any]:
    """The delivery's span, as the hub shows it."""
    (span,) = (each for each in hub.get(f"/v1/traces/{call_id}").json["spans"] if each["name"] == NAME)
    found: dict[str, Any] = span
    return found


def exported(collector: Collector, call_id: str, count: int) -> tuple[Received, list[Received]]:
    """The call's own span and those of attempts to call back, in their order."""

    def of_call(spans: list[Received], name: str) -> list[Received]:
        found = [span for span in spans if span.attributes.get("a2a.call.id") == call_id and span.name.startswith(name)]
        return sorted(found, key=lambda span: span.start_ns)

    def all_there(spans: list[Received]) -> bool:
        return bool(of_call(spans, "invoke_agent")) and len(of_call(spans, "deliver")) >= count

    spans = collector.until(all_there)
    (own,) = of_call(spans, "invoke_agent")
    return own, of_call(spans, "deliver")


def told(arrived: Arrived) -> tuple[str, str, str]:
    """Trace, span and flags that a receiver was told."""
    version, trace_id, span_id, flags = arrived.headers["traceparent"].split("-")
    assert (version, arrived.headers["x-span-id"]) == ("00", f"span_{span_id}")
    return trace_id, span_id, flags


def three_attempts(hub: HubProcess, agent: PlatformAgent, receiver: CallbackReceiver, collector: Collector) -> str:
    """A callback that fails, is tried again, arrives, and is replayed: each attempt is a span, told to its receiver."""
    receiver.statuses = [503]
    call_id = called(hub, agent, f"{receiver.url}/done", {"X-Trace-ID": fresh("told")})
    delivery = attempted(hub, call_id, attempts=1, state="pending")
    replay = f"/v1/deliveries/{delivery['id']}/replay"
    assert hub.post(replay, {}).status == 200  # It is pending, so this only makes it due.
    attempted(hub, call_id, attempts=2, state="delivered")
    assert hub.post(replay, {}).status == 200
    attempted(hub, call_id, replays=1, state="delivered")
    own, spans = exported(collector, call_id, 3)
    arrived = receiver.wait_for(3)
    # The receiver's spans hang below these, in the call's trace.
    assert [told(each) for each in arrived] == [(own.trace_id, span.span_id, "01") for span in spans]
    assert len({own.span_id, *(span.span_id for span in spans)}) == 4
    for span, each in zip(spans, arrived, strict=True):
        assert (span.name, span.kind, span.trace_id, span.parent_id) == (NAME, CLIENT, own.trace_id, "")
        assert span.links == ((own.trace_id, own.span_id),)
        assert each.headers["x-parent-span-id"] == f"span_{own.span_id}"
        assert span.start_ns - APART_NS <= each.at_ns <= span.end_ns + APART_NS, "it has the times of this very attempt"
        assert span.attributes["a2a.delivery.id"] == delivery["id"]
        assert span.attributes["server.port"] == int(receiver.url.rpartition(":")[2])
    assert own.kind == SERVER
    assert all(before.end_ns <= after.start_ns + APART_NS for before, after in itertools.pairwise((own, *spans)))
    outcome = ("a2a.attempt", "a2a.delivery.replays", "a2a.status", "http.response.status_code", "error.type")
    assert [tuple(span.attributes.get(name) for name in outcome) for span in spans] == [
        (1, None, "pending", 503, "HTTP 503"),
        (2, None, "delivered", 200, None),
        (1, 1, "delivered", 200, None),
    ]
    assert [span.error for span in spans] == ["HTTP 503", "", ""]
    return call_id


@pytest.mark.req("P-35")
@pytest.mark.req("P-38")
def test_each_attempt_to_call_back_is_a_span_that_its_receiver_is_told(
    hub: HubProcess, agent: PlatformAgent, receiver: CallbackReceiver, collector: Collector
) -> None:
    call_id = three_attempts(hub, agent, receiver, collector)
    # What the receiver does for it hangs below it, in the hub's own view too.
    parent = receiver.got[-1].headers["traceparent"]
    hub.call("echo", {}, join(hub, agent)["id"], headers={"traceparent": parent})
    spans = hub.get(f"/v1/traces/{call_id}").json["spans"]
    places = [(span["depth"], span["parent_id"]) for span in spans if span["kind"] == "server"]
    assert places == [(0, None), (1, shown(hub, call_id)["span_id"])]


@pytest.mark.req("P-38")
def test_a_delivery_is_one_span_at_the_hub_from_its_birth_to_its_last_attempt(
    hub: HubProcess, agent: PlatformAgent, receiver: CallbackReceiver, tmp_path: Path
) -> None:
    receiver.statuses = [503, 410]
    call_id = called(hub, agent, f"{receiver.url}/{fresh('shown')}", {})
    delivery = attempted(hub, call_id, attempts=1, state="pending")
    span = shown(hub, call_id)
    known = {"a2a.delivery.id": delivery["id"], "a2a.call.id": call_id, "a2a.derived": True}
    assert (span["status"], span["duration_ms"], span["parent_id"]) == ("running", None, None)
    assert {**known, "a2a.attempt": 1, "a2a.status": "pending", "a2a.delivery.answer": "HTTP 503"}.items() <= span[
        "attributes"
    ].items()
    assert span["span_id"] == told(receiver.got[0])[1]
    env = environment(tmp_path, DRAGOMAN_URL=hub.url, DRAGOMAN_TOKEN=hub.token or "")
    assert "  tried again after 1 attempt: HTTP 503" in plain(on_terminal("trace", call_id, env=env).out)
    hub.post(f"/v1/deliveries/{delivery['id']}/replay", {})
    delivery = attempted(hub, call_id, attempts=2, state="disabled")
    span = shown(hub, call_id)
    assert {**known, "a2a.attempt": 2, "a2a.status": "disabled", "a2a.delivery.answer": "HTTP 410"}.items() <= span[
        "attributes"
    ].items()
    assert (span["status"], span["error_code"], span["linked_to"]) == ("error", "disabled", own_span(hub, call_id))
    born, tried = (datetime.fromisoformat(delivery[name]) for name in ("created_at", "last_attempt_at"))
    assert abs(datetime.fromisoformat(span["started_at"]) - born).total_seconds() < 0.001
    assert abs(span["duration_ms"] - (tried - born).total_seconds() * 1000) < 2
    assert span["span_id"] == told(receiver.got[1])[1]
    assert "  ✘ disabled after 2 attempts: HTTP 410" in plain(on_terminal("trace", call_id, env=env).out)


def own_span(hub: HubProcess, call_id: str) -> str:
    span_id: str = hub.get(f"/v1/traces/{call_id}").json["spans"][0]["span_id"]
    return span_id


def test_an_address_that_nobody_has_is_a_failed_span_and_a_trace_that_is_not_sampled_has_none(
    hub: HubProcess, agent: PlatformAgent, receiver: CallbackReceiver, collector: Collector
) -> None:
    trace_id = "0af7651916cd43dd8448eb211c80319d"
    called(hub, agent, receiver.url, {"traceparent": f"00-{trace_id}-b7ad6b7169203331-00"})
    (arrived,) = receiver.wait_for(1)
    found, _, flags = told(arrived)
    assert (found, flags) == (trace_id, "00")
    dead = called(hub, agent, f"http://127.0.0.1:{free_port()}/", {})
    _, (span,) = exported(collector, dead, 1)
    assert (span.error, span.attributes["error.type"]) == ("not reachable", "not reachable")
    assert "http.response.status_code" not in span.attributes
    assert [each.name for each in collector.spans if each.trace_id == trace_id] == []


@pytest.mark.planted
def test_one_span_for_all_attempts_is_found(collector: Collector, tmp_path: Path) -> None:
    environ = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
    bug = "one_span_for_all_attempts_to_call_back"
    with (
        running_hub(tmp_path / "data", environ=environ, planted=bug) as hub,
        platform_agent() as agent,
        callback_receiver() as receiver,
        pytest.raises(AssertionError),
    ):
        three_attempts(hub, agent, receiver, collector)
