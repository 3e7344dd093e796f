"""Spans in the words of OTLP, read by a decoder of the tests' own; and OpenTelemetry's variables."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.model.task import Trace
from dragoman.observe.otel_settings import Destination, destination
from dragoman.observe.otlp import CODECS, JSON, PROTOBUF
from dragoman.observe.span import Span, SpanEvent, SpanKind, Value
from tests.support.collector import read_otlp

AT = datetime(2026, 1, 12, 10, 0, 0, 123456, tzinfo=UTC)
TRACE = Trace(trace_id="0af7651916cd43dd8448eb211c80319c", span_id="b7ad6b7169203331", state="vendor=1")
values = st.one_of(
    st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False)
)


@pytest.mark.parametrize("form", [PROTOBUF, JSON])
@given(attributes=st.dictionaries(st.text(min_size=1), values, max_size=4), took_us=st.integers(0, 10**12))
def test_a_collector_reads_what_was_written(form: str, attributes: dict[str, Value], took_us: int) -> None:
    span = Span(
        span_id="00f067aa0ba902b7",
        call_id="c1",
        name="invoke_agent Wetter ☂",
        kind=SpanKind.SERVER,
        started_at=AT,
        ended_at=AT + timedelta(microseconds=took_us),
        parent_id="b7ad6b7169203331",
        linked="53995c3f42cd8ad8",
        failed="AGENT_ERROR",
        attributes=attributes,
        events=(SpanEvent(at=AT, name="retry"),),
    )
    codec = CODECS[form]
    raw = codec.whole({"service.name": "dragoman"}, [codec.span(TRACE, span)] * 2)
    first, second = read_otlp(raw, codec.media_type.decode())
    assert first == second
    assert (first.trace_id, first.span_id, first.parent_id) == (TRACE.trace_id, span.span_id, span.parent_id)
    assert (first.name, first.kind, first.error, first.events) == (span.name, 2, "AGENT_ERROR", ("retry",))
    assert first.links == ((TRACE.trace_id, "53995c3f42cd8ad8"),)
    assert first.start_ns == 1768212000_123456000
    assert first.end_ns - first.start_ns == took_us * 1000
    assert first.attributes == attributes
    assert first.resource == {"service.name": "dragoman"}


def said(**environ: str) -> tuple[Destination | None, list[str]]:
    warned: list[str] = []
    return destination(environ, warned.append), warned


def test_without_an_endpoint_nothing_is_exported() -> None:
    assert said() == (None, [])
    url = "http://collector:4318"
    assert said(OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_SDK_DISABLED="true")[0] is None
    assert said(OTEL_EXPORTER_OTLP_ENDPOINT=url, OTEL_TRACES_EXPORTER="none")[0] is None


def test_the_variables_are_read_as_they_are() -> None:
    to, warned = said(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://collector:4318/",
        OTEL_EXPORTER_OTLP_HEADERS="Authorization=Basic%20abc, x-tenant = 7",
        OTEL_SERVICE_NAME="hub-eu",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment=prod,service.name=other",
        OTEL_TRACES_SAMPLER="traceidratio",
        OTEL_TRACES_SAMPLER_ARG="0.25",
        OTEL_EXPORTER_OTLP_TIMEOUT="2500",
    )
    assert to is not None and warned == []
    assert to.url == "http://collector:4318/v1/traces"
    assert dict(to.headers) == {b"authorization": b"Basic abc", b"x-tenant": b"7"}
    assert (to.resource["service.name"], to.resource["deployment.environment"]) == ("hub-eu", "prod")
    assert (to.sampler.share, to.sampler.follows_parent, to.timeout_s, to.protocol) == (0.25, False, 2.5, PROTOBUF)
    own, _ = said(OTEL_EXPORTER_OTLP_ENDPOINT="http://a", OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://b/own")
    assert own is not None and own.url == "http://b/own"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_SAMPLER", "jaeger_remote"),
        ("OTEL_TRACES_SAMPLER_ARG", "many"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318"),
    ],
)
def test_what_cannot_be_used_is_said_and_left_out(name: str, value: str) -> None:
    given = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_TRACES_SAMPLER": "traceidratio", name: value}
    to, warned = said(**given)
    assert len(warned) == 1 and value in warned[0]
    assert to is None or (to.protocol, to.sampler.share) == (PROTOBUF, 1.0)


def test_a_callers_decision_counts_before_the_share() -> None:
    to, _ = said(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://c",
        OTEL_TRACES_SAMPLER="parentbased_traceidratio",
        OTEL_TRACES_SAMPLER_ARG="0.5",
    )
    assert to is not None
    low, high = f"{'a' * 16}{'1':016}", f"{'a' * 16}{'f' * 16}"
    takes = to.sampler.takes
    assert takes(Trace(trace_id=low, span_id="1" * 16))
    assert not takes(Trace(trace_id=high, span_id="1" * 16))
    assert takes(Trace(trace_id=high, span_id="1" * 16, parent_span_id="2" * 16))
    assert not takes(Trace(trace_id=low, span_id="1" * 16, parent_span_id="2" * 16, sampled=False))
