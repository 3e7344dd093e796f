"""Lines are written by a thread of their own: bounded, whole, and nobody's work waits for them."""

import io
import json
import logging
import threading
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from dragoman.model.ended import Carried, ended_call
from dragoman.model.errors import Failure
from dragoman.model.events import Usage
from dragoman.model.operations import Wait
from dragoman.model.states import TaskState
from dragoman.model.task import Trace
from dragoman.observe import names
from dragoman.observe.calls import CallLog
from dragoman.observe.lines import MOST, LineWriter
from dragoman.observe.logs import IN_CALL, MAX_LINE, JsonLines, LineHandler
from dragoman.observe.noticed import ALL_PER_SECOND, PER_SECOND, Noticed
from dragoman.security.redact import Redactor
from tests.contracts.manual_clock import ManualClock
from tests.unit.observe.calls_made import ASKED, call

PATIENCE_S = 5.0


class Stuck:
    """A pipe that nobody reads, until it is let go."""

    def __init__(self) -> None:
        self.entered = threading.Event()
        self.let_go = threading.Event()
        self.written = b""

    def write(self, data: bytes, /) -> None:
        self.entered.set()
        self.let_go.wait(PATIENCE_S)
        self.written += data

    def flush(self) -> None:
        """Nothing is kept back."""


class Said:
    """A logger and what it wrote, as objects."""

    def __init__(self) -> None:
        self.sink = io.BytesIO()
        self.lines = LineWriter(self.sink)
        self.log = logging.Logger("dragoman.test")
        handler = LineHandler(self.lines)
        handler.setFormatter(JsonLines())
        self.log.addHandler(handler)

    def read(self) -> list[dict[str, Any]]:
        self.lines.flush()
        return [json.loads(line) for line in self.sink.getvalue().splitlines()]


@pytest.fixture
def said() -> Iterator[Said]:
    said = Said()
    yield said
    said.lines.close()


@pytest.mark.req("P-37")
def test_a_call_line_has_the_documents_fields_in_its_order_and_ours_after_them() -> None:
    sink = io.BytesIO()
    log = CallLog(form="json", sink=sink, replica="hub-1")
    task = call(
        2.45,
        asked=msgspec.structs.replace(ASKED, request_id="req_123abc", wait=Wait.END),
        trace=Trace(trace_id="ab" * 16, span_id="cd" * 8, given_id="trace_456def"),
        parent_id="a2a_call_0",
        chain=("agt_caller",),
        usage=Usage(tokens=1500, cost_usd=0.0045),
    )
    log.write([ended_call(task, Carried(dialect="agentvault", attempts=2, took_s=2.445, waited_ms=3))])
    log.close()
    (line,) = (json.loads(each) for each in sink.getvalue().splitlines())
    assert line == {
        "timestamp": "2026-01-12T10:00:02.450Z",
        "level": "info",
        "message": "A2A call completed",
        "call_id": "a2a_call_1",
        "caller_agent_id": "agt_caller",
        "target_agent_id": "agt_target",
        "skill": "echo",
        "status": "completed",
        "duration_ms": 2450,
        "trace_id": "trace_456def",
        "span_id": f"span_{'cd' * 8}",
        "request_id": "req_123abc",
        "dialect_in": "platform",
        "dialect_out": "agentvault",
        "mode": "sync",
        "attempts": 2,
        "queued_ms": 3,
        "hub_ms": 2,
        "conversation_id": "ctx-1",
        "parent_id": "a2a_call_0",
        "depth": 1,
        "tokens": 1500,
        "cost_usd": 0.0045,
        "replica": "hub-1",
    }
    document = "timestamp level message call_id caller_agent_id target_agent_id skill status duration_ms trace_id"
    assert [*line][:10] == document.split()


@pytest.mark.req("P-37")
@pytest.mark.parametrize(
    ("state", "code", "level", "message"),
    [
        (TaskState.COMPLETED, None, "info", names.CALL_COMPLETED),
        (TaskState.CANCELED, None, "info", names.CALL_CANCELLED),
        (TaskState.FAILED, "AGENT_TIMEOUT", "warning", names.CALL_FAILED),
        (TaskState.REJECTED, "AGENT_ERROR", "warning", names.CALL_FAILED),
        (TaskState.FAILED, "INTERNAL_ERROR", "error", names.CALL_FAILED),
    ],
)
def test_only_a_fault_of_the_hub_is_an_error(state: TaskState, code: str | None, level: str, message: str) -> None:
    sink = io.BytesIO()
    quiet = io.BytesIO()
    failure = None if code is None else Failure(code=code, message="it broke")
    for written, least in ((sink, "info"), (quiet, "error")):
        log = CallLog(form="json", level=least, sink=written)
        log.write([ended_call(call(state=state, failure=failure))])
        log.close()
    line = json.loads(sink.getvalue())
    assert (line["level"], line["message"], line.get("error_code")) == (level, message, code)
    assert bool(quiet.getvalue()) == (level == "error")


def test_a_line_is_never_longer_than_its_bound_and_always_whole() -> None:
    sink = io.BytesIO()
    log = CallLog(form="json", sink=sink)
    log.write([ended_call(call(context_id="c" * 20_000, skill='"\\\n' * 9_000))])
    log.close()
    (line,) = sink.getvalue().splitlines()
    assert len(line) <= MAX_LINE
    assert json.loads(line)["call_id"] == "a2a_call_1"


