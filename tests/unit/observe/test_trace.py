"""Trace context: read in any form, the same id for the same spelling, never an error."""

import re

from hypothesis import given
from hypothesis import strategies as st

from dragoman.observe.trace import read_trace, trace_headers
from dragoman.ports.clock import base32

PARENT = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def test_a_traceparent_rules_and_an_opaque_id_keeps_its_spelling() -> None:
    trace = read_trace({b"traceparent": PARENT, b"x-trace-id": b"trace_456def"}, "r1")
    assert (trace.trace_id, trace.parent_span_id) == ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7")
    assert trace.given_id == "trace_456def"
    assert trace.span_id != trace.parent_span_id


def test_an_opaque_id_always_maps_to_the_same_trace() -> None:
    first, second = (read_trace({b"x-trace-id": b"trace_456def"}, seed) for seed in ("r1", "r2"))
    assert first.trace_id == second.trace_id
    assert first.span_id != second.span_id


def test_traces_that_the_hub_makes_grow_with_time_and_end_at_random() -> None:
    made = [read_trace({}, f"{base32(1_760_000_000_000 + ms)}{ms % 7}abc").trace_id for ms in range(0, 5000, 7)]
    assert made == sorted(made)
    assert len({trace[16:] for trace in made}) == len(made)


def test_hex_behind_a_prefix_is_the_id_itself() -> None:
    trace = read_trace({b"x-trace-id": b"trace_" + b"ab" * 16, b"x-span-id": b"span_" + b"cd" * 8}, "r")
    assert (trace.trace_id, trace.parent_span_id) == ("ab" * 16, "cd" * 8)


@given(st.dictionaries(st.sampled_from([b"traceparent", b"x-trace-id", b"x-span-id", b"tracestate"]), st.binary()))
def test_whatever_is_sent_gives_a_valid_trace(headers: dict[bytes, bytes]) -> None:
    trace = read_trace(headers, "r")
    assert re.fullmatch("[0-9a-f]{32}", trace.trace_id)
    assert re.fullmatch("[0-9a-f]{16}", trace.span_id)
    written = trace_headers(trace, "req_1")
    assert all(value.isascii() and b"\r" not in value and b"\n" not in value for value in written.values())
    again = read_trace(written, "other")
    assert (again.trace_id, again.parent_span_id) == (trace.trace_id, trace.span_id)