def test_a_secret_that_a_caller_gave_as_a_name_is_not_written() -> None:
    key = "ap_0123456789ab_0123456789abcdefXYZ"
    redactor = Redactor(b"k" * 32)
    sink = io.BytesIO()
    log = CallLog(form="json", sink=sink, redact=redactor.json)
    named = call(trace=Trace(trace_id="ab" * 16, span_id="cd" * 8, given_id=f"token={key}"))
    log.write([ended_call(call(context_id=key)), ended_call(named)])
    log.close()
    first, second = (json.loads(line) for line in sink.getvalue().splitlines())
    assert key not in sink.getvalue().decode()
    assert first["conversation_id"] == redactor.mark(key)
    assert first.keys() == second.keys()


def test_of_lines_that_are_looked_at_closely_only_what_is_secret_is_taken_out() -> None:
    sink = io.BytesIO()
    redactor = Redactor(b"k" * 32)
    log = CallLog(form="json", sink=sink, redact=redactor.json)
    chance = call(id="a2a_call_0eyJhbGciOiJIUzI1NiJ9", agent_id="agt_map_reduce")
    secret = call(context_id="eyJhbGciOiJIUzI1NiJ9.e30.x")
    log.write([ended_call(chance, None), ended_call(secret, None), ended_call(call(), None)])
    log.close()
    first, second, third = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert (first["call_id"], first["target_agent_id"]) == (chance.id, chance.agent_id)
    assert second["conversation_id"] == redactor.mark(secret.context_id)
    assert first.keys() == second.keys() == third.keys()


def test_a_log_line_stays_within_its_bound_with_a_long_traceback_and_hostile_fields(said: Said) -> None:
    try:
        raise ValueError("x" * 30_000)
    except ValueError:
        said.log.exception("a job broke", extra={"fields": {"name": 'a"}\n{"level":"error', "more": ["y" * 20_000]}})
    (line,) = said.read()
    assert len(json.dumps(line)) <= MAX_LINE + 200  # json.dumps puts blanks in
    assert (line["level"], line["message"], line["name"]) == ("error", "a job broke", 'a"}\n{"level":"error')
    assert line["traceback"].startswith("Traceback")


def test_lines_inside_a_call_have_its_ids_and_those_outside_have_none(said: Said) -> None:
    said.log.warning("before")
    token = IN_CALL.set(call())
    said.log.warning("inside")
    IN_CALL.reset(token)
    said.log.warning("after")
    before, inside, after = said.read()
    assert (inside["call_id"], inside["trace_id"]) == ("a2a_call_1", f"trace_{'ab' * 16}")
    assert "call_id" not in before
    assert "call_id" not in after


def test_a_stuck_pipe_delays_nobody_and_what_is_dropped_is_counted() -> None:
    sink = Stuck()
    lines = LineWriter(sink)
    lines.put(1, lambda: b"first\n")
    assert sink.entered.wait(PATIENCE_S)
    for number in range(MOST + 100):
        lines.put(1, lambda number=number: b"%d\n" % number)
    assert lines.dropped == 101
    sink.let_go.set()
    lines.close()
    assert sink.written.count(b"\n") == MOST
    assert lines.dropped == 101


def test_a_sink_whose_reader_is_gone_breaks_nothing() -> None:
    sink = io.BytesIO()
    sink.close()
    lines = LineWriter(sink)
    lines.put(3, lambda: b"a\nb\nc\n")
    lines.close()
    assert lines.dropped == 3


class Heard(logging.Handler):
    """What was noticed."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.getMessage(), getattr(record, "fields", {})))


@pytest.fixture
def heard() -> Iterator[Heard]:
    heard, log = Heard(), logging.getLogger("dragoman.noticed")
    log.addHandler(heard)
    level = log.level
    log.setLevel("INFO")
    yield heard
    log.setLevel(level)
    log.removeHandler(heard)


def test_the_noise_of_one_caller_is_counted_and_hides_nobody_else(heard: Heard) -> None:
    clock = ManualClock()
    noticed = Noticed(clock)
    for _ in range(50):
        noticed.note(names.REFUSED, "key_1", "RATE_LIMITED")
    noticed.note(names.REFUSED, "key_1", "AGENT_NOT_FOUND")
    noticed.note(names.REFUSED, "key_2", "RATE_LIMITED", reason=None)
    assert [fields["code"] for _, fields in heard.lines] == [
        *["RATE_LIMITED"] * PER_SECOND,
        "AGENT_NOT_FOUND",
        "RATE_LIMITED",
    ]
    clock.advance(1.0)
    assert heard.lines[-1] == (names.LEFT_OUT, {"who": "key_1", "code": "RATE_LIMITED", "lines": 50 - PER_SECOND})
    assert clock.timers == 0
    noticed.note(names.REFUSED, "key_1", "RATE_LIMITED")
    assert heard.lines[-1][0] == names.REFUSED


def test_a_thousand_callers_together_stay_within_a_bound_too(heard: Heard) -> None:
    clock = ManualClock()
    noticed = Noticed(clock)
    for number in range(1_000):
        noticed.note(names.REFUSED, f"198.51.100.{number}", "AUTHORIZATION_ERROR")
    assert len(heard.lines) == ALL_PER_SECOND
    noticed.close()
    assert heard.lines[-1] == (names.LEFT_OUT, {"lines": 1_000 - ALL_PER_SECOND})
